"""Copies as pages show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count

from provisioner.copies.models import CopiedSnapshot, CopyRule, WorkspaceCopy
from provisioner.copies.queries import obstacle_of, places_of, rule_at
from provisioner.lib.prepared import Prepared
from provisioner.mirrors.models import Mirror
from provisioner.workspaces.models import Workspace

_RECORDS = ("opened", "descriptions", "have_differences")


@dataclass(frozen=True, kw_only=True)
class CopyOverview:
    """A copy; `last` is what arrived last, `obstacle` what prevents more, or ""."""

    copy: WorkspaceCopy
    last: CopiedSnapshot | None
    obstacle: str

    @property
    def fills_up(self) -> str:
        """How full its volume is and what to do, "" while it has room."""
        fullness = self.copy.fullness
        if fullness is None or not fullness.is_short or not self.copy.gets_snapshots:
            return ""
        return (
            f"The volume of the copy at {self.copy.site.name} is {fullness.sentence} "
            f"Without room transfers fail. {self.copy.way_to_room}"
        )

    @property
    def is_under_way(self) -> bool:
        return self.copy.state == WorkspaceCopy.State.TRANSFERRING

    @property
    def can_begin(self) -> bool:
        """Whether somebody who may change the workspace can transfer it now."""
        is_ready = self.copy.workspace.state == Workspace.State.READY
        return is_ready and not self.copy.is_moving


_COPIES = Prepared(
    lambda workspace: WorkspaceCopy.objects.filter(workspace=workspace).select_related(
        *("site", "workspace__snapshot")
    ),
)


def copies_of(workspace: Workspace) -> list[CopyOverview]:
    """Return a workspace's copies by site; one query if it has none."""
    return overviews_of(_COPIES.rows(workspace.pk))


def overviews_of(copies: Sequence[WorkspaceCopy]) -> list[CopyOverview]:
    """Return copies with what arrived last, in two queries for all."""
    if not copies:
        return []
    arrived = CopiedSnapshot.objects.filter(copy__in=copies, arrived_at__isnull=False)
    last = {each.copy_id: each for each in arrived.defer(*_RECORDS).order_by("pk")}
    places = places_of(copies)
    return [
        CopyOverview(
            copy=copy,
            last=last.get(copy.pk),
            obstacle=obstacle_of(copy, places[copy.pk]),
        )
        for copy in copies
    ]


@dataclass(frozen=True, kw_only=True)
class RuleOverview:
    """Which workspaces a mirror's site gets copies of, and how many there are."""

    rule: CopyRule | None
    copies: int
    failed: int

    @property
    def purposes(self) -> str:
        """The purposes that are copied, as words."""
        assert self.rule is not None
        return ", ".join(
            str(Workspace.Purpose(each).label) for each in self.rule.purposes
        )


def rule_of(mirror: Mirror) -> RuleOverview:
    """Return what a mirror's page shows of copies, in two or three queries."""
    rule = rule_at(mirror)
    sites = (rule.site_id, rule.second_site_id) if rule else (mirror.site_id,)
    counts = dict(
        WorkspaceCopy.objects.filter(
            workspace__template=mirror.template_id, site__in=sites
        )
        .order_by()
        .values_list("state")
        .annotate(number=Count("pk"))
    )
    return RuleOverview(
        rule=rule,
        copies=sum(counts.values()),
        failed=counts.get(WorkspaceCopy.State.FAILED, 0),
    )
