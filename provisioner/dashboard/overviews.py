"""What one check needs, gathered in one call and in few queries."""

from __future__ import annotations

import datetime as dt
import shlex
from dataclasses import dataclass
from typing import Any

from django.db.models import Prefetch, QuerySet
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.dashboard.offers import Offers, offers_to
from provisioner.dashboard.setup import Setup, setup_for
from provisioner.engine.models import Operation, Step
from provisioner.engine.overviews import OperationOverview, operation_overview
from provisioner.leases import queries as lease_queries
from provisioner.leases.abandonment import work_seen
from provisioner.lib.limits import Limit
from provisioner.limits.admission import quota_limits
from provisioner.transfer.models import TransferOperation
from provisioner.transfer.queries import TransferOverview, transfer_of
from provisioner.web.templatetags.cloneyard import ago
from provisioner.workspaces.models import Rescue, Workspace, WorkspaceOperation
from provisioner.workspaces.permissions import can_change_workspace
from provisioner.workspaces.queries import (
    can_be_restored,
    default_to_move_to,
    workspaces_of,
    workspaces_visible_to,
)
from provisioner.workspaces.sharing import shared_with
from provisioner.workspaces.unsubmitted import Findings, findings_of

EVENTS_SHOWN = 50
# So long what a check has found is shown without looking again.
LOOK_HOLDS = dt.timedelta(minutes=5)


@dataclass(frozen=True, kw_only=True)
class Home:
    """A person's workspaces, and templates to get one from."""

    offers: Offers
    quotas: list[Limit]
    shared: list[Workspace]
    setup: Setup | None


def home_of(user: User, *, text: str = "") -> Home:
    """Return what a person has and could get, of templates with all words of a text."""
    quotas = quota_limits(user)
    offers = offers_to(user, text=text, quotas=quotas)
    may_need_setup = user.is_administrator or not offers.can_have_one
    needs_setup = may_need_setup and not workspaces_of(user).exists()
    return Home(
        offers=offers,
        quotas=quotas,
        shared=shared_with(user),
        setup=setup_for(user) if needs_setup else None,
    )


def retired_workspaces_of(user: User) -> QuerySet[Workspace]:
    """Return the workspaces a person had."""
    return workspaces_visible_to(user).filter(owner=user, state=Workspace.State.RETIRED)


_FAVICONS: dict[str, str] = {
    Workspace.State.READY: "img/mark-ready.svg",
    Workspace.State.FAILED: "img/mark-failed.svg",
}


