"""The evidence of a finding, as its page shows it: values by themselves or compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from provisioner.drift.models import Finding

# Shown side by side, or in what will be done.
_NOT_ALONE = ("own", "fields", "lines_in", "lines_out", "row", "obstacle")


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two columns, row by row."""

    headings: tuple[str, str]
    rows: list[tuple[str, str, str]]


def compared(finding: Finding) -> Comparison | None:
    """Return actual beside expected values, or a copy beside its original."""
    details = finding.details
    if fields := details.get("fields"):
        rows = [
            (name, _text(sides["is"]), _text(sides["was"]))
            for name, sides in fields.items()
        ]
        return Comparison(headings=("Now", _should_be(finding)), rows=rows)
    if own := details.get("own"):
        this = {**details, "name": finding.subject, "uuid": finding.external_id}
        rows = [
            (_title(name), _text(this.get(name)), _text(value))
            for name, value in own.items()
        ]
        return Comparison(
            headings=("This one", "The one that Cloneyard made"), rows=rows
        )
    return None


def _should_be(finding: Finding) -> str:
    is_set = finding.kind == Finding.Kind.VOLUME_SETTINGS_DIFFER
    return "As Cloneyard set it" if is_set else "As it was made"


def alone(finding: Finding) -> list[tuple[str, str]]:
    """Return the values without a counterpart."""
    beside = finding.details.get("own", {})
    return [
        (_title(name), _text(value))
        for name, value in finding.details.items()
        if name not in _NOT_ALONE and name not in beside
    ]


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _text(value: Any) -> str:
    lines = value if isinstance(value, list) else [value]
    return "\n".join(str(line) for line in lines if line not in (None, ""))
