"""Which snapshots of a template are kept, and why."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from django.db import transaction
from django.db.models import Count, QuerySet

from provisioner.catalog.models import Quality, Snapshot, Template, reference_among
from provisioner.lib import clocks
from provisioner.lib.prepared import Prepared, among


@dataclass(kw_only=True)
class Pins:
    """What keeps a snapshot. Without any, it is deleted.

    `is_recent`: one of the latest, as many as the template keeps. `is_default`: what a
    new workspace gets. `is_reference`: what the template is compared with.
    `is_last_tested`: no later one was tested. `held_for` are
    phrases of other features that need it. `workspaces_number` is how many
    workspaces of it are not purged, including those being made or in the trash;
    `workspaces` are these, or the first of them by name: there may be thousands.
    """

    snapshot: Snapshot
    is_recent: bool = False
    is_default: bool = False
    is_reference: bool = False
    is_last_tested: bool = False
    held_for: list[str] = field(default_factory=list)
    workspaces_number: int = 0
    workspaces: list[Any] = field(default_factory=list)

    @property
    def more(self) -> int:
        """How many workspaces are not named."""
        return self.workspaces_number - len(self.workspaces)

    @property
    def is_needed(self) -> bool:
        return bool(
            self.is_recent
            or self.is_default
            or self.is_last_tested
            or self.held_for
            or self.workspaces_number
        )

    @property
    def reasons(self) -> list[str]:
        """What keeps it besides workspaces, as phrases."""
        kept = self.snapshot.template.snapshots_to_keep
        said = []
        if self.snapshot.is_held:
            said.append("new workspaces are cloned from it until it is released")
        elif self.is_default:
            said.append("new workspaces are cloned from it")
        if self.is_last_tested:
            said.append("it is the newest that was tested")
        if self.is_recent:
            said.append(
                "it is the newest" if kept == 1 else f"it is among the {kept} newest"
            )
        return [*said, *self.held_for]


# Few are held or withdrawn: a query for the others is not even sent.
_THERE = Prepared(
    lambda templates: (
        Snapshot.objects.there()
        .filter(among("template", templates))
        .telling_default()
        .prefetch_related("held_by", "withdrawn_by")
    )
)


def pins_of(template: Template, *, named: int | None = None) -> list[Pins]:
    """Return what pins each published snapshot of a template; see `pins_of_all`."""
    return pins_of_all([template], named=named)


def pins_of_all(
    templates: Collection[Template], *, named: int | None = None
) -> list[Pins]:
    """Return what pins each published snapshot, newest first; few queries for many.

    At most `named` workspaces of each are listed by name; None: all of them.
    """
    snapshots = _THERE.rows([template.pk for template in templates])
    of_each: dict[int, list[Snapshot]] = {template.pk: [] for template in templates}
    for snapshot in snapshots:
        of_each[snapshot.template_id].append(snapshot)
    pins: dict[int, Pins] = {}
    for template in templates:
        for snapshot in of_each[template.pk]:
            snapshot.template = template
        for pin in _kept_by(template, of_each[template.pk]):
            pins[pin.snapshot.pk] = pin
    for need in _needs:
        if named == 0:
            rows = need.rows(snapshots)
            numbers = dict(rows.values_list("snapshot").annotate(Count("pk")))
        else:
            by_name = need.by_name(snapshots, most=named)
            numbers = {row.snapshot_id: row.number for row in by_name}
            for row in by_name:
                pins[row.snapshot_id].workspaces.append(row)
        for pk, number in numbers.items():
            pins[pk].workspaces_number += number
    for hold in _holds:
        for row in hold.rows(snapshots):
            pins[row.snapshot_id].held_for.append(hold.says(row))
    return list(pins.values())


def _kept_by(template: Template, snapshots: Sequence[Snapshot]) -> list[Pins]:
    """Return what a template itself keeps of its published snapshots, newest first."""
    offered = [snapshot for snapshot in snapshots if not snapshot.is_withdrawn]
    complete = [snapshot for snapshot in offered if snapshot.is_complete]
    reference = reference_among(complete)
    default = reference if reference and vars(reference)["is_default"] else None
    tested = next((each for each in complete if each.quality == Quality.TESTED), None)
    recent = offered[: template.snapshots_to_keep]
    return [
        Pins(
            snapshot=snapshot,
            is_recent=snapshot in recent,
            is_default=snapshot == default,
            is_reference=snapshot == reference,
            is_last_tested=snapshot == tested,
        )
        for snapshot in snapshots
    ]


def pins_of_snapshot(snapshot: Snapshot) -> Pins | None:
    """Return what pins a snapshot; None if it is not published."""
    pins = pins_of(snapshot.template)
    return next((pin for pin in pins if pin.snapshot == snapshot), None)


class Need(Protocol):
    """Rows that need snapshots, such as workspaces; each has a `snapshot`."""

    def rows(self, snapshots: Sequence[Snapshot]) -> QuerySet[Any]:
        """Return the rows that need any of these."""

    def by_name(self, snapshots: Sequence[Snapshot], *, most: int | None) -> list[Any]:
        """Return them by name, or only the first few of each snapshot.

        Each has the `number` of all that need its snapshot.
        """


_needs: list[Need] = []


def register_need(need: Need) -> None:
    """Keep snapshots as long as rows of a feature need them."""
    _needs.append(need)


@dataclass(frozen=True, kw_only=True)
class Hold:
    """Rows that need snapshots, and the phrase that says why. Each has a `snapshot`."""

    rows: Callable[[Sequence[Snapshot]], QuerySet[Any]]
    says: Callable[[Any], str]


_holds: list[Hold] = []


def register_hold(hold: Hold) -> None:
    """Keep snapshots as long as rows that are not workspaces need them."""
    _holds.append(hold)


def needs_of(snapshots: Sequence[Snapshot]) -> list[QuerySet[Any]]:
    """Return the workspaces, and whatever else is cloned, that need any of these."""
    return [need.rows(snapshots) for need in _needs]


def superfluous(template: Template) -> list[Snapshot]:
    """Return the published snapshots that nothing needs."""
    return superfluous_of_all([template])


def superfluous_of_all(templates: Collection[Template]) -> list[Snapshot]:
    """Return the published snapshots of templates that nothing needs."""
    pins = pins_of_all(templates, named=0)
    return [pin.snapshot for pin in pins if not pin.is_needed]


def mark_deleted(snapshot: Snapshot) -> bool:
    """Mark a snapshot as deleted; return False if something needs it now."""
    with transaction.atomic():
        # Whoever asks for a workspace of it holds this lock until its row is there.
        row = Snapshot.objects.select_for_update(of=("self",)).get(pk=snapshot.pk)
        needs = [*needs_of([snapshot]), *(hold.rows([snapshot]) for hold in _holds)]
        if row.is_held or any(rows.exists() for rows in needs):
            return False
        Snapshot.objects.filter(pk=snapshot.pk).mark_deleted(at=clocks.database_now())
    return True


def mark_there(snapshot: Snapshot) -> None:
    """Publish snapshots again that ONTAP did not delete."""
    Snapshot.objects.filter(pk=snapshot.pk).update(deleted_at=None)


def marked_deleted(template: Template, *, there: Sequence[str]) -> list[Snapshot]:
    """Return the snapshots marked as deleted among these UUIDs, which still exist."""
    return list(
        Snapshot.objects.filter(
            template=template, deleted_at__isnull=False, ontap_uuid__in=there
        )
    )
