"""Examples of transfers for the schema."""

from __future__ import annotations

from typing import Any

from provisioner.api.examples import answer, refusal, request_body
from provisioner.transfer.api.shapes import ConflictSerializer
from provisioner.transfer.refusals import NothingNewer, NothingToAbort
from provisioner.transfer.steps import conflicts
from provisioner.workspaces.api.examples import CREATING

_NEWER: dict[str, Any] = {
    **CREATING,
    "id": 4722,
    "name": "alice-main-2",
    "owner": "alice",
    "purpose": "development",
    "path": "/mnt/cloneyard/w-alice-main-2",
    "client": "cy-alice-main-2-w9f3e1c",
    "client_type": "writeable",
    "p4_user": "alice",
    "operation": {**CREATING["operation"], "id": 9040, "kind": "transfer"},
}
_CONFLICT = ConflictSerializer(
    conflicts.deleted_there("//depot/main/src/shadow.c", change=5040)
).data
TRANSFER = [
    request_body("To the default snapshot", {}),
    request_body(
        "With untracked files, keeping the old one",
        {"snapshot": "c5040.b431", "untracked": True, "retire": False},
    ),
    answer("Started", _NEWER, status=202),
    refusal("Nothing newer", NothingNewer(name="alice-main")),
]
ABORT = [
    answer(
        "Stopped",
        {
            **_NEWER,
            "state": "retiring",
            "operation": {**_NEWER["operation"], "id": 9041, "kind": "retire"},
        },
        status=202,
    ),
    refusal("Not under way", NothingToAbort(name="alice-main-2")),
]
GET = [
    answer(
        "One conflict",
        {
            "source_id": 4711,
            "is_done": True,
            "counts": {
                "opened": 14,
                "merged": 2,
                "untracked": 0,
                "changes": 1,
                "left": {"untracked": 3},
                "left_changes": [],
            },
            "outcome": "",
            "conflicts": [_CONFLICT],
        },
    ),
]
