"""A template with its snapshots and builds, as its page shows it."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse

from provisioner.accounts.models import User
from provisioner.catalog import refresh_policy
from provisioner.catalog.freshness import (
    Freshness,
    behind_of,
    freshness_of,
    pauses_of,
    policy_in,
    server_pause_of,
)
from provisioner.catalog.models import Snapshot, Template, TemplateOperation
from provisioner.catalog.queries import snapshot_before, templates_ever
from provisioner.catalog.retention import Pins, pins_of
from provisioner.engine.models import Operation
from provisioner.engine.overviews import OperationOverview, operation_overview
from provisioner.engine.queries import operations_visible_to
from provisioner.web.notices import Action

BUILDS_SHOWN = 20


WORKSPACES_NAMED = 20


@dataclass(frozen=True, kw_only=True)
class SnapshotLine:
    """A published snapshot, what uses it, and how many changes it is behind.

    `behind` is None if unknown. Only administrators see whose workspaces use it; others
    see the number.
    """

    pins: Pins
    behind: int | None

    @property
    def snapshot(self) -> Snapshot:
        return self.pins.snapshot

    @property
    def actions(self) -> list[Action]:
        """What can be done with it, for who looks after its template."""
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
        return [*([] if snapshot.parts else [use]), describe, withdraw]


def snapshots_of(template: Template, *, named: int) -> list[SnapshotLine]:
    """Return the published snapshots of a template, newest first.

    So many workspaces of each are named.
    """
    pins = pins_of(template, named=named)
    behind = behind_of([pin.snapshot for pin in pins])
    return [SnapshotLine(pins=pin, behind=behind.get(pin.snapshot.pk)) for pin in pins]


@dataclass(frozen=True, kw_only=True)
class TemplateOverview:
    """`last` is its newest build, `builds` the last twenty of them.

    `freshness` is None where it is not known; `pauses` and `server_pause` say what
    stops its refresh besides its own policy, `watch_error` why its Perforce server
    could not be asked.
    """

    template: Template
    snapshots: list[SnapshotLine]
    last: OperationOverview | None
    builds: list[Operation]
    freshness: Freshness | None
    policy: refresh_policy.Policy
    pauses: list[str]
    server_pause: str
    watch_error: str
    roll_back_to: Snapshot | None

    @property
    def default(self) -> Snapshot | None:
        """What a new workspace gets unasked."""
        default = (line for line in self.snapshots if line.pins.is_default)
        return next((line.snapshot for line in default), None)

    @property
    def has_default(self) -> bool:
        return self.default is not None

    @property
    def has_available(self) -> bool:
        """Whether somebody can get one of the snapshots."""
        return any(not line.snapshot.is_withdrawn for line in self.snapshots)

    @property
    def announcement(self) -> str:
        if self.last is not None and self.last.is_running:
            return self.last.announcement
        return f"{self.template.name}: {self.template.get_state_display()}."


# What says when a template is refreshed, and what keeps it from that.
_REFRESHED_BY = (
    "refresh_policy",
    "site__perforce_server__watch",
    "site__perforce_server__slot_budget",
)


def find_template_overview(user: User, *, pk: int) -> TemplateOverview | None:
    """Return a template with its snapshots and builds, or None.

    The builds are read first: where the newest has ended, the template says how.
    """
    of_it = (
        operations_visible_to(user).filter(subject__template=pk).prefetch_related(None)
    )
    newest = of_it.select_related(None).select_related("requested_by")
    builds = list(newest[:BUILDS_SHOWN])  # the steps of the first alone are shown
    visible = templates_ever(user).select_related(*_REFRESHED_BY)
    template = visible.filter(pk=pk).first()
    if template is None:
        return None
    watch = getattr(template.site.perforce_server, "watch", None)
    return TemplateOverview(
        template=template,
        snapshots=snapshots_of(
            template, named=WORKSPACES_NAMED if user.is_administrator else 0
        ),
        last=operation_overview(builds[0]) if builds else None,
        builds=[each for each in builds if each.kind == TemplateOperation.BUILD],
        freshness=freshness_of(template),
        policy=policy_in(getattr(template, "refresh_policy", None)),
        pauses=pauses_of(template),
        server_pause=server_pause_of(template),
        roll_back_to=_roll_back_to(template, builds),
        watch_error="" if watch is None else watch.last_error,
    )


def _roll_back_to(template: Template, builds: list[Operation]) -> Snapshot | None:
    """Return what can be held instead of what the newest build, which failed, was."""
    newest = builds[0] if builds else None
    is_build = newest is not None and newest.kind == TemplateOperation.BUILD
    if newest is None or not is_build or newest.state != Operation.State.FAILED:
        return None
    before = snapshot_before(template, build=newest)
    return None if before is None or before.is_held else before