@dataclass(frozen=True, kw_only=True)
class WorkspaceOverview:
    """`last` is the newest operation that was more than a check, `look` the check after
    it, and `have` what the flush proved (None: not yet).

    `may_keep` says whether who looks may keep it without an end.
    """

    workspace: Workspace
    deadline: lease_queries.Deadline
    may_keep: bool
    may_change: bool
    last: OperationOverview | None
    look: OperationOverview | None
    have: dict[str, Any] | None
    events: list[Event]
    command: str
    rescue: Rescue | None = None
    transferred: TransferOverview | None = None
    has_newer: bool = False

    @property
    def can_be_transferred(self) -> bool:
        """Whether there is a newer snapshot that its work could be brought to."""
        is_ready = self.workspace.state == Workspace.State.READY
        is_for_work = self.workspace.purpose == Workspace.Purpose.DEVELOPMENT
        return is_ready and is_for_work and self.has_newer

    @property
    def not_restored(self) -> list[str]:
        """What the last restoration could not bring back, in sentences."""
        if self.last is None or self.last.operation.kind != WorkspaceOperation.RESTORE:
            return []
        return list((self.last.operation.findings or {}).get("not_restored", []))

    @property
    def refused(self) -> Operation | None:
        """The retirement that stopped before it deleted, while it is the last word."""
        if self.last is None:
            return None
        operation = self.last.operation
        is_ready = self.workspace.state == Workspace.State.READY
        has_stopped = operation.state == Operation.State.REFUSED or (
            is_ready and operation.state == Operation.State.FAILED
        )
        return operation if has_stopped else None

    @property
    def can_be_checked(self) -> bool:
        is_ready = self.workspace.state == Workspace.State.READY
        return is_ready and self.workspace.holds_work

    @property
    def check_failed(self) -> bool:
        return (
            self.look is not None
            and self.look.operation.state == Operation.State.FAILED
        )

    @property
    def _seen(self) -> Operation | None:
        """What has found out last what is not submitted, None before anything has.

        While a check goes on it is None too: what there is to choose does not change
        under who chooses.
        """
        if self.look is not None and not self.check_failed:
            operation = self.look.operation
            return operation if operation.state == Operation.State.SUCCEEDED else None
        return self.refused if self.refused and self.refused.findings else None

    @property
    def checked_at(self) -> dt.datetime | None:
        return self._seen.ended_at if self._seen else None

    @property
    def needs_check(self) -> bool:
        """Whether who is about to retire it should not rely on what was found."""
        if self.check_failed or not self.can_be_checked:
            return False
        seen_at = self.checked_at
        return seen_at is None or timezone.now() - seen_at > LOOK_HOLDS

    @property
    def unsaved(self) -> list[Findings]:
        found = self._seen.findings if self._seen else None
        return findings_of(found, root=f"{self.workspace.path}/")

    @property
    def unsaved_sentence(self) -> str:
        if self.checked_at is None:
            return "Not checked yet."
        if not self.can_be_rescued:
            return "It could not be compared with Perforce, so nobody knows."
        count = sum(findings.count for findings in self.unsaved)
        if count == 0:
            return "No unsubmitted work: Perforce has everything that is in it."
        return f"{count:,} {'thing is' if count == 1 else 'things are'} not submitted."

    @property
    def can_be_rescued(self) -> bool:
        """Whether what was found can be; what could not be compared cannot."""
        return not any(findings.kind == "unchecked" for findings in self.unsaved)

    @property
    def can_be_restored(self) -> bool:
        return can_be_restored(self.workspace)

    @property
    def ready_seconds(self) -> float | None:
        """How long its owner waited for it."""
        if self.workspace.ready_at is None:
            return None
        return (self.workspace.ready_at - self.workspace.created_at).total_seconds()

    @property
    def opened_count(self) -> int:
        """How many files are opened in it, when that was last asked."""
        return int((self.workspace.activity.get("opened") or {}).get("count", 0))

    @property
    def opened_since(self) -> SafeString | str:
        """Say how many files are opened by now, "" where the last check says the same.

        Activity is read more often than anybody has a workspace checked.
        """
        seen_at, checked_at = self.workspace.activity_seen_at, self.checked_at
        if seen_at is None or (checked_at is not None and checked_at >= seen_at):
            return ""
        opened = (found.count for found in self.unsaved if found.kind == "opened")
        if self.opened_count == sum(opened):
            return ""
        are = "file is" if self.opened_count == 1 else "files are"
        since = "Since then: " if checked_at is not None else ""
        return format_html(
            "{}{} {} opened, as of {}.",
            *(since, f"{self.opened_count:,}", are, ago(seen_at)),
        )

    @property
    def tab_state(self) -> str:
        """What the tab of the browser says of it."""
        state = self.workspace.get_state_display()
        if not self.workspace.is_moving or self.last is None:
            return state
        return f"{state}, {self.last.settled_count} of {len(self.last.lines)}"

    @property
    def favicon(self) -> str:
        """The icon of the tab, by its state."""
        if self.workspace.is_moving:
            return "img/mark-running.svg"
        return _FAVICONS.get(self.workspace.state, "img/mark.svg")

    @property
    def work(self) -> list[tuple[str, dt.datetime]]:
        """What was last done in it, and when."""
        return work_seen(self.workspace)

    @property
    def announcement(self) -> str:
        if self.last is not None and self.last.is_running:
            return self.last.announcement
        return f"{self.workspace.name}: {self.workspace.get_state_display()}."


def find_workspace_overview(user: User, *, pk: int) -> WorkspaceOverview | None:
    """Return a workspace that the person may see with its story, or None."""
    steps = Prefetch("steps", queryset=Step.objects.order_by("position"))
    workspace = (
        workspaces_visible_to(user)
        .select_related("subject")
        .prefetch_related(
            Prefetch(
                "subject__operations",
                queryset=Operation.objects.select_related(
                    "requested_by"
                ).prefetch_related(steps),
            )
        )
        .filter(pk=pk)
        .first()
    )
    if workspace is None:
        return None
    operations = list(workspace.operations.all())
    is_checked = bool(operations) and operations[0].kind == WorkspaceOperation.CHECK
    others = [each for each in operations if each.kind != WorkspaceOperation.CHECK]
    policy = lease_queries.policy_for(workspace.template, workspace.purpose)
    return WorkspaceOverview(
        workspace=workspace,
        deadline=lease_queries.deadline_of(workspace, policy, timezone.now()),
        may_keep=user.is_administrator or policy.maximum_seconds is None,
        may_change=can_change_workspace(user, workspace),
        last=operation_overview(others[0]) if others else None,
        look=operation_overview(operations[0]) if is_checked else None,
        have=_have_of(operations),
        events=list(
            workspace.events.select_related("actor").defer("data")[:EVENTS_SHOWN]
        ),
        command=start_command(workspace),
        rescue=workspace.rescues.with_work().first(),
        transferred=transfer_of(workspace),
        has_newer=default_to_move_to(workspace) is not None,
    )


def _have_of(operations: list[Operation]) -> dict[str, Any] | None:
    """Return what the newest flush found the have list to be, None before it."""
    for operation in operations:
        for step in operation.steps.all():
            makes = operation.kind in (
                WorkspaceOperation.PROVISION,
                TransferOperation.TRANSFER,
                WorkspaceOperation.RESTORE,
            )
            if makes and step.name == "flush" and step.state == Step.State.DONE:
                return dict(step.result) or None
    return None


def start_command(workspace: Workspace) -> str:
    """Return the line with which its owner begins to work there."""
    enter = f"cd {shlex.quote(str(workspace.path))}"
    if not workspace.client_name:
        return enter
    return f"{enter} && export P4CONFIG=.p4config && p4 login && p4 info"
