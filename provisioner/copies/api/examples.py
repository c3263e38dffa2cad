"""Examples of copies for the schema."""

from __future__ import annotations

from typing import Any

from provisioner.api.examples import answer, refusal, request_body
from provisioner.copies.refusals import CopyBusy
from provisioner.engine.api.examples import operation, step

_RULE = {
    "id": 1,
    "template": "main",
    "site": "bangalore",
    "second_site": "munich",
    "every_minutes": 60,
    "purposes": ["development"],
}
_COPY: dict[str, Any] = {
    "id": 12,
    "workspace": 431,
    "name": "alice-main",
    "site": "bangalore",
    "state": "ready",
    "obstacle": "",
    "volume_path": "svm_blr:cy_alice_main_c5f0c2a",
    "due_at": "2026-11-24T10:12:00Z",
    "last_arrived_at": "2026-11-24T09:12:30Z",
    "last_bytes": 3145728,
}
RULES = [answer("Every hour", _RULE)]
SET_RULE = [
    request_body("Every hour", {"mirror": 2, "every_minutes": 60}),
    answer("Switched on", _RULE),
]
COPIES = [answer("Copied", _COPY)]
COPY = [answer("Copied", _COPY)]
TRANSFER = [
    answer(
        "Started",
        operation(
            "copy_transfer",
            step("peered", "Check the peering", state="queued", attempt=0),
            state="running",
            ended_at=None,
            requested_by="alice",
            workspacecopy=12,
        ),
        status=202,
    ),
    refusal("Under way", CopyBusy(name="alice-main", site="bangalore")),
]
