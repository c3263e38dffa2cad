"""Which rows are deleted, how long after what, and by which setting.

Samples and other rows that their features delete themselves are not here; a test names
every table, and who bounds it (tests/retention/test_every_table.py).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from django.contrib.admin.models import LogEntry
from django.db.models import PROTECT, Exists, Model, OuterRef, Q, QuerySet
from django.db.models.expressions import Combinable
from django.db.models.fields.reverse_related import ForeignObjectRel

from provisioner.accounts.models import ApiToken
from provisioner.catalog.models import Snapshot
from provisioner.drift.models import Finding
from provisioner.efficiency.models import DedupeRun
from provisioner.engine.models import Operation, Step
from provisioner.insight.models import ProcessEnding, ProgramMail
from provisioner.mirrors.models import MirroredSnapshot
from provisioner.notify.models import Notification
from provisioner.routing.models import TrafficDay
from provisioner.workspaces.models import Workspace


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Rows of a table, and the field with the time since which they are old.

    Only those for which `only` holds, and that no row refers to which would keep them,
    are deleted. Rows of `parts` are deleted with them; where that is all that can be
    deleted, `parts` go alone.
    """

    model: type[Model]
    since: str
    setting: str = "HISTORY_DAYS"
    only: Q | Combinable = field(default_factory=Q)
    parts: type[Model] | None = None

    def deletable(self, keys: Collection[int]) -> QuerySet[Any]:
        """Return which of these rows may go."""
        rows: QuerySet[Any] = self.model._base_manager.filter(self.only, pk__in=keys)
        for model, name in _kept_by(self.model):
            if model is not self.parts:
                rows = rows.exclude(
                    Exists(model._base_manager.filter(**{name: OuterRef("pk")}))
                )
        return rows


def _kept_by(model: type[Model]) -> list[tuple[Any, str]]:
    """Return the models and fields that refer to a table and keep its rows."""
    return [
        (relation.related_model, relation.field.name)
        for relation in model._meta.get_fields(include_hidden=True)
        if isinstance(relation, ForeignObjectRel) and relation.on_delete is PROTECT
    ]


# Of what lives, the newest operation of each kind tells how it came to its state; of a
# workspace all may, until it is retired.
_NEWER = Operation.objects.filter(
    subject=OuterRef("subject"), kind=OuterRef("kind"), pk__gt=OuterRef("pk")
)
_IS_OVER = Q(subject__workspace__state=Workspace.State.RETIRED)
IS_HISTORY = _IS_OVER | (Q(subject__workspace__isnull=True) & Exists(_NEWER))

RULES = (
    Rule(
        model=Notification,
        since="created_at",
        only=Q(sent_at__isnull=False) | Q(voided_at__isnull=False),
    ),
    Rule(model=Finding, since="resolved_at"),
    Rule(model=DedupeRun, since="ended_at"),
    Rule(
        model=ProcessEnding,
        since="requested_at",
        only=~Q(state=ProcessEnding.State.REQUESTED),
    ),
    Rule(model=ProgramMail, since="requested_at"),
    Rule(model=ApiToken, since="expiry"),
    Rule(model=LogEntry, since="action_time"),
    Rule(model=TrafficDay, since="day"),
    # Snapshots before operations: they refer to their builds.
    Rule(
        model=MirroredSnapshot,
        since="snapshot__deleted_at",
        only=Q(state=MirroredSnapshot.State.GONE),
    ),
    Rule(model=Snapshot, since="deleted_at"),
    Rule(model=Operation, since="ended_at", only=IS_HISTORY, parts=Step),
)
