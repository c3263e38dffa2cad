"""A template with its snapshots and builds, as its page shows it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from provisioner.accounts.models import User
from provisioner.catalog.durations import BUILDS_PLOTTED, Durations, durations_of
from provisioner.catalog.freshness import (
    Freshness,
    behind_of,
    freshness_since,
    pauses_of,
    server_pause_of,
)
from provisioner.catalog.models import (
    RefreshPolicy,
    Snapshot,
    Template,
    TemplateOperation,
    VolumeOperation,
)
from provisioner.catalog.queries import is_in_scope, snapshot_before
from provisioner.catalog.retention import Pins, pins_of
from provisioner.engine.models import Operation
from provisioner.engine.overviews import OperationOverview, operation_overview
from provisioner.lib.prepared import Prepared
from provisioner.web.notices import Action

BUILDS_SHOWN = 10
WORKSPACES_NAMED = 10


@dataclass(frozen=True, kw_only=True)
class SnapshotLine:
    """A published snapshot, what uses it, and how many changes it is behind.

    `behind` is None if unknown. Only administrators see whose workspaces use it; others
    see how many.
    """

    pins: Pins
    behind: int | None

    @property
    def snapshot(self) -> Snapshot:
        return self.pins.snapshot

    # A hundred on one page: without a template for each.
    @property
    def workspaces(self) -> list[SafeString]:
        """The named workspaces of it, each with a link, its owner and its state."""
        return [_named(row) for row in self.pins.workspaces]

    @property
    def actions(self) -> list[Action]:
        """The actions for those who manage its template."""
        snapshot = self.snapshot
        of = f" of change {snapshot.change}"
        describe = Action(
            label="Label and notes",
            url=reverse("snapshot-describe", args=[snapshot.pk]),
            look="link",
            about=of,
        )
        if snapshot.is_withdrawn:
            return [describe]
        withdraw = Action(
            label="Withdraw…",
            url=reverse("snapshot-withdraw", args=[snapshot.pk]),
            look="link",
            about=of,
        )
        if snapshot.is_held:
            release = Action(
                label="Release",
                url=reverse("snapshot-release", args=[snapshot.pk]),
                is_post=True,
                about=of,
            )
            return [release, describe, withdraw]
        use = Action(
            label="Use this one",
            url=reverse("snapshot-hold", args=[snapshot.pk]),
            look="link",
            about=of,
        )
        return [*([use] if snapshot.is_complete else []), describe, withdraw]


def _named(row: Any) -> SafeString:
    of = (row.name, row.owner.username, row.get_state_display().lower())
    if row.is_pooled:
        return format_html("{} in a warm pool of {}: {}", *of)
    url = reverse("workspace-detail", args=[row.pk])
    return format_html('<a href="{}">{}</a> of {}: {}', url, *of)


def snapshots_of(template: Template, *, named: int) -> list[SnapshotLine]:
    """Return the published snapshots of a template, newest first.

    At most `named` workspaces of each are listed by name.
    """
    pins = pins_of(template, named=named)
    behind = behind_of([pin.snapshot for pin in pins])
    return [SnapshotLine(pins=pin, behind=behind.get(pin.snapshot.pk)) for pin in pins]


@dataclass(frozen=True, kw_only=True)
class TemplateOverview:
    """A template as one person sees it; only what a page shows is queried.

    `operations` are its latest ones, newest first.
    """

    template: Template
    user: User
    operations: list[Operation]

    @property
    def newest(self) -> Operation | None:
        return self.operations[0] if self.operations else None

    @cached_property
    def running(self) -> OperationOverview | None:
        """Its latest operation while that runs, the only one shown with steps."""
        newest = self.newest
        is_running = newest is not None and newest.state == Operation.State.RUNNING
        return operation_overview(newest) if newest and is_running else None

    @property
    def progress_title(self) -> str:
        is_going = self.template.state == Template.State.DELETING
        return "Deleting" if is_going else "Building"

    @property
    def can_stop_build(self) -> bool:
        """Whether its reader may stop the build that is running."""
        is_building = self.template.state == Template.State.BUILDING
        return is_building and self.user.is_administrator

    @cached_property
    def volume_change(self) -> Operation | None:
        """The latest change of its volume."""
        return _CHANGES.first(self.template.subject_id)

    @property
    def builds(self) -> list[Operation]:
        latest = self.operations[:BUILDS_SHOWN]
        return [one for one in latest if one.kind == TemplateOperation.BUILD]

    @property
    def durations(self) -> Durations:
        """How long its builds took."""
        return durations_of(self.operations)

    @cached_property
    def snapshots(self) -> list[SnapshotLine]:
        named = WORKSPACES_NAMED if self.user.is_administrator else 0
        return snapshots_of(self.template, named=named)

    @cached_property
    def freshness(self) -> Freshness | None:
        """Its freshness; None if unknown."""
        references = {
            line.snapshot.template_id: line.snapshot
            for line in self.snapshots
            if line.pins.is_reference
        }
        return freshness_since(references).get(self.template.pk)

    @property
    def policy(self) -> RefreshPolicy:
        return getattr(self.template, "refresh_policy", RefreshPolicy())

    @cached_property
    def pauses(self) -> list[str]:
        """What stops its refresh besides its own policy."""
        return pauses_of(self.template)

    @property
    def server_pause(self) -> str:
        return server_pause_of(self.template)

    @property
    def watch_error(self) -> str:
        """Why its Perforce server could not be polled, "" if it could."""
        watch = getattr(self.template.site.perforce_server, "watch", None)
        return "" if watch is None else watch.last_error

    @cached_property
    def roll_back_to(self) -> Snapshot | None:
        """The snapshot that can be held after the newest build failed."""
        newest = self.newest
        is_build = newest is not None and newest.kind == TemplateOperation.BUILD
        if newest is None or not is_build or newest.state != Operation.State.FAILED:
            return None
        before = snapshot_before(self.template, build=newest)
        return None if before is None or before.is_held else before

    @property
    def default(self) -> Snapshot | None:
        """The default snapshot of new workspaces."""
        default = (line for line in self.snapshots if line.pins.is_default)
        return next((line.snapshot for line in default), None)

    @property
    def has_default(self) -> bool:
        return self.default is not None

    @property
    def has_available(self) -> bool:
        """Whether any snapshot is available."""
        return any(not line.snapshot.is_withdrawn for line in self.snapshots)

    @property
    def announcement(self) -> str:
        if self.running is not None:
            return self.running.announcement
        return f"{self.template.name}: {self.template.get_state_display()}."


# What says when a template is refreshed and what keeps it from that, and its checks.
_SHOWN_WITH = (
    "owner",
    "refresh_policy",
    "site__perforce_server__watch",
    "site__perforce_server__slot_budget",
    "check_result",
)


_NEWEST = Prepared(
    lambda pk: Operation.objects.filter(
        subject__template=pk, kind__in=TemplateOperation.values
    ).select_related("requested_by")[: BUILDS_PLOTTED + 1]  # one may be running
)
_CHANGES = Prepared(
    lambda subject: Operation.objects.filter(
        subject=subject, kind=VolumeOperation.CHANGE
    )[:1]
)
_SHOWN = Prepared(
    lambda pk: Template.with_deleted.filter(pk=pk).select_related(*_SHOWN_WITH)
)


def find_template_overview(user: User, *, pk: int) -> TemplateOverview | None:
    """Return a template with its snapshots and builds, or None.

    The builds are read first: if the newest has ended, the template's state says how.
    """
    operations = _NEWEST.rows(pk)
    template = _SHOWN.first(pk)
    if template is None or not is_in_scope(user, pk):
        return None
    return TemplateOverview(template=template, user=user, operations=operations)
