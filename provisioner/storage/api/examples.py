"""Examples of splits, and of what holds snapshots, for the schema."""

from __future__ import annotations

from typing import Any

from provisioner.api.examples import answer, refusal, request_body
from provisioner.engine.api.examples import operation, step
from provisioner.storage.refusals import (
    AlreadyIndependent,
    NoSplitToStop,
    PlanStale,
)

_PREVIEW: dict[str, Any] = {
    "is_independent": False,
    "split_at": None,
    "snapshot": "c5019.b411",
    "copies_bytes": 53687091200,
    "measured_at": "2026-11-24T09:30:00Z",
    "bytes_per_second": 104857600.0,
    "seconds": 512.0,
    "room_bytes": 1099511627776,
    "is_unpinned": True,
    "is_pruned": True,
    "frees_bytes": 107374182400,
    "kept_for": [],
    "refusal": None,
    "operation": None,
}


def _running(kind: str, *steps: dict[str, Any]) -> dict[str, Any]:
    return operation(
        kind, *steps, state="running", ended_at=None, requested_by="alice", workspace=1
    )


HELD = [
    answer(
        "One workspace holds it",
        {
            "id": 87,
            "name": "c5019.b411",
            "change": 5019,
            "template": "main",
            "site": "munich",
            "size_bytes": 53687091200,
            "frees_bytes": 10737418240,
            "workspaces": 1,
            "holders": [{"workspace": 4711, "name": "alice-main", "is_pooled": False}],
            "kept_for": [],
            "freed_by": "Retire and purge alice-main, or split it.",
        },
    )
]
_PLAN: dict[str, Any] = {
    "site": "munich",
    "wanted_bytes": 2199023255552,
    "frees_bytes": 2306397437952,
    "is_enough": True,
    "unmeasured": 0,
    "seal": "8e1f0c2a77b04d31",
    "acts": [
        {
            "kind": "retire",
            "workspace": 4711,
            "snapshot": None,
            "name": "alice-main",
            "frees_bytes": 2306397437952,
            "why": "It looks abandoned.",
        }
    ],
}
PLAN = [answer("One act is enough", _PLAN)]
FREE = [
    request_body(
        "The plan that was shown",
        {"site": "munich", "wanted_bytes": 2199023255552, "seal": _PLAN["seal"]},
    ),
    answer(
        "Requested",
        {
            "results": [
                {
                    "kind": "retire",
                    "name": "alice-main",
                    "sentence": "It is being retired.",
                    "code": "",
                }
            ]
        },
        status=202,
    ),
    refusal("Another plan by now", PlanStale()),
]
_CEILING: dict[str, Any] = {
    "site": "munich",
    "purpose": "builds",
    "max_iops": 5000,
    "max_mbps": None,
    "is_shared": True,
    "policy": "cloneyard-munich-builds-shared",
    "volumes": 41,
    "at_ceiling": 0,
    "applied_at": "2026-11-27T04:30:00Z",
    "status_message": "",
}
CEILINGS = [answer("Builds share 5,000 IOPS", _CEILING)]
CEILING = [
    request_body(
        "Builds share 5,000 IOPS",
        {
            "site": "munich",
            "purpose": "builds",
            "max_iops": 5000,
            "max_mbps": None,
            "is_shared": True,
        },
    ),
    answer(
        "Saved",
        {**_CEILING, "policy": "", "volumes": 0, "applied_at": None},
        status=202,
    ),
]
_VOLUME_POLICY: dict[str, Any] = {
    "site": "munich",
    "template": None,
    "autosize_mode": "grow",
    "autosize_max_percent": 200,
    "snapshot_reserve_percent": 0,
    "guarantee": "none",
    "fractional_reserve": None,
    "security_style": "unix",
    "min_inodes": None,
    "headroom_percent": 25,
    "build_headroom_percent": None,
    "clone_grow_percent": 20,
    "clone_grow_max_percent": None,
    "applied_at": "2026-11-27T04:30:00Z",
    "status_message": "",
}
VOLUME_POLICIES = [answer("Volumes grow to twice their size", _VOLUME_POLICY)]
VOLUME_POLICY = [
    request_body(
        "Volumes grow to twice their size",
        {"site": "munich", "autosize_mode": "grow", "autosize_max_percent": 200},
    ),
    answer(
        "Saved",
        {
            **_VOLUME_POLICY,
            "snapshot_reserve_percent": None,
            "guarantee": "",
            "security_style": "",
            "headroom_percent": None,
            "applied_at": None,
        },
        status=202,
    ),
]
PREVIEW = [answer("It frees the snapshot", _PREVIEW)]
SPLIT = [
    answer(
        "Started",
        _running("split", step("room", "Check the room for it", state="queued")),
        status=202,
    ),
    refusal("Split already", AlreadyIndependent(name="alice-main")),
]
STOP = [
    answer(
        "Started",
        _running("stop_split", step("quiet", "Wait for work in progress")),
        status=202,
    ),
    refusal("Not under way", NoSplitToStop(name="alice-main")),
]
