"""The one writer of the states of requests to end a process."""

from __future__ import annotations

from django.db import transaction

from provisioner.audit_log.actions import record_event
from provisioner.insight.models import ProcessEnding

E = ProcessEnding.State


def settle(ending: ProcessEnding, to: ProcessEnding.State, *, message: str) -> None:
    """Record what became of a request, with its event, unless that is known already."""
    with transaction.atomic():
        moved = ProcessEnding.objects.filter(pk=ending.pk, state=E.REQUESTED).update(
            state=to, message=message
        )
        if moved:
            record_event(
                ending.server,
                kind=f"process_{to.value}",
                message=f"{ending.command} of {ending.user} ({ending.number}) "
                f"{'ended' if to == E.ENDED else 'was not ended'}. {message}",
                actor=ending.requested_by,
            )
