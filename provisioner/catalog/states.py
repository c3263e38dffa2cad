"""The one writer of a template's state: a table of moves, each a filtered UPDATE."""

from __future__ import annotations

from functools import partial

from django.db import transaction

from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.catalog.models import Template
from provisioner.engine.states import log, sources_of
from provisioner.lib.refusals import StateChanged

T = Template.State


TEMPLATE_TRANSITIONS: dict[Template.State, tuple[Template.State, ...]] = {
    T.NEW: (T.BUILDING, T.DELETING),
    T.BUILDING: (T.READY, T.FAILED),
    T.READY: (T.BUILDING, T.FAILED, T.DELETING),
    T.FAILED: (T.BUILDING, T.DELETING),
    T.DELETING: (T.DELETED, T.FAILED),
    T.DELETED: (),
}


def set_template_state(
    template: Template,
    to: Template.State,
    *,
    code: str = "",
    message: str = "",
    actor: User | None = None,
) -> None:
    """Move a template, with its event.

    Raises: StateChanged if the row is in a state that does not lead here.
    """
    with transaction.atomic():
        moved = Template.objects.filter(
            pk=template.pk, state__in=sources_of(TEMPLATE_TRANSITIONS, to=to)
        ).update(state=to, status_code=code, status_message=message)
        if not moved:
            raise StateChanged
        template.state = to
        record_event(
            template,
            kind=f"template_{to.value}",
            message=message or f"{to.label}.",
            actor=actor,
        )
        transaction.on_commit(
            partial(
                log.info,
                "template_state_changed",
                template_id=template.pk,
                state=to.value,
                status_code=code,
            )
        )
