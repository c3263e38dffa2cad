"""What a reader weighs, and what they say of their installation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from provisioner.advice.kinds import Criterion
from provisioner.advice.recommending import (
    DEFAULT_WEIGHTS,
    MOST_WEIGHT,
    ReaderFacts,
    Weights,
)

GIB = 1 << 30
MOST = 10**9


class Slider(forms.NumberInput):
    """A range input, which keyboards move, too; a script shows its value beside it."""

    input_type = "range"

    def __init__(self) -> None:
        super().__init__(attrs={"min": 0, "max": MOST_WEIGHT, "step": 1})


def _weight(criterion: Criterion, help_text: str) -> forms.IntegerField:
    return forms.IntegerField(
        required=False,
        min_value=0,
        max_value=MOST_WEIGHT,
        label=criterion.label,
        help_text=help_text,
        widget=Slider,
    )


def _fact(label: str, *, most: int = MOST) -> forms.IntegerField:
    return forms.IntegerField(required=False, min_value=0, max_value=most, label=label)


class AdviceForm(forms.Form):
    """Weights and facts; its address keeps them. What is not given is the default."""

    performance = _weight(Criterion.PERFORMANCE, "How much speed counts.")
    access = _weight(Criterion.ACCESS, "Several hosts, Linux and Windows, same files.")
    manageability = _weight(Criterion.MANAGEABILITY, "What it takes to run and grow.")
    cost = _weight(Criterion.COST, "Adapters, fabrics, disks.")
    backup = _weight(Criterion.BACKUP, "Snapshots, clones, replication.")
    commands_a_day = _fact("Commands a day", most=10**12)
    users = _fact("Users")
    db_gib = _fact("Database, GiB")
    archive_gib = _fact("Archives, GiB")
    growth_percent = _fact("Their growth a year, %", most=1000)
    is_distributed = forms.BooleanField(
        required=False, label="Edge servers or replicas", help_text="At other sites."
    )
    shares_archives = forms.BooleanField(
        required=False,
        label="Replicas share the archives",
        help_text="With lbr.replication=shared, from other hosts.",
    )

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> AdviceForm:
        """Return the form of an address; weights that it does not name are default."""
        weights = {c.code: DEFAULT_WEIGHTS[c] for c in Criterion}
        return cls({**weights, **given})

    def weights(self) -> Weights:
        """Return the weights; the default of what is missing or wrong."""
        self.is_valid()
        found = {c: self.cleaned_data.get(c.code) for c in Criterion}
        return {
            c: DEFAULT_WEIGHTS[c] if weight is None else weight
            for c, weight in found.items()
        }

    def facts(self) -> ReaderFacts:
        """Return the facts; None for what is missing or wrong."""
        self.is_valid()
        said = self.cleaned_data
        return ReaderFacts(
            commands_a_day=said.get("commands_a_day"),
            users=said.get("users"),
            db_bytes=_bytes(said.get("db_gib")),
            archive_bytes=_bytes(said.get("archive_gib")),
            growth_percent=said.get("growth_percent"),
            is_distributed=bool(said.get("is_distributed")),
            shares_archives=bool(said.get("shares_archives")),
        )

    @property
    def weight_fields(self) -> list[forms.BoundField]:
        return [self[c.code] for c in Criterion]

    @property
    def number_fields(self) -> list[forms.BoundField]:
        names = ("commands_a_day", "users", "db_gib", "archive_gib", "growth_percent")
        return [self[name] for name in names]

    @property
    def choice_fields(self) -> list[forms.BoundField]:
        return [self["is_distributed"], self["shares_archives"]]


def _bytes(gib: int | None) -> int | None:
    return None if gib is None else gib * GIB
