"""Pause and resume Cloneyard's use of a Perforce server."""

from __future__ import annotations

from django.db import transaction

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.engine.dispatch import give_slots
from provisioner.engine.models import SlotBudget
from provisioner.lib import clocks
from provisioner.lib.refusals import InvalidRequest
from provisioner.sites.models import PerforceServer

LONGEST_REASON = 500


def perforce_server_pause(
    *, by: User, server: PerforceServer, reason: str
) -> SlotBudget:
    """Pause a server: no step that uses it starts, and none of its templates is
    refreshed.

    Running steps continue. Pausing again replaces the reason.

    Raises: NotAllowed, InvalidRequest.
    """
    permissions.require(permissions.can_administer(by))
    reason = _reason(reason)
    if not reason:
        raise InvalidRequest("Give a reason. People who wait read it.")
    with transaction.atomic():
        slot_budget, _ = SlotBudget.objects.update_or_create(
            server=server,
            defaults={
                "paused_at": clocks.database_now(),
                "paused_by": by,
                "paused_reason": reason,
            },
        )
        record_event(
            server,
            kind="perforce_server_paused",
            message="Paused what uses it.",
            reason=reason,
            actor=by,
        )
    return slot_budget


def perforce_server_resume(
    *, by: User, server: PerforceServer, reason: str = ""
) -> bool:
    """Resume a server; return whether it was paused.

    Raises: NotAllowed, InvalidRequest.
    """
    permissions.require(permissions.can_administer(by))
    reason = _reason(reason)
    with transaction.atomic():
        was_paused = (
            SlotBudget.objects.filter(server=server)
            .exclude(paused_at=None)
            .update(paused_at=None, paused_by=None, paused_reason="")
        )
        if was_paused:
            record_event(
                server,
                kind="perforce_server_resumed",
                message="Resumed what uses it.",
                reason=reason,
                actor=by,
            )
        give_slots(server.pk)
    return bool(was_paused)


def _reason(reason: str) -> str:
    """Return a reason, stripped.

    Raises: InvalidRequest.
    """
    reason = reason.strip()
    if len(reason) > LONGEST_REASON:
        raise InvalidRequest(f"A reason has at most {LONGEST_REASON} characters.")
    return reason
