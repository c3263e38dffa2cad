"""Asking owners about what looks abandoned, and retiring it, many at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from provisioner.accounts.models import User
from provisioner.workspaces import notices, permissions, states
from provisioner.workspaces.abandonment import Abandonment, abandonment_of
from provisioner.workspaces.actions.retiring import workspace_retire
from provisioner.workspaces.errors import (
    ActionRefused,
    InvalidRequest,
    NotAbandoned,
    WorkspaceNotReady,
)
from provisioner.workspaces.models import Notice, Operation, Unsaved, Workspace

MOST_AT_A_TIME = 200


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What happens to one of many: "retire", "notify" or "refused", and why."""

    workspace: Workspace
    word: str
    sentence: str
    code: str = ""
    operation: Operation | None = None


def abandoned_notify(*, by: User, pks: Sequence[int]) -> list[Outcome]:
    """Ask the owners of workspaces that look abandoned whether they need them.

    At most one mail a day and workspace, whoever asks.

    Raises: NotAllowed, InvalidRequest.
    """

    def notify(workspace: Workspace, abandonment: Abandonment) -> Outcome:
        now = timezone.now()
        notices.say(
            workspace,
            Notice.Kind.ABANDONED,
            due_at=now,
            deadline_at=now.replace(hour=0, minute=0, second=0, microsecond=0),
            data={"reasons": abandonment.reasons, "asked_by": by.username},
        )
        states.record_event(
            workspace,
            kind="owner_asked",
            message=f"Asked {workspace.owner} whether it is still needed: "
            f"{abandonment.sentence}",
            actor=by,
        )
        return Outcome(
            workspace=workspace,
            word="notify",
            sentence=f"A mail goes to {workspace.owner.email}."
            if workspace.owner.email
            else f"{workspace.owner} has no mail address: nobody is told.",
        )

    return _each(by, pks, notify)


def abandoned_retire(
    *, by: User, pks: Sequence[int], preview: bool = False
) -> list[Outcome]:
    """Retire workspaces that look abandoned, with what is not submitted rescued.

    With `preview`, only say what would happen. One that was used since it was listed
    is refused; so are those that are on their way already.

    Raises: NotAllowed, InvalidRequest.
    """

    def retire(workspace: Workspace, abandonment: Abandonment) -> Outcome:
        sentence = "It is retired; what is not submitted is rescued first."
        if workspace.keep_reason:
            sentence += f" It was kept: {workspace.keep_reason}"
        operation = None
        if not preview:
            operation = workspace_retire(
                by=by,
                workspace=workspace,
                unsaved=Unsaved.RESCUE,
                reason=f"Asked to retire it as abandoned: {abandonment.sentence}",
                as_abandoned=True,
            )
        return Outcome(
            workspace=workspace, word="retire", sentence=sentence, operation=operation
        )

    return _each(by, pks, retire)


def _each(
    by: User,
    pks: Sequence[int],
    act: Callable[[Workspace, Abandonment], Outcome],
) -> list[Outcome]:
    """Act on each that still looks abandoned, in a transaction of its own."""
    permissions.require(by.is_administrator)
    if not pks:
        raise InvalidRequest("Choose at least one workspace.")
    if len(set(pks)) > MOST_AT_A_TIME:
        raise InvalidRequest(f"Choose up to {MOST_AT_A_TIME} workspaces at a time.")
    known = set(Workspace.objects.filter(pk__in=pks).values_list("pk", flat=True))
    if unknown := sorted(set(pks) - known):
        raise InvalidRequest(f"There is no workspace {unknown[0]}.")
    return [_one(pk, act) for pk in dict.fromkeys(pks)]


def _one(pk: int, act: Callable[[Workspace, Abandonment], Outcome]) -> Outcome:
    with transaction.atomic():
        workspace = (
            Workspace.objects.select_for_update(of=("self",))
            .select_related("owner", "template", "site")
            .get(pk=pk)
        )
        abandonment = abandonment_of(
            workspace, after_days=settings.ABANDONED_AFTER_DAYS, now=timezone.now()
        )
        try:
            if workspace.state != Workspace.State.READY:
                raise WorkspaceNotReady(
                    name=workspace.name, state=workspace.get_state_display().lower()
                )
            if not abandonment.is_abandoned:
                raise NotAbandoned(name=workspace.name)
            with transaction.atomic():
                return act(workspace, abandonment)
        except ActionRefused as refusal:
            return Outcome(
                workspace=workspace,
                word="refused",
                sentence=refusal.sentence,
                code=refusal.code,
            )
