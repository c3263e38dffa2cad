"""The data of the home page and of a workspace's page, each read in few queries."""

from __future__ import annotations

import datetime as dt
import shlex
from dataclasses import dataclass

from django.utils import timezone

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.cloning.models import CloningOperation
from provisioner.dashboard.cards import WorkspaceCard
from provisioner.dashboard.offers import Offers, offers_to
from provisioner.dashboard.setup import Setup, setup_for
from provisioner.engine.models import Operation
from provisioner.engine.overviews import OperationOverview
from provisioner.engine.results import find_result
from provisioner.leases import queries as lease_queries
from provisioner.leases.abandonment import work_seen
from provisioner.lib.limits import Limit
from provisioner.limits.admission import quota_limits
from provisioner.recovery.models import RecoveryOperation
from provisioner.transfer.queries import TransferOverview, transfer_of
from provisioner.workspaces.models import Rescue, Workspace, WorkspaceOperation
from provisioner.workspaces.permissions import can_change_workspace
from provisioner.workspaces.queries import (
    can_be_restored,
    default_to_move_to,
    workspaces_of,
)
from provisioner.workspaces.sharing import shared_with
from provisioner.workspaces.steps.provision import Flushed
from provisioner.workspaces.unsubmitted import (
    UnsubmittedWork,
    unsubmitted_work_of,
    workspaces_with_operations,
)

EVENTS_SHOWN = 50


@dataclass(frozen=True, kw_only=True)
class Home:
    """What the home page shows: the templates on offer, quotas, shares, setup."""

    offers: Offers
    quotas: list[Limit]
    shared: list[WorkspaceCard]
    setup: Setup | None


def home_of(user: User, *, text: str = "") -> Home:
    """Return what a person's home page shows, with the templates that match a text."""
    quotas = quota_limits(user)
    offers = offers_to(user, text=text, quotas=quotas)
    may_need_setup = user.is_administrator or not offers.can_have_one
    needs_setup = may_need_setup and not workspaces_of(user).exists()
    return Home(
        offers=offers,
        quotas=quotas,
        shared=[WorkspaceCard(workspace=w, user=user) for w in shared_with(user)],
        setup=setup_for(user) if needs_setup else None,
    )


_FAVICONS: dict[str, str] = {
    Workspace.State.READY: "img/mark-ready.svg",
    Workspace.State.FAILED: "img/mark-failed.svg",
}


@dataclass(frozen=True, kw_only=True)
class WorkspaceOverview:
    """What a workspace's page shows. `have` is the result of its last flush, or None.

    `may_keep`: the reader may keep it without an end.
    """

    workspace: Workspace
    deadline: lease_queries.Deadline
    may_keep: bool
    may_change: bool
    unsubmitted: UnsubmittedWork
    have: Flushed | None
    events: list[Event]
    command: str
    rescue: Rescue | None = None
    transferred: TransferOverview | None = None
    has_newer: bool = False

    @property
    def last(self) -> OperationOverview | None:
        """The newest operation other than a check."""
        return self.unsubmitted.last

    @property
    def can_be_transferred(self) -> bool:
        """Whether its work can be transferred to a newer snapshot."""
        is_ready = self.workspace.state == Workspace.State.READY
        is_for_work = self.workspace.purpose == Workspace.Purpose.DEVELOPMENT
        return is_ready and is_for_work and self.has_newer

    @property
    def not_restored(self) -> list[str]:
        """Sentences about what the last restore could not bring back."""
        kinds = (
            WorkspaceOperation.RESTORE,
            RecoveryOperation.RECOVER,
            CloningOperation.CLONE,
        )
        if self.last is None or self.last.operation.kind not in kinds:
            return []
        return list((self.last.operation.findings or {}).get("not_restored", []))

    @property
    def can_be_restored(self) -> bool:
        return can_be_restored(self.workspace)

    @property
    def ready_seconds(self) -> float | None:
        """How long its owner waited for it, None before it is ready."""
        if self.workspace.ready_at is None:
            return None
        return (self.workspace.ready_at - self.workspace.created_at).total_seconds()

    @property
    def tab_state(self) -> str:
        """Its state, as in the title of the browser tab."""
        state = self.workspace.get_state_display()
        if not self.workspace.is_moving or self.last is None:
            return state
        return f"{state}, {self.last.settled_count} of {len(self.last.lines)}"

    @property
    def favicon(self) -> str:
        """The icon of the browser tab."""
        if self.workspace.is_moving:
            return "img/mark-running.svg"
        return _FAVICONS.get(self.workspace.state, "img/mark.svg")

    @property
    def work(self) -> list[tuple[str, dt.datetime]]:
        """The last activities in it, each with its time."""
        return work_seen(self.workspace)

    @property
    def announcement(self) -> str:
        if self.last is not None and self.last.is_running:
            return self.last.announcement
        return f"{self.workspace.name}: {self.workspace.get_state_display()}."


def find_workspace_overview(user: User, *, pk: int) -> WorkspaceOverview | None:
    """Return the page of a workspace that the person may see, or None."""
    workspace = workspaces_with_operations(user).filter(pk=pk).first()
    if workspace is None:
        return None
    operations = list(workspace.operations.all())
    policy = lease_queries.policy_for(workspace.template, workspace.purpose)
    return WorkspaceOverview(
        workspace=workspace,
        deadline=lease_queries.deadline_of(workspace, policy, timezone.now()),
        may_keep=user.is_administrator or policy.maximum_seconds is None,
        may_change=can_change_workspace(user, workspace),
        unsubmitted=unsubmitted_work_of(workspace),
        have=_have_of(operations),
        events=list(
            workspace.events.select_related("actor").defer("data")[:EVENTS_SHOWN]
        ),
        command=start_command(workspace),
        rescue=workspace.rescues.with_work().first(),
        transferred=transfer_of(workspace),
        has_newer=default_to_move_to(workspace) is not None,
    )


def _have_of(operations: list[Operation]) -> Flushed | None:
    """Return the result of the newest flush, or None."""
    flushes = (find_result(operation, Flushed) for operation in operations)
    return next(filter(None, flushes), None)


def start_command(workspace: Workspace) -> str:
    """Return the shell command with which its owner starts to work there."""
    enter = f"cd {shlex.quote(str(workspace.path))}"
    if not workspace.client_name:
        return enter
    return f"{enter} && export P4CONFIG=.p4config && p4 login && p4 info"
