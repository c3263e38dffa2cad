"""Examples of bisections for the schema."""

from __future__ import annotations

from typing import Any

from provisioner.api.examples import answer, refusal, request_body
from provisioner.bisect.refusals import BisectionOver, NotBeingTried

_STEP: dict[str, Any] = {
    "change": 5031,
    "user": "bob",
    "title": "Cache shadow maps per light",
    "verdict": "",
    "decided_by": None,
    "reason": "",
    "snapshot": "c5023.b412",
    "snapshot_change": 5023,
    "workspace_id": 4720,
    "workspace_state": "ready",
    "path": "/mnt/cloneyard/w-bisect-7-5031",
    "operation_id": 9031,
    "created_at": "2026-11-24T09:31:00Z",
    "decided_at": None,
}
_SEARCH: dict[str, Any] = {
    "id": 7,
    "template": "main",
    "template_id": 3,
    "owner": "alice",
    "good": 5023,
    "bad": 5040,
    "command": "",
    "state": "running",
    "status_code": "waits_for_verdict",
    "status_message": "Change 5031 is being tested: one of 12 suspects is the first "
    "bad one.",
    "changes_count": 12,
    "suspects_count": 12,
    "steps_left": 4,
    "first_bad": None,
    "current": _STEP,
    "steps": [_STEP],
    "created_at": "2026-11-24T09:30:50Z",
    "ended_at": None,
}
_STARTED = {
    **_SEARCH,
    "status_code": "",
    "status_message": "Perforce is asked what was submitted in between.",
    "changes_count": None,
    "suspects_count": None,
    "steps_left": None,
    "current": None,
    "steps": [],
}
_BAD = {
    **_STEP,
    "verdict": "bad",
    "decided_by": "alice",
    "decided_at": "2026-11-24T09:40:00Z",
}
_FOUND = {
    **_SEARCH,
    "state": "found",
    "status_code": "",
    "status_message": "Change 5031 is the first bad one.",
    "suspects_count": 1,
    "steps_left": 0,
    "first_bad": {key: _STEP[key] for key in ("change", "user", "title")},
    "current": None,
    "steps": [_BAD],
    "ended_at": "2026-11-24T09:40:00Z",
}
_NEXT = {
    **_SEARCH,
    "status_code": "",
    "status_message": "The next step starts soon.",
    "suspects_count": 6,
    "steps_left": 3,
    "current": None,
    "steps": [_BAD],
}

LIST = [answer("Yours", _SEARCH)]
GET = [
    answer("Waits for your verdict", _SEARCH),
    answer("Found", _FOUND),
    answer("Too many wait: ask again", _STARTED, status=202),
]
CREATE = [
    request_body(
        "A command decides",
        {"template": "main", "good": 5023, "bad": 5040, "command": "make -s check"},
    ),
    request_body("You decide", {"template": "main", "good": 5023, "bad": 5040}),
    answer("Started", _STARTED, status=202),
]
VERDICT = [
    request_body("It is bad", {"change": 5031, "verdict": "bad"}),
    answer("The next step", _NEXT),
    refusal("Another change", NotBeingTried(change=5029)),
    refusal("It is over", BisectionOver()),
]
STOP = [
    answer(
        "Stopped",
        {
            **_SEARCH,
            "state": "stopped",
            "status_code": "",
            "status_message": "",
            "current": None,
            "ended_at": "2026-11-24T09:45:00Z",
        },
    )
]
