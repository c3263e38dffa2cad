"""Actions on copies: switch them on or off for a mirror, transfer, delete."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from django.db import transaction

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.audit_log.changes import changes_between
from provisioner.copies.events import before_copying
from provisioner.copies.models import (
    LEAST_MINUTES,
    MOST_MINUTES,
    MOVING_COPIES,
    CopiedSnapshot,
    CopyOperation,
    CopyParameters,
    CopyRule,
    WorkspaceCopy,
)
from provisioner.copies.queries import (
    RETRIED_AFTER,
    obstacle_of,
    places_of,
    rule_at,
    rule_for,
)
from provisioner.copies.refusals import CopyBusy, CopyHindered
from provisioner.copies.states import set_copy_state
from provisioner.engine.models import Operation
from provisioner.engine.starting import start_operation
from provisioner.lib import clocks
from provisioner.lib.refusals import InvalidRequest, StateChanged
from provisioner.mirrors.models import Mirror
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.permissions import can_change_workspace


def copy_rule_set(
    *, by: User, mirror: Mirror, every_minutes: int, purposes: Sequence[str]
) -> CopyRule:
    """Have workspaces of a mirror's template copied to its site, from now on.

    Those at the mirror's site are copied to the template's home. A sweep makes the
    copies, a few at a time.

    Raises: NotAllowed, InvalidRequest.
    """
    permissions.require(permissions.can_manage_templates(by))
    if not LEAST_MINUTES <= every_minutes <= MOST_MINUTES:
        raise InvalidRequest.at(
            "every_minutes", f"Give {LEAST_MINUTES} to {MOST_MINUTES} minutes."
        )
    if not purposes:
        raise InvalidRequest.at("purposes", "Choose at least one purpose.")
    settings = {"every_minutes": every_minutes, "purposes": sorted(set(purposes))}
    with transaction.atomic():
        Mirror.objects.select_for_update(of=("self",), no_key=True).get(pk=mirror.pk)
        known = rule_at(mirror)
        rule = known or CopyRule(
            template=mirror.template,
            site=mirror.site,
            second_site=mirror.template.site,
        )
        before = {name: getattr(rule, name) if known else None for name in settings}
        changes = changes_between(before, settings)
        if changes:
            for name, value in settings.items():
                setattr(rule, name, value)
            rule.save()
            record_event(
                mirror.template,
                kind="copies_switched_on",
                message=f"Workspaces are copied to {rule.site.name}, and those there "
                f"to {rule.second_site.name}, every {every_minutes} minutes.",
                actor=by,
                data=changes,
            )
    return rule


def copy_rule_delete(*, by: User, rule: CopyRule) -> None:
    """Stop copying workspaces; a sweep deletes the copies.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_manage_templates(by))
    with transaction.atomic():
        deleted, _ = CopyRule.objects.filter(pk=rule.pk).delete()
        if deleted:
            record_event(
                rule.template,
                kind="copies_switched_off",
                message=f"Workspaces are no longer copied to {rule.site.name}, nor "
                f"those there to {rule.second_site.name}. The copies are deleted.",
                actor=by,
            )


def copy_transfer(*, by: User, copy: WorkspaceCopy) -> Operation:
    """Transfer what changed in a workspace since the last time, now.

    Raises: NotAllowed, CopyHindered, CopyBusy, LimitReached.
    """
    workspace = copy.workspace
    permissions.require(can_change_workspace(by, workspace))
    if workspace.state != Workspace.State.READY:
        raise CopyHindered(f"The workspace “{workspace.name}” is not ready.")
    obstacle = obstacle_of(copy, places_of([copy])[copy.pk])
    if obstacle not in ("", copy.status_message):  # what failed may be tried again
        raise CopyHindered(obstacle)
    return begin_transfer(by=by, copy=copy)


def begin_transfer(*, by: User, copy: WorkspaceCopy) -> Operation:
    """Begin a transfer; the next one is due after the rule's interval.

    Raises: CopyBusy, LimitReached (there is no place for its volume).
    """
    rule = rule_for(copy)
    now = clocks.database_now()
    with transaction.atomic():
        if not copy.volume_uuid:
            before_copying.send(WorkspaceCopy, workspace=copy.workspace, site=copy.site)
        _set_state(
            copy,
            WorkspaceCopy.State.TRANSFERRING,
            due_at=now + rule.interval if rule else now,
        )
        copied = CopiedSnapshot.objects.create(copy=copy)
        return start_operation(
            CopyOperation.TRANSFER,
            about=copy,
            by=by,
            parameters=CopyParameters(copied=copied.pk),
            is_background=True,
        )


def put_off(copy: WorkspaceCopy, *, why: str) -> None:
    """Let a copy that a limit refuses wait for its next attempt, and say why."""
    later = clocks.database_now() + RETRIED_AFTER
    resting = WorkspaceCopy.objects.exclude(state__in=MOVING_COPIES)
    resting.filter(pk=copy.pk).update(status_message=why, due_at=later)


def begin_deletion(*, by: User, copy: WorkspaceCopy) -> Operation:
    """Begin to delete a copy with its relationship and its volume.

    Raises: CopyBusy.
    """
    with transaction.atomic():
        _set_state(copy, WorkspaceCopy.State.DELETING)
        return start_operation(
            CopyOperation.DELETE, about=copy, by=by, is_background=True
        )


def _set_state(
    copy: WorkspaceCopy,
    to: WorkspaceCopy.State,
    *,
    due_at: dt.datetime | None = None,
) -> None:
    try:
        set_copy_state(copy, to, due_at=due_at)
    except StateChanged as error:
        name, site = copy.workspace.name, copy.site.name
        raise CopyBusy(name=name, site=site) from error
