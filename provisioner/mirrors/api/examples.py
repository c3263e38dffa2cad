"""Examples of mirrors for the schema."""

from __future__ import annotations

from typing import Any

from provisioner.api.examples import answer, refusal, request_body
from provisioner.catalog.refusals import TemplateBusy
from provisioner.engine.api.examples import operation, step
from provisioner.mirrors.refusals import (
    FormerHomeInUse,
    MirrorExists,
    MirrorInUse,
    NotAFormerHome,
    SnapshotMirrored,
)

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
    "chosen_aggregate": "",
    "aggregate": "aggr1",
    "actual_size_bytes": 107374182400,
    "grows_to_bytes": 115448720916480,
    "file_bytes": 107374182400,
    "used_bytes": 53687091200,
    "snapshot_bytes": 4294967296,
    "used_inodes": 812345,
    "max_inodes": 3276800,
    "relationship_uuid": "1d6d3c55-8d66-4a5f-9d2c-3a5a6a0e5d11",
    "policy": "cloneyard-keep-10",
    "is_former_home": False,
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
        "remark": "",
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
    "actual_size_bytes": None,
    "grows_to_bytes": None,
    "file_bytes": None,
    "used_bytes": None,
    "snapshot_bytes": None,
    "used_inodes": None,
    "max_inodes": None,
    "relationship_uuid": "",
    "figures": {
        "newest": None,
        "snapshots": 0,
        "has_default": False,
        "snapshots_behind": None,
        "changes_behind": None,
        "remark": "",
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
_NEWEST = _MIRROR["figures"]["newest"]
_LOST = {"id": 88, "name": "c5023.b412", "change": 5023, "quality": "built"}
PROMOTION = [
    answer(
        "One snapshot behind",
        {
            "obstacle": "",
            "newest": _NEWEST,
            "snapshots_behind": 1,
            "changes_behind": 4,
            "lost": [_LOST],
            "running": [412],
            "workspaces": 2,
            "owners": ["alice", "bob"],
            "copied": ["alice-web-2"],
            "copies": 1,
            "needs": ["1 warm pool"],
            "other_mirrors": ["austin"],
        },
    )
]
PROMOTE = [
    answer(
        "Started",
        _running(
            "mirror_promote",
            step("copy", "Verify the newest snapshot there", state="queued", attempt=0),
        ),
        status=202,
    ),
    refusal("Being built", TemplateBusy(name="main")),
]
WAY_BACK = [
    answer(
        "One snapshot is discarded",
        {
            "common": _NEWEST,
            "discarded": [_LOST],
            "needed": [],
            "workspaces": 2,
            "waiting": {
                "id": 91,
                "name": "c5040.b420",
                "change": 5040,
                "quality": "tested",
            },
        },
    )
]
REESTABLISH = [
    answer("Started", _running("mirror_reestablish", _PEERED), status=202),
    refusal("In use", FormerHomeInUse(site="munich", snapshots="c5023.b412")),
]
GIVE_UP = [
    answer(
        "Started",
        _running(
            "mirror_give_up",
            step(
                "release",
                "Release the old SnapMirror relationship",
                state="queued",
                attempt=0,
            ),
        ),
        status=202,
    ),
    refusal("It is none", NotAFormerHome(site="munich")),
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
