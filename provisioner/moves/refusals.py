"""Why a move is refused."""

from __future__ import annotations

from provisioner.lib.refusals import ActionRefused


class NothingToMove(ActionRefused):
    """It is not known yet where the volume of “{name}” is. Build the template, then
    wait some minutes."""

    code = "nothing_to_move"


class VolumeBusy(ActionRefused):
    """The volume of “{name}” is busy: {what}. Wait until that has ended."""

    code = "volume_busy"


class SameAggregate(ActionRefused):
    """The volume of “{name}” is in the aggregate {aggregate} already."""

    code = "same_aggregate"


class AggregateNotUsable(ActionRefused):
    """The SVM at {site} has no aggregate {aggregate}. A storage administrator can
    assign it."""

    code = "aggregate_not_usable"


class NoRoomToMove(ActionRefused):
    """The volume of “{name}” needs {needed}, but the aggregate {aggregate} has room for
    {room}. Free space there, or choose another one."""

    code = "no_room_to_move"


class NoMoveToStop(ActionRefused):
    """The volume of “{name}” is not being moved."""

    code = "no_move_to_stop"


class NoMoveToPause(ActionRefused):
    """The volume of “{name}” is not being moved."""

    code = "no_move_to_pause"


class NoMoveToResume(ActionRefused):
    """No move of “{name}” is paused."""

    code = "no_move_to_resume"


class MoveIsPaused(ActionRefused):
    """A move of “{name}” to {aggregate} is paused. Resume it, or stop it first."""

    code = "move_is_paused"
