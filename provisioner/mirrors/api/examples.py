"""Examples of mirrors for the schema."""

from __future__ import annotations

from typing import Any

from provisioner.api.examples import answer, refusal, request_body
from provisioner.engine.api.examples import operation, step
from provisioner.mirrors.refusals import MirrorExists, MirrorInUse, SnapshotMirrored

_MIRROR: dict[str, Any] = {
    "id": 2,
    "name": "main at bangalore",
    "template": "main",
    "template_id": 3,
    "site": "bangalore",
    "state": "ready",
    "status_code": "",
    "status_message": "",
    "failed_at": None,
    "trouble": "",
    "checked_at": "2026-11-24T09:30:00Z",
    "start": "at-once",
    "cron": "",
    "next_transfer_at": None,
    "throttle_kilobytes": 0,
    "keep": 10,
    "volume_path": "svm_blr:cy_main_m5f0c2a",
    "relationship_uuid": "1d6d3c55-8d66-4a5f-9d2c-3a5a6a0e5d11",
    "policy": "cloneyard-keep-10",
    "created_at": "2026-11-20T09:00:00Z",
    "figures": {
        "newest": {
            "id": 87,
            "name": "c5019.b411",
            "change": 5019,
            "quality": "tested",
        },
        "snapshots": 6,
        "has_default": False,
        "snapshots_behind": 1,
        "changes_behind": 4,
        "coming": {
            "id": 88,
            "change": 5023,
            "bytes_left": 1288490188,
            "seconds_left": 171.5,
        },
    },
}
_NEW = {
    **_MIRROR,
    "state": "creating",
    "checked_at": None,
    "relationship_uuid": "",
    "figures": {
        "newest": None,
        "snapshots": 0,
        "has_default": False,
        "snapshots_behind": None,
        "changes_behind": None,
        "coming": None,
    },
}


def _running(kind: str, *steps: dict[str, Any]) -> dict[str, Any]:
    return operation(
        kind, *steps, state="running", ended_at=None, requested_by="alice", mirror=2
    )


_PEERED = step("peered", "Check the peering", state="queued", attempt=0)
LIST = [answer("One snapshot behind", _MIRROR)]
GET = [answer("One snapshot behind", _MIRROR)]
CREATE = [
    request_body("To another site", {"template": "main", "site": "bangalore"}),
    answer("Being created", _NEW, status=202),
    refusal("It exists", MirrorExists(template="main", site="bangalore")),
]
CHANGE = [
    request_body("Half of the line", {"throttle_kilobytes": 50000}),
    request_body("At night", {"start": "schedule", "cron": "0 3 * * mon-fri"}),
    answer("Changed", {**_MIRROR, "throttle_kilobytes": 50000}),
]
RETRY = [answer("Started", _running("mirror_create", _PEERED), status=202)]
TRANSFER = [
    request_body("The default snapshot", {}),
    request_body("By name", {"snapshot": "c5023.b412"}),
    answer("Started", _running("mirror_transfer", _PEERED), status=202),
    refusal("Already there", SnapshotMirrored(snapshot="c5023.b412", site="bangalore")),
]
DELETE = [
    answer(
        "Started",
        _running("mirror_delete", step("clones", "Check for clones", state="queued")),
        status=202,
    ),
    refusal("In use", MirrorInUse(site="bangalore")),
]
SNAPSHOTS = [
    answer(
        "Arrived",
        {
            "snapshot": 87,
            "name": "c5019.b411",
            "change": 5019,
            "quality": "tested",
            "state": "available",
            "bytes": 52428800,
            "seconds": 12.5,
            "compared_files": 32,
            "arrived_at": "2026-11-24T08:12:00Z",
        },
    )
]
