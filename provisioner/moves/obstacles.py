"""What prevents the move of a template's volume."""

from __future__ import annotations

from provisioner.catalog.models import MOVING_TEMPLATES, Template
from provisioner.engine.models import Operation
from provisioner.lib.sizes import size_text
from provisioner.moves.models import Move, MoveOperation, TemplatePlace
from provisioner.moves.refusals import (
    AggregateNotUsable,
    NoRoomToMove,
    NothingToMove,
    SameAggregate,
    VolumeBusy,
)
from provisioner.sites.models import AggregateSpace
from provisioner.workspaces.models import WorkspaceOperation

_RUNNING = Operation.objects.filter(state=Operation.State.RUNNING)


def running_move(template: Template) -> Operation | None:
    """Return the move, or the end of one, that is under way."""
    return template.operations.filter(
        kind__in=MoveOperation.values, state=Operation.State.RUNNING
    ).first()


def paused_move(template: Template) -> Move | None:
    """Return the move that is paused in ONTAP, as we asked."""
    return Move.objects.filter(template=template, paused_at__isnull=False).first()


def place_of(template: Template) -> TemplatePlace:
    """Return where the template's volume is. Raises: NothingToMove."""
    places = TemplatePlace.objects.filter(template=template)
    place = places.select_related("template__site").first()
    if place is None or not template.volume_uuid or not template.aggregate:
        raise NothingToMove(name=template.name)
    return place


def require_quiet(template: Template) -> None:
    """Refuse to move a volume with which something else is done.

    Raises: VolumeBusy.
    """
    if template.state in MOVING_TEMPLATES:
        what = f"the template is {template.get_state_display().lower()}"
    elif _RUNNING.filter(subject__template=template).exists():
        what = "another operation is under way"
    elif _RUNNING.filter(subject__mirror__template=template).exists():
        what = "a mirror of it is being changed or filled"
    elif _RUNNING.filter(
        kind=WorkspaceOperation.SPLIT, subject__workspace__template=template
    ).exists():
        what = "one of its clones is being split"
    else:
        return
    raise VolumeBusy(name=template.name, what=what)


def require_place_for(place: TemplatePlace, *, aggregate: str) -> None:
    """Refuse an aggregate that cannot take the volume, as far as rows tell.

    Raises: SameAggregate, AggregateNotUsable, NoRoomToMove.
    """
    template = place.template
    if aggregate == place.aggregate:
        raise SameAggregate(name=template.name, aggregate=aggregate)
    spaces = AggregateSpace.objects.filter(site=template.site, name=aggregate)
    space = spaces.select_related("site").first()
    if space is None:
        raise AggregateNotUsable(site=template.site.name, aggregate=aggregate)
    needed = place.footprint_bytes or 0
    if needed >= space.room_bytes:
        raise NoRoomToMove(
            name=template.name,
            needed=size_text(needed),
            aggregate=aggregate,
            room=size_text(space.room_bytes),
        )
