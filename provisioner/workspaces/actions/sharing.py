"""Share a workspace's pages, and open its directory to others."""

from __future__ import annotations

import datetime as dt

from django.db import transaction
from procrastinate.contrib.django import app

from provisioner.accounts import permissions
from provisioner.accounts.models import Team, User
from provisioner.audit_log.actions import record_event
from provisioner.audit_log.changes import changes_between
from provisioner.engine.deferring import defer_once
from provisioner.lib import clocks
from provisioner.lib.refusals import InvalidRequest, TooMany
from provisioner.lib.times import recorded
from provisioner.sites.models import OpenTo
from provisioner.workspaces.models import Share, Workspace
from provisioner.workspaces.permissions import can_change_workspace
from provisioner.workspaces.refusals import (
    AlreadyTheirs,
    NobodyOfThatName,
    WorkspaceNotReady,
)

MOST_SHARES = 100
APPLY_EXPORTS = "apply_exports"


def workspace_share(
    *,
    by: User,
    workspace: Workspace,
    person: str = "",
    team: str = "",
    may_clone: bool = False,
    ends_at: dt.datetime | None = None,
) -> Share:
    """Let a person or a team view a workspace, until it ends. Safe to repeat.

    They see its pages and path, and can change nothing. Files are not touched: their
    modes and the hosts that mount the tree decide who can read them. With `may_clone`
    they may clone it as it is, and then read every file in their clone. Sharing again
    sets `may_clone` and `ends_at` as said. An unknown name is reported: see “Who may
    read” in docs/architecture.md.

    Raises: NotAllowed, InvalidRequest, NobodyOfThatName, AlreadyTheirs,
    WorkspaceNotReady, TooMany.
    """
    permissions.require(can_change_workspace(by, workspace))
    if bool(person) == bool(team):
        raise InvalidRequest("Name a person or a team.")
    if ends_at is not None and ends_at <= clocks.database_now():
        raise InvalidRequest.at("ends_at", "Give an end in the future.")
    reader = _person(person, workspace) if person else _team(team, workspace)
    with transaction.atomic():
        workspace = Workspace.objects.select_for_update(of=("self",)).get(
            pk=workspace.pk
        )
        if workspace.is_put_away:
            raise WorkspaceNotReady(
                name=workspace.name, state=workspace.get_state_display().lower()
            )
        named = {"person": reader} if isinstance(reader, User) else {"team": reader}
        share = workspace.shares.filter(**named).first()
        if share is not None:
            if (share.may_clone, share.ends_at) != (may_clone, ends_at):
                share.may_clone, share.ends_at = may_clone, ends_at
                share.save(update_fields=["may_clone", "ends_at"])
                _record_shared(share, by=by)
            return share
        workspace.shares.ended().delete()
        if workspace.shares.count() >= MOST_SHARES:
            raise TooMany(
                most=MOST_SHARES,
                things="people and teams that a workspace is shared with",
                instead="Share it with a team.",
            )
        share = Share.objects.create(
            workspace=workspace,
            created_by=by,
            may_clone=may_clone,
            ends_at=ends_at,
            **named,
        )
        _record_shared(share, by=by)
    return share


def _record_shared(share: Share, *, by: User) -> None:
    how = "who may clone it" if share.may_clone else "read-only"
    until = f", until {recorded(share.ends_at)}" if share.ends_at else ""
    record_event(
        share.workspace,
        kind="workspace_shared",
        message=f"Shared with {share}, {how}{until}.",
        actor=by,
        data={
            **_named(share),
            "may_clone": share.may_clone,
            "ends_at": share.ends_at.isoformat() if share.ends_at else None,
        },
    )


def _named(share: Share) -> dict[str, str]:
    return {
        "person": share.person.get_username() if share.person else "",
        "team": share.team.name if share.team else "",
    }


def workspace_unshare(*, by: User, share: Share) -> None:
    """Revoke a share. Safe to repeat.

    Raises: NotAllowed.
    """
    permissions.require(can_change_workspace(by, share.workspace))
    with transaction.atomic():
        gone, _ = Share.objects.filter(pk=share.pk).delete()
        if gone:
            record_event(
                share.workspace,
                kind="workspace_unshared",
                message=f"No longer shared with {share}.",
                actor=by,
                data=_named(share),
            )


def workspace_open(*, by: User, workspace: Workspace, to: OpenTo) -> Workspace:
    """Set who may enter the root directory of a workspace. Safe to repeat.

    ONTAP sets its mode; files below keep theirs. Perforce permissions are not checked:
    everybody in the owner's group gets in.

    Raises: NotAllowed, WorkspaceNotReady.
    """
    permissions.require(can_change_workspace(by, workspace))
    with transaction.atomic():
        workspace = (
            Workspace.objects.select_for_update(of=("self",))
            .select_related("site")
            .get(pk=workspace.pk)
        )
        if workspace.is_put_away:
            raise WorkspaceNotReady(
                name=workspace.name, state=workspace.get_state_display().lower()
            )
        before = workspace.open_to
        # Said once more, it is set once more: its mode may have been changed by hand.
        workspace.opened_to, workspace.root_mode = to, ""
        workspace.save(update_fields=["opened_to", "root_mode"])
        if before != to:
            record_event(
                workspace,
                kind="workspace_opened",
                message=f"Opened its directory to {to.label}.",
                actor=by,
                data=changes_between({"opened_to": before}, {"opened_to": to}),
            )
        site_id = workspace.site_id
        job = app.configure_task(
            APPLY_EXPORTS, queue="storage", queueing_lock=f"{APPLY_EXPORTS}.{site_id}"
        )
        defer_once(job, site_id=site_id)
    return workspace


def _person(name: str, workspace: Workspace) -> User:
    """Return the person with a username, unless they have access already.

    Raises: NobodyOfThatName, AlreadyTheirs.
    """
    person = User.objects.filter(username=_known(name), is_active=True).first()
    if person is None:
        raise NobodyOfThatName(what="person", name=name)
    owner = workspace.owner
    is_mate = owner.team_id is not None and person.team_id == owner.team_id
    if person.pk == owner.pk or is_mate:
        raise AlreadyTheirs(who=name)
    return person


def _team(name: str, workspace: Workspace) -> Team:
    """Return the team of that name, unless it is the owner's.

    Raises: NobodyOfThatName, AlreadyTheirs.
    """
    team = Team.objects.filter(name=_known(name)).first()
    if team is None:
        raise NobodyOfThatName(what="team", name=name)
    if team.pk == workspace.owner.team_id:
        raise AlreadyTheirs(who=f"The team {name}")
    return team


def _known(name: str) -> str:
    """Return a name without characters that the database cannot store."""
    return name.replace("\0", "\ufffd")
