"""Examples of workspaces for the schema."""

from __future__ import annotations

from typing import Any

from provisioner.api.examples import answer, refusal, request_body
from provisioner.engine.api.examples import operation, step
from provisioner.workspaces.refusals import WorkspaceRetired

_SERVER = "https://cloneyard.example.com/api/v1"
WORKSPACE: dict[str, Any] = {
    "id": 4711,
    "name": "ci-main-4711",
    "state": "ready",
    "status_code": "",
    "status_message": "",
    "owner": "ci",
    "purpose": "ci",
    "site": "munich",
    "template": "main",
    "template_id": 3,
    "snapshot": {
        "id": 88,
        "name": "c5023.b412",
        "change": 5023,
        "withdrawn_at": None,
        "withdraw_reason": "",
    },
    "change": 5023,
    "verification": {
        "change": 5023,
        "files": 182340,
        "have_digest": "7c1f0e2a9d4b4c51",
        "client_verified": True,
        "sentence": "Change 5023 of main with its build output.",
    },
    "path": "/mnt/cloneyard/w-ci-main-4711",
    "client": "cy-ci-main-4711-w1a2b3c",
    "client_type": "readonly",
    "p4port": "ssl:builds:1666",
    "perforce_server": "builds",
    "site_because": "",
    "routed_because": "Rule 1: CI (read-only client).",
    "p4_user": "ci",
    "uid": 2001,
    "gid": 2001,
    "open_to": "owner",
    "ownership": {"by": "ontap", "sentence": "ONTAP changed the owner."},
    "reconcile": None,
    "created_at": "2026-11-24T09:30:00Z",
    "ready_at": "2026-11-24T09:30:06Z",
    "trashed_at": None,
    "purge_at": None,
    "retired_at": None,
    "unique_bytes": None,
    "actual_size_bytes": None,
    "file_bytes": None,
    "used_bytes": None,
    "snapshot_bytes": None,
    "used_inodes": None,
    "max_inodes": None,
    "start": {
        "warm": False,
        "cold_because": None,
        "seconds_saved": None,
        "sentence": "Made on request.",
    },
    "lease": {
        "ends_at": "2026-11-24T10:30:00Z",
        "kept_because": "",
        "maximum_seconds": 86400,
        "is_extendable": True,
        "is_over": False,
        "warns_at": [],
        "then": "remove",
        "restorable_until": None,
        "heartbeat_due_at": "2026-11-24T09:35:06Z",
        "sentence": "Its lease ends at 10:30.",
    },
    "operation": {
        "id": 9001,
        "kind": "provision",
        "state": "succeeded",
        "steps_total": 9,
        "steps_done": 9,
        "current_steps": [],
    },
    "links": {
        "self": f"{_SERVER}/workspaces/4711",
        "template": f"{_SERVER}/templates/3",
        "operations": f"{_SERVER}/operations?workspace=4711",
    },
}
_FLUSH: dict[str, Any] = {
    "name": "flush",
    "title": "Flush to the change of the snapshot",
    "state": "running",
    "attempt": 1,
    "started_at": "2026-11-24T09:30:02Z",
    "ended_at": None,
    "seconds": None,
    "progress": {"done": 0, "total": 182340, "unit": "files", "text": "flushing"},
    "wait": None,
    "error_code": "",
    "error_message": "",
    "exit_code": None,
}
CREATING = {
    **WORKSPACE,
    "state": "provisioning",
    "ready_at": None,
    "verification": {**WORKSPACE["verification"], "client_verified": False},
    "ownership": None,
    "lease": {**WORKSPACE["lease"], "heartbeat_due_at": None},
    "operation": {
        "id": 9001,
        "kind": "provision",
        "state": "running",
        "steps_total": 9,
        "steps_done": 6,
        "current_steps": [_FLUSH],
    },
}
_RETIRING = {
    **WORKSPACE,
    "state": "retiring",
    "lease": {**WORKSPACE["lease"], "ends_at": None, "heartbeat_due_at": None},
    "operation": {
        "id": 9002,
        "kind": "retire",
        "state": "running",
        "steps_total": 5,
        "steps_done": 0,
        "current_steps": [],
    },
}

POLL = [
    answer("Ready", WORKSPACE),
    answer("Still being made", CREATING),
    answer("Too many wait: ask again", CREATING, status=202),
]
LIST = [answer("Yours", WORKSPACE)]
RETIRE = [
    answer("Begun", _RETIRING, status=202),
    refusal("Gone", WorkspaceRetired(name="ci-main-4711", workspace=4711)),
]


def _being(state: str, kind: str) -> dict[str, Any]:
    under_way = {
        **_RETIRING["operation"],
        "kind": kind,
    }
    return {**WORKSPACE, "state": state, "operation": under_way}


RESTORE = [answer("Started", _being("restoring", "restore"), status=202)]
PURGE = [answer("Started", _being("purging", "purge"), status=202)]
RETRY = [answer("Started", _being("provisioning", "provision"), status=202)]
OPEN = [request_body("To the owner's group", {"to": "group-reads"})]
CHECK = [
    answer(
        "Started",
        operation(
            "check",
            step("check", "Check for unsubmitted work", state="queued", attempt=0),
            state="running",
            ended_at=None,
            workspace=4711,
        ),
        status=202,
    ),
]
SHARE = [
    request_body("With a person", {"person": "bob"}),
    request_body("With a team", {"team": "rendering"}),
    request_body("For cloning", {"person": "bob", "may_clone": True}),
    request_body("For a time", {"person": "bob", "ends_at": "2026-12-24T22:59:00Z"}),
    answer(
        "Shared",
        {
            "id": 12,
            "person": "bob",
            "team": None,
            "may_clone": False,
            "ends_at": None,
            "created_at": "2026-11-24T09:40:00Z",
            "created_by": "ci",
        },
        status=201,
    ),
]
