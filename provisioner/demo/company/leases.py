"""Leases of the company's workspaces, with extensions and mails."""

from __future__ import annotations

import datetime as dt

from provisioner.demo.company.events import Log
from provisioner.demo.company.operations import Ran
from provisioner.demo.company.people import People
from provisioner.demo.company.studio import Studio
from provisioner.engine.models import Operation
from provisioner.leases import queries
from provisioner.leases.actions.leases import end_moved
from provisioner.lib.times import recorded
from provisioner.notify.models import Notification
from provisioner.workspaces.models import Workspace

HOUR = dt.timedelta(hours=1)
DAY = dt.timedelta(days=1)
IS_KEPT, IS_EXTENDED = 0.03, 0.25
MAILS_KEPT = 120 * DAY
NO_ADDRESS = "The account {} has no mail address."
KEPT_FOR = (
    "Reference for the port to the next console, until it ships.",
    "The build that was certified: legal wants it for a year.",
    "Captures for the trailer are made here.",
    "The crash of ticket 8812 can be seen in no other tree.",
)


class Leases:
    """Gives workspaces their leases, with the events and mails that go with them."""

    def __init__(self, studio: Studio, *, people: People, log: Log) -> None:
        self._studio, self._people, self._log = studio, people, log

    def first(self, workspace: Workspace) -> None:
        """Give the lease of a new request."""
        policy = queries.BUILT_IN[Workspace.Purpose(workspace.purpose)]
        workspace.expires_at = policy.usual_end(workspace.created_at)

    def keep_until(self, workspace: Workspace, end: dt.datetime) -> None:
        """Extend the lease repeatedly, in time, until `end`."""
        self.first(workspace)
        assert workspace.expires_at is not None
        since = workspace.created_at
        while workspace.expires_at <= end + HOUR:
            earliest = max(since, workspace.expires_at - 5 * DAY)
            at = self._studio.calendar.moment(
                after=earliest, before=min(workspace.expires_at - HOUR / 6, end)
            )
            since = self._extend(workspace, at=at)
        if workspace.state == Workspace.State.READY and not workspace.owner.is_service:
            self._by_now(workspace)

    def tell_of_trash(self, workspace: Workspace, ran: Ran) -> None:
        """Add the mail about a retirement that the owner did not request."""
        if workspace.owner.is_service or ran.ended_at < self._studio.now - MAILS_KEPT:
            return
        self.mail(
            workspace,
            Notification.Kind.TRASHED,
            due_at=ran.ended_at,
            deadline_at=workspace.purge_at,
            operation=ran.operation,
        )

    def mail(
        self,
        workspace: Workspace,
        kind: Notification.Kind,
        *,
        due_at: dt.datetime,
        deadline_at: dt.datetime | None,
        seconds_before: int = 0,
        operation: Operation | None = None,
    ) -> Notification:
        """Add a mail, already sent if it is due and has an address."""
        notice = self._studio.rows.add_later(
            Notification(
                workspace=workspace,
                kind=kind,
                due_at=due_at,
                deadline_at=deadline_at,
                seconds_before=seconds_before,
                operation=operation,
                created_at=min(due_at, self._studio.now),
                data={},
            )
        )
        address = workspace.owner.email
        if due_at > self._studio.now:
            return notice
        if not address:
            notice.voided_at = due_at
            notice.void_reason = NO_ADDRESS.format(workspace.owner.username)
            return notice
        notice.claimed_at = due_at + dt.timedelta(seconds=20)
        notice.sent_at = due_at + dt.timedelta(seconds=21)
        notice.sent_to = address
        soon = "1 day" if seconds_before <= DAY.total_seconds() else "7 days"
        subject = {
            Notification.Kind.LEASE_ENDS: f"ends in {soon}",
            Notification.Kind.TRASHED: "is in the trash",
        }.get(kind, "is of a withdrawn snapshot")
        self._log.tell(
            workspace,
            "notification_sent",
            f"Mail to {address}: Your workspace {workspace.name} {subject}.",
            at=min(notice.sent_at, self._studio.now),
            task="send_notices",
        )
        return notice

    def _extend(self, workspace: Workspace, *, at: dt.datetime) -> dt.datetime:
        before = workspace.expires_at
        policy = queries.BUILT_IN[Workspace.Purpose(workspace.purpose)]
        usual = policy.usual_end(at)
        assert before is not None
        assert usual is not None
        workspace.expires_at = max(usual, before + HOUR / 6)
        self._log.tell(
            workspace,
            "lease_extended",
            f"Extended its lease until {recorded(workspace.expires_at)}.",
            at=at,
            by=workspace.owner,
            data=end_moved(before, workspace.expires_at),
        )
        return at

    def _by_now(self, workspace: Workspace) -> None:
        """Keep some without an end, extend some lately, and add the others' mails."""
        calendar, chance = self._studio.calendar, self._studio.chance
        since = workspace.ready_at or workspace.created_at
        lately = calendar.moment(
            after=max(since, calendar.ago(days=6)), before=calendar.now
        )
        if self._studio.happens(IS_KEPT):
            workspace.expires_at = None
            workspace.keep_reason = chance.choice(KEPT_FOR)
            self._log.tell(
                workspace,
                "workspace_kept",
                "Keeps it without an end.",
                at=lately,
                by=self._people.admin,
                reason=workspace.keep_reason,
            )
            return
        if self._studio.happens(IS_EXTENDED):
            self._extend(workspace, at=lately)
        self._warn(workspace)

    def _warn(self, workspace: Workspace) -> None:
        policy = queries.BUILT_IN[Workspace.Purpose(workspace.purpose)]
        assert workspace.expires_at is not None
        for seconds in policy.warn_seconds:
            due_at = workspace.expires_at - dt.timedelta(seconds=seconds)
            if due_at > workspace.created_at:
                self.mail(
                    workspace,
                    Notification.Kind.LEASE_ENDS,
                    due_at=due_at,
                    deadline_at=workspace.expires_at,
                    seconds_before=seconds,
                )
