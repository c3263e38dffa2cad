"""Examples of snapshots of workspaces for the schema."""

from __future__ import annotations

from typing import Any

from provisioner.api.examples import answer, refusal, request_body
from provisioner.engine.api.examples import operation, step
from provisioner.workspace_snapshots.refusals import (
    ClientNotRecorded,
    NothingFailed,
    SnapshotsHidden,
)

SNAPSHOTS = [
    answer(
        "Hourly",
        {
            "id": 31,
            "name": "cloneyard-ws-hourly.2026-11-24_0905",
            "taken_at": "2026-11-24T09:05:00Z",
            "is_client_known": True,
        },
    )
]


def _started(kind: str, name: str, title: str) -> dict[str, Any]:
    return operation(
        kind,
        step(name, title, state="queued", attempt=0),
        state="running",
        ended_at=None,
        requested_by="alice",
        workspace=431,
    )


_HIDDEN = refusal("Hidden", SnapshotsHidden(site="munich"))
COMPARE = [
    request_body("With one", {"snapshot": 31}),
    answer(
        "Started",
        _started("compare_snapshot", "compare", "Compare the files"),
        status=202,
    ),
    _HIDDEN,
]
TAKE_BACK = [
    request_body("A file", {"snapshot": 31, "path": "src/main.c"}),
    answer("Started", _started("take_back", "copy", "Copy the files"), status=202),
    _HIDDEN,
]
RETRY = [
    request_body("Of one", {"snapshot": 31}),
    answer("Started", _started("take_back", "copy", "Copy the files"), status=202),
    refusal("Nothing failed", NothingFailed()),
]
RESTORE = [
    request_body("To one", {"snapshot": 31}),
    answer(
        "Started",
        _started("restore_snapshot", "check", "Check that nothing is opened"),
        status=202,
    ),
    refusal("Not recorded", ClientNotRecorded()),
]

_POLICY = {
    "id": 4,
    "site": "munich",
    "template": None,
    "purpose": "development",
    "hourly": 24,
    "daily": 7,
    "max_percent": 50,
}
POLICIES = [answer("One", _POLICY)]
SET_POLICY = [
    request_body("For developers", {k: v for k, v in _POLICY.items() if k != "id"}),
    answer("Set", _POLICY),
]
