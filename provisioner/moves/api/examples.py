"""Examples of moves, for the schema."""

from __future__ import annotations

from typing import Any

from provisioner.api.examples import answer, refusal, request_body
from provisioner.engine.api.examples import operation, step
from provisioner.moves.refusals import (
    NoMoveToPause,
    NoMoveToResume,
    NoMoveToStop,
    NoRoomToMove,
)


def _running(kind: str, *steps: dict[str, Any]) -> dict[str, Any]:
    return operation(
        kind, *steps, state="running", ended_at=None, requested_by="admin", template=1
    )


PREVIEW = [
    answer(
        "It fits into aggr2",
        {
            "aggregate": "aggr1",
            "tiering_policy": "none",
            "needed_bytes": 1099511627776,
            "clones": 12,
            "shared_bytes": 6597069766656,
            "aggregates": [
                {
                    "name": "aggr2",
                    "size_bytes": 43980465111040,
                    "room_bytes": 21990232555520,
                    "refusal": None,
                }
            ],
            "refusal": None,
            "operation": None,
            "paused_at": None,
        },
    )
]
MOVE = [
    request_body("To aggr2", {"aggregate": "aggr2"}),
    answer(
        "Started",
        _running(
            "template_move", step("room", "Check the room for it", state="queued")
        ),
        status=202,
    ),
    refusal(
        "Too full",
        NoRoomToMove(name="main", needed="1 TiB", aggregate="aggr2", room="500 GiB"),
    ),
]
PAUSE = [
    answer(
        "Started",
        _running("template_move_pause", step("quiet", "Wait for work in progress")),
        status=202,
    ),
    refusal("Not under way", NoMoveToPause(name="main")),
]
RESUME = [
    answer(
        "Started",
        _running(
            "template_move", step("room", "Check the room for it", state="queued")
        ),
        status=202,
    ),
    refusal("None is paused", NoMoveToResume(name="main")),
]
STOP = [
    answer(
        "Started",
        _running("template_move_stop", step("quiet", "Wait for work in progress")),
        status=202,
    ),
    refusal("Not under way", NoMoveToStop(name="main")),
]
