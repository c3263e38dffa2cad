"""Move a template's volume to another aggregate; pause, resume and stop that."""

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
    paused_move,
    place_of,
    require_place_for,
    require_quiet,
    running_move,
)
from provisioner.moves.refusals import (
    MoveIsPaused,
    NoMoveToPause,
    NoMoveToResume,
    NoMoveToStop,
)


def template_move(*, by: User, template: Template, aggregate: str) -> Operation:
    """Begin to move a template's volume to another aggregate of its site.

    It is cloned as before meanwhile, but not built. A repeated call returns the running
    operation; after a stop or a failure it begins again, and after a pause it goes on.

    Raises: NotAllowed, NothingToMove, VolumeBusy, MoveIsPaused, SameAggregate,
    AggregateNotUsable, NoRoomToMove.
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
        paused = paused_move(template)
        if paused is not None and paused.destination != aggregate:
            raise MoveIsPaused(name=template.name, aggregate=paused.destination)
        if paused is None:  # its room is taken there already
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


def template_move_pause(*, by: User, template: Template) -> Operation:
    """Begin to pause the move of a template's volume, which keeps what is replicated.

    The template can be built meanwhile. A repeated call returns the running operation.

    Raises: NotAllowed, NoMoveToPause.
    """
    permissions.require(permissions.can_administer(by))
    with transaction.atomic():
        template = _locked(template)
        running = running_move(template)
        if running is not None and running.kind == MoveOperation.PAUSE:
            return running
        if running is None or running.kind != MoveOperation.MOVE:
            raise NoMoveToPause(name=template.name)
        cancel_operation(running, message=f"{by} paused the move.")
        record_event(
            template,
            kind="template_move_pause_requested",
            message="Requested to pause its move.",
            actor=by,
        )
        return start_operation(MoveOperation.PAUSE, by=by, about=template)


def template_move_resume(*, by: User, template: Template) -> Operation:
    """Go on with the move that was paused. A repeated call returns the running
    operation.

    Raises: NotAllowed, NoMoveToResume, VolumeBusy.
    """
    permissions.require(permissions.can_administer(by))
    paused = paused_move(template)
    if paused is not None:
        return template_move(by=by, template=template, aggregate=paused.destination)
    running = running_move(template)
    if running is None or running.kind != MoveOperation.MOVE:
        raise NoMoveToResume(name=template.name)
    return running


def template_move_stop(*, by: User, template: Template) -> Operation:
    """Begin to stop the move of a template's volume, which stays where it is.

    One that is paused is stopped, too. A repeated call returns the running operation.

    Raises: NotAllowed, NoMoveToStop.
    """
    permissions.require(permissions.can_administer(by))
    with transaction.atomic():
        template = _locked(template)
        running = running_move(template)
        if running is None and paused_move(template) is None:
            raise NoMoveToStop(name=template.name)
        if running is not None:
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
