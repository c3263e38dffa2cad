"""Examples of operations for the schema."""

from __future__ import annotations

from typing import Any

from provisioner.api.examples import REQUEST_ID, answer
from provisioner.engine.api.shapes import WaitSerializer
from provisioner.engine.waits import Wait


def step(name: str, title: str, **others: Any) -> dict[str, Any]:
    """Return the example of a step that is done, with `others` replaced."""
    return {
        "name": name,
        "title": title,
        "state": "done",
        "attempt": 1,
        "started_at": "2026-11-24T09:30:00Z",
        "ended_at": "2026-11-24T09:30:02Z",
        "seconds": 2.0,
        "progress": {},
        "wait": None,
        "exit_code": None,
        "error_code": "",
        "error_message": "",
        **others,
    }


def operation(kind: str, *steps: dict[str, Any], **others: Any) -> dict[str, Any]:
    """Return the example of an operation that has succeeded, with `others` replaced."""
    return {
        "id": 9001,
        "kind": kind,
        "state": "succeeded",
        "status_code": "",
        "status_message": "",
        "findings": None,
        "requested_by": "ci",
        "request_id": REQUEST_ID,
        "created_at": "2026-11-24T09:30:00Z",
        "ended_at": "2026-11-24T09:30:06Z",
        "steps": list(steps),
        "workspace": None,
        "template": None,
        "mirror": None,
        "workspacecopy": None,
        "sandbox": None,
        "qualificationrun": None,
        **others,
    }


WAIT = Wait(server="perforce", before=3, paused_reason="")
WAITING = step(
    "flush",
    "Flush to the change of the snapshot",
    state="queued",
    attempt=0,
    started_at=None,
    ended_at=None,
    seconds=None,
    wait=dict(WaitSerializer(WAIT).data),
)
PROVISIONING = operation(
    "provision",
    step("clone", "Clone the snapshot"),
    WAITING,
    state="running",
    ended_at=None,
    workspace=4711,
)
GET = [answer("Waits for a slot", PROVISIONING)]
LIST = [answer("Of a workspace", PROVISIONING)]
WORKERS = [
    answer(
        "During an upgrade",
        {
            "host": "build-1",
            "process_id": 4711,
            "release": "1.4.0",
            "queues": ["storage", "perforce", "sweeps", "deliveries"],
            "clock_trouble": "",
            "started_at": "2026-08-17T09:00:00Z",
            "heard_at": "2026-08-17T09:30:00Z",
        },
    )
]
