"""Ask owners about abandoned workspaces, and retire them, in bulk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.db import transaction

from provisioner.accounts import permissions
from provisioner.accounts.mails import why_no_mail_to
from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.engine.models import Operation
from provisioner.leases.abandonment import (
    Abandonment,
    abandonment_of,
    looks_abandoned,
)
from provisioner.leases.refusals import AskedAlready, NotAbandoned
from provisioner.lib import clocks
from provisioner.lib.refusals import ActionRefused, InvalidRequest
from provisioner.notify import workspaces
from provisioner.notify.models import Notification
from provisioner.workspaces.actions.retiring import (
    refused_retirements,
    workspace_retire,
)
from provisioner.workspaces.models import Unsubmitted, Workspace
from provisioner.workspaces.refusals import WorkspaceNotReady

MOST_AT_A_TIME = 200


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What happens to one workspace: "retire", "notify" or "refused", and why."""

    workspace: Workspace
    word: str
    sentence: str
    code: str = ""
    operation: Operation | None = None


def workspace_ask_owner(*, by: User, workspace: Workspace) -> Outcome:
    """Ask the owner of an abandoned workspace whether they need it.

    At most one mail per workspace and day, whoever asks.

    Raises: NotAllowed, WorkspaceNotReady, NotAbandoned, AskedAlready.
    """
    permissions.require(by.is_administrator)
    with transaction.atomic():
        workspace, abandonment = _checked_again(workspace)
        now = clocks.database_now()
        notice = workspaces.say(
            workspace,
            Notification.Kind.ABANDONED,
            due_at=now,
            deadline_at=now.replace(hour=0, minute=0, second=0, microsecond=0),
            data={"reasons": abandonment.reasons, "asked_by": by.username},
        )
        if notice.claimed_at is not None:
            raise AskedAlready(owner=workspace.owner, name=workspace.name)
        record_event(
            workspace,
            kind="owner_asked",
            message=f"Asked {workspace.owner} whether it is still needed: "
            f"{abandonment.sentence}",
            actor=by,
        )
    return Outcome(
        workspace=workspace,
        word="notify",
        sentence=f"Nobody is notified. {why_not}"
        if (why_not := why_no_mail_to(workspace.owner))
        else f"A mail goes to {workspace.owner.email}.",
    )


def workspace_retire_abandoned(
    *, by: User, workspace: Workspace, preview: bool = False
) -> Outcome:
    """Retire an abandoned workspace, and rescue unsubmitted work.

    With `preview`, only say what would happen.

    Raises: NotAllowed, WorkspaceNotReady, NotAbandoned, BeingTransferred.
    """
    permissions.require(by.is_administrator)
    with transaction.atomic():
        workspace, abandonment = _checked_again(workspace)
        sentence = "It is retired; unsubmitted work is rescued first."
        if workspace.keep_reason:
            sentence += f" It was kept: {workspace.keep_reason}"
        operation = None
        if preview:
            refused = refused_retirements(by=by, workspaces=[workspace])
            if workspace.pk in refused:
                raise refused[workspace.pk]
        else:
            operation = workspace_retire(
                by=by,
                workspace=workspace,
                unsubmitted=Unsubmitted.RESCUE,
                reason=f"Requested its retirement as abandoned: {abandonment.sentence}",
                as_abandoned=True,
            )
    return Outcome(
        workspace=workspace, word="retire", sentence=sentence, operation=operation
    )


def _checked_again(workspace: Workspace) -> tuple[Workspace, Abandonment]:
    """Lock a workspace that still looks abandoned, until the transaction ends.

    Raises: WorkspaceNotReady, NotAbandoned.
    """
    locked = (
        Workspace.objects.select_for_update(of=("self",))
        .select_related("owner", "template", "site")
        .get(pk=workspace.pk)
    )
    if locked.state != Workspace.State.READY:
        raise WorkspaceNotReady(
            name=locked.name, state=locked.get_state_display().lower()
        )
    now = clocks.database_now()
    if not Workspace.objects.filter(looks_abandoned(now=now), pk=locked.pk).exists():
        raise NotAbandoned(name=locked.name)
    return locked, abandonment_of(locked, now=now)


def abandoned_notify(*, by: User, pks: Sequence[int]) -> list[Outcome]:
    """Ask the owners of workspaces that look abandoned whether they need them.

    Raises: NotAllowed, InvalidRequest.
    """
    return _each(by, pks, lambda one: workspace_ask_owner(by=by, workspace=one))


def abandoned_retire(
    *, by: User, pks: Sequence[int], preview: bool = False
) -> list[Outcome]:
    """Retire abandoned workspaces, and rescue unsubmitted work.

    With `preview`, only say what would happen. A workspace that was used since it was
    listed is refused, and so is one that is already being retired.

    Raises: NotAllowed, InvalidRequest.
    """
    return _each(
        by,
        pks,
        lambda one: workspace_retire_abandoned(by=by, workspace=one, preview=preview),
    )


def _each(
    by: User, pks: Sequence[int], act: Callable[[Workspace], Outcome]
) -> list[Outcome]:
    """Act on each workspace in its own transaction. A refusal is an outcome as well."""
    permissions.require(by.is_administrator)
    if not pks:
        raise InvalidRequest("Choose at least one workspace.")
    if len(set(pks)) > MOST_AT_A_TIME:
        raise InvalidRequest(f"Choose up to {MOST_AT_A_TIME} workspaces at a time.")
    known = Workspace.objects.select_related("owner").in_bulk(set(pks))
    if unknown := sorted(set(pks) - known.keys()):
        raise InvalidRequest(f"There is no workspace {unknown[0]}.")
    return [_one(known[pk], act) for pk in dict.fromkeys(pks)]


def _one(workspace: Workspace, act: Callable[[Workspace], Outcome]) -> Outcome:
    try:
        return act(workspace)
    except ActionRefused as refusal:
        return Outcome(
            workspace=workspace,
            word="refused",
            sentence=refusal.sentence,
            code=refusal.code,
        )
