"""Move a template's volume to another aggregate, and stop that."""

from __future__ import annotations

from django.db import transaction

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.catalog.models import Template
from provisioner.engine.models import Operation
from provisioner.engine.starting import start_operation
from provisioner.engine.states import cancel_operation
from provisioner.moves.models import Move, MoveOperation
from provisioner.moves.obstacles import (
    place_of,
    require_place_for,
    require_quiet,
    running_move,
)
from provisioner.moves.refusals import NoMoveToStop


def template_move(*, by: User, template: Template, aggregate: str) -> Operation:
    """Begin to move a template's volume to another aggregate of its site.

    It is cloned as before meanwhile, but not built. A repeated call returns the running
    operation; after a stop or a failure it begins again.

    Raises: NotAllowed, NothingToMove, VolumeBusy, SameAggregate, AggregateNotUsable,
    NoRoomToMove.
    """
    permissions.require(permissions.can_administer(by))
    with transaction.atomic():
        template = _locked(template)
        place = place_of(template)
        running = running_move(template)
        if _goes_to(running, aggregate):
            assert running is not None
            return running
        require_quiet(template)
        require_place_for(place, aggregate=aggregate)
        record_event(
            template,
            kind="template_move_requested",
            message=f"Requested its move from {place.aggregate} to {aggregate}.",
            actor=by,
        )
        operation = start_operation(MoveOperation.MOVE, by=by, about=template)
        Move.objects.create(
            template=template,
            operation=operation,
            source=place.aggregate,
            destination=aggregate,
        )
    return operation


def template_move_stop(*, by: User, template: Template) -> Operation:
    """Begin to stop the move of a template's volume, which stays where it is.

    A repeated call returns the running operation.

    Raises: NotAllowed, NoMoveToStop.
    """
    permissions.require(permissions.can_administer(by))
    with transaction.atomic():
        template = _locked(template)
        running = running_move(template)
        if running is None:
            raise NoMoveToStop(name=template.name)
        if running.kind == MoveOperation.STOP:
            return running
        cancel_operation(running, message=f"{by} stopped the move.")
        record_event(
            template,
            kind="template_move_stop_requested",
            message="Requested to stop its move.",
            actor=by,
        )
        return start_operation(MoveOperation.STOP, by=by, about=template)


def _goes_to(running: Operation | None, aggregate: str) -> bool:
    moves = Move.objects.filter(operation=running, destination=aggregate)
    return running is not None and moves.exists()


def _locked(template: Template) -> Template:
    # Not as a key: workspaces that refer to it are being asked for meanwhile.
    templates = Template.objects.select_for_update(of=("self",), no_key=True)
    return templates.select_related("site__perforce_server").get(pk=template.pk)
