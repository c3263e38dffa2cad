"""When a workspace ends: the policies and the deadline.

Pages, API and mails read a Deadline. Nothing else computes dates of leases.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass, field

from django.db.models import Q

from provisioner.catalog.models import Template
from provisioner.leases.models import LeasePolicy
from provisioner.lib import times
from provisioner.lib.prepared import Prepared, among
from provisioner.lib.times import exact
from provisioner.workspaces.models import LEASED, Workspace

HOUR = 3600
DAY = 24 * HOUR


@dataclass(frozen=True, kw_only=True)
class Policy:
    """How long workspaces of a purpose live; all times in seconds.

    Without `default_seconds` leases have no end. Without `maximum_seconds` extensions
    have no limit; otherwise each reaches at most that far from now.
    """

    default_seconds: int | None
    maximum_seconds: int | None
    trash_seconds: int
    warn_seconds: tuple[int, ...]
    source: str = "built-in"

    @property
    def first_warning_seconds(self) -> int:
        return max(self.warn_seconds, default=0)

    def latest(self, now: dt.datetime) -> dt.datetime | None:
        """Return the latest end that a lease may have; None without a limit."""
        if self.maximum_seconds is None:
            return None
        return now + dt.timedelta(seconds=self.maximum_seconds)

    def usual_end(self, now: dt.datetime) -> dt.datetime | None:
        """Return when a lease that begins now ends; None if it does not."""
        if self.default_seconds is None:
            return None
        return now + dt.timedelta(seconds=self.default_seconds)

    def pulled_in(
        self, ends_at: dt.datetime | None, *, now: dt.datetime
    ) -> dt.datetime | None:
        """Return when a running lease ends once this policy applies.

        Never sooner than the time of the first warning, and never later than before. A
        lease without an end gets the usual one, if there is one now.
        """
        if ends_at is None:
            return self.usual_end(now)
        if self.maximum_seconds is None:
            return ends_at
        reach = max(self.maximum_seconds, self.first_warning_seconds)
        return min(ends_at, now + dt.timedelta(seconds=reach))


BUILT_IN = {
    Workspace.Purpose.DEVELOPMENT: Policy(
        default_seconds=30 * DAY,
        maximum_seconds=90 * DAY,
        trash_seconds=72 * HOUR,
        warn_seconds=(7 * DAY, 1 * DAY),
    ),
    Workspace.Purpose.BUILD: Policy(
        default_seconds=1 * DAY,
        maximum_seconds=7 * DAY,
        trash_seconds=0,
        warn_seconds=(),
    ),
    Workspace.Purpose.CI: Policy(
        default_seconds=4 * HOUR,
        maximum_seconds=1 * DAY,
        trash_seconds=0,
        warn_seconds=(),
    ),
    Workspace.Purpose.CI_EDIT: Policy(
        default_seconds=4 * HOUR,
        maximum_seconds=7 * DAY,
        trash_seconds=0,
        warn_seconds=(),
    ),
}


@dataclass(frozen=True)
class Policies:
    """All saved policies, read once: a list of workspaces needs one query."""

    rows: dict[tuple[int | None, str], Policy] = field(default_factory=dict)

    def of(self, template_id: int | None, purpose: str) -> Policy:
        """Return the template's policy, else the purpose's, else the built-in one."""
        for key in ((template_id, purpose), (None, purpose)):
            if key in self.rows:
                return self.rows[key]
        return BUILT_IN[Workspace.Purpose(purpose)]

    def of_workspace(self, workspace: Workspace) -> Policy:
        return self.of(workspace.template_id, workspace.purpose)


def policy_of_row(row: LeasePolicy) -> Policy:
    """Return the policy stored in a row."""
    return Policy(
        default_seconds=row.default_seconds,
        maximum_seconds=row.maximum_seconds,
        trash_seconds=row.trash_seconds,
        warn_seconds=tuple(sorted(set(row.warn_seconds), reverse=True)),
        source="template" if row.template_id else "purpose",
    )


def saved_policies() -> Policies:
    """Read all policies, in one query."""
    return _read(LeasePolicy.objects.all())


_FITTING = Prepared(
    lambda templates: LeasePolicy.objects.filter(
        Q(among("template", templates)) | Q(template__isnull=True)
    ),
)


def policies_of(workspaces: Iterable[Workspace]) -> Policies:
    """Read the policies that may apply to some workspaces, in one query."""
    templates = {workspace.template_id for workspace in workspaces}
    return _read(_FITTING.rows([*templates]))


def _read(rows: Iterable[LeasePolicy]) -> Policies:
    return Policies(
        {(row.template_id, row.purpose): policy_of_row(row) for row in rows}
    )


def policy_for(template: Template, purpose: str) -> Policy:
    """Return the policy for workspaces of a template and purpose."""
    fitting = Q(template=template.pk) | Q(template__isnull=True)
    rows = LeasePolicy.objects.filter(fitting, purpose=purpose)
    return _read(rows).of(template.pk, purpose)


@dataclass(frozen=True, kw_only=True)
class WarningMoment:
    """When a mail goes out, and how long before the end that is."""

    at: dt.datetime
    seconds_before: int


@dataclass(frozen=True, kw_only=True)
class LeaseEnd:
    """What a row of a list says about the end of a workspace, at a moment.

    `ends_at` is None if its lease does not end, or it has none.
    """

    ends_at: dt.datetime | None
    kept_because: str
    is_soon: bool
    is_over: bool


@dataclass(frozen=True, kw_only=True)
class Deadline(LeaseEnd):
    """Everything about the end of one workspace, at a moment.

    `latest_possible` is None if extensions have no limit. `usual_extension` is the end
    after one click, None if that is no later. `then` is "trash" or "remove";
    `restorable_until` is None if there is nothing to restore. `warns_at` are the mails
    still to come. `heartbeat_due_at` is when it ends without another heartbeat, None if
    it has none.
    """

    latest_possible: dt.datetime | None
    maximum_seconds: int | None
    usual_extension: dt.datetime | None
    is_extendable: bool
    warns_at: tuple[WarningMoment, ...]
    then: str
    trash_seconds: int
    restorable_until: dt.datetime | None
    heartbeat_due_at: dt.datetime | None
    sentence: str


def lease_end_of(workspace: Workspace, policy: Policy, now: dt.datetime) -> LeaseEnd:
    """Return when a workspace ends, as of `now`."""
    runs = workspace.state in LEASED
    ends_at = workspace.expires_at if runs else None
    soon_seconds = policy.first_warning_seconds or HOUR
    return LeaseEnd(
        ends_at=ends_at,
        kept_because=workspace.keep_reason if runs else "",
        is_soon=ends_at is not None
        and ends_at - now <= dt.timedelta(seconds=soon_seconds),
        is_over=ends_at is not None and ends_at <= now,
    )


def deadline_of(workspace: Workspace, policy: Policy, now: dt.datetime) -> Deadline:
    """Return when and how a workspace ends, as of `now`."""
    end = lease_end_of(workspace, policy, now)
    ends_at, latest = end.ends_at, policy.latest(now)
    can_reach_further = ends_at is not None and (latest is None or ends_at < latest)
    runs = workspace.state in LEASED
    return Deadline(
        **vars(end),
        latest_possible=latest,
        maximum_seconds=policy.maximum_seconds,
        usual_extension=_usual_extension(policy, ends_at=ends_at, now=now),
        is_extendable=can_reach_further,
        warns_at=warning_moments(workspace, policy, ends_at=ends_at, now=now),
        then="trash" if policy.trash_seconds else "remove",
        trash_seconds=policy.trash_seconds,
        restorable_until=_restorable_until(workspace, policy, ends_at=ends_at),
        heartbeat_due_at=heartbeat_due_at(workspace) if runs else None,
        sentence=_sentence(workspace, policy, now=now),
    )


def heartbeat_due_at(workspace: Workspace) -> dt.datetime | None:
    """Return when the next heartbeat is due; None if none is expected.

    The clock starts when the workspace becomes ready, or fails before that. It does not
    run during provisioning.
    """
    if workspace.heartbeat_seconds is None or workspace.keep_reason:
        return None
    began_at = workspace.ready_at or workspace.failed_at
    if began_at is None or workspace.state == Workspace.State.PROVISIONING:
        return None
    last = max(began_at, workspace.heartbeat_at or began_at)
    return last + dt.timedelta(seconds=workspace.heartbeat_seconds)


def is_silent(workspace: Workspace, now: dt.datetime) -> bool:
    """Return whether the job of a workspace has missed its heartbeat."""
    due_at = heartbeat_due_at(workspace)
    return due_at is not None and due_at <= now


def warning_moments(
    workspace: Workspace,
    policy: Policy,
    *,
    ends_at: dt.datetime | None,
    now: dt.datetime,
) -> tuple[WarningMoment, ...]:
    """Return the mails between now and an end, earliest first.

    Moments in the past are left out: a lease of two hours needs no warning a week
    ahead. Service accounts get no mail.
    """
    if ends_at is None or workspace.owner.is_service:
        return ()
    moments = (
        WarningMoment(at=ends_at - dt.timedelta(seconds=before), seconds_before=before)
        for before in policy.warn_seconds
    )
    return tuple(moment for moment in moments if moment.at >= now)


def _usual_extension(
    policy: Policy, *, ends_at: dt.datetime | None, now: dt.datetime
) -> dt.datetime | None:
    end = policy.usual_end(now) or policy.latest(now)
    if ends_at is None or end is None:
        return None
    # Nobody needs a button for a minute more.
    gain = (end - ends_at).total_seconds()
    return end if gain > min(HOUR, (end - now).total_seconds() / 10) else None


def _restorable_until(
    workspace: Workspace, policy: Policy, *, ends_at: dt.datetime | None
) -> dt.datetime | None:
    if workspace.state == Workspace.State.TRASHED:
        return workspace.purge_at
    if ends_at is None or not policy.trash_seconds:
        return None
    return ends_at + dt.timedelta(seconds=policy.trash_seconds)


def _sentence(workspace: Workspace, policy: Policy, *, now: dt.datetime) -> str:
    if workspace.state in LEASED:
        return _sentence_of_lease(workspace, policy, now=now)
    if workspace.state != Workspace.State.TRASHED or workspace.purge_at is None:
        return f"{workspace.get_state_display()}."
    if workspace.purge_at <= now:
        return "Its time in the trash is over: it will be purged soon."
    age = times.age_text(workspace.purge_at, now=now)
    return f"It can be restored until {exact(workspace.purge_at)} ({age})."


def _sentence_of_lease(
    workspace: Workspace, policy: Policy, *, now: dt.datetime
) -> str:
    if workspace.keep_reason:
        return f"Kept without an end: {workspace.keep_reason}"
    if workspace.expires_at is None:
        return "Its lease does not end."
    if workspace.expires_at <= now:
        return (
            f"Its lease ended on {exact(workspace.expires_at)}: it will be retired "
            "soon unless its lease is extended."
        )
    age = times.age_text(workspace.expires_at, now=now)
    said = f"Its lease ends on {exact(workspace.expires_at)} ({age})."
    due_at = heartbeat_due_at(workspace)
    if due_at is not None and due_at < workspace.expires_at:
        said += f" It ends on {exact(due_at)} without a heartbeat."
    if workspace.holds_work:
        said += " Unsubmitted work is rescued."
    if not policy.trash_seconds:
        return f"{said} It is then purged."
    until = workspace.expires_at + dt.timedelta(seconds=policy.trash_seconds)
    return f"{said} Restorable until {exact(until)}."
