"""Examples of sandboxes for the schema."""

from __future__ import annotations

from typing import Any

from provisioner.api.examples import answer, refusal, request_body
from provisioner.engine.api.examples import operation, step
from provisioner.sandboxes.refusals import (
    LeaseTooLong,
    SandboxHostFull,
    SandboxInUse,
    SandboxMoving,
    VolumeListIncomplete,
)

SANDBOX: dict[str, Any] = {
    "id": 7,
    "name": "case-4711",
    "server": "production",
    "site": "munich",
    "host": "isolated",
    "owner": "admin",
    "purpose": "diagnose",
    "release": "2024.2",
    "server_id": "sandbox-case-4711",
    "p4port": "127.0.0.1:16660",
    "state": "ready",
    "status_code": "",
    "status_message": "",
    "consistency": "group",
    "taken_at": "2026-11-28T09:12:00Z",
    "ready_at": "2026-11-28T09:12:41Z",
    "expires_at": "2026-11-28T17:11:52Z",
    "defanged": ["Unset any#startup.1, which was pull -i 1."],
    "upgraded_from": "",
    "upgrade_seconds": None,
}
_VOLUMES = {
    "id": 1,
    "server": "production",
    "site": "munich",
    "places": "db p4_db/root\njournal p4_journal/journal\ndepot p4_depots",
}


def _running(kind: str, *steps: dict[str, Any]) -> dict[str, Any]:
    return operation(
        kind, *steps, state="running", ended_at=None, requested_by="admin", sandbox=7
    )


LIST = [answer("Ready", SANDBOX)]
GET = [answer("Ready", SANDBOX)]
CREATE = [
    request_body(
        "For a support case",
        {
            "server": "production",
            "name": "case-4711",
            "purpose": "diagnose",
            "version": "2024.2",
            "host": "isolated",
            "hours": 8,
            "reason": "Case 4711",
        },
    ),
    answer("Requested", {**SANDBOX, "state": "creating"}, status=202),
    refusal("No place", SandboxHostFull(host="isolated", most=5)),
]
EXTEND = [
    request_body("Until the evening", {"hours": 8}),
    answer("Extended", SANDBOX),
    refusal("Too long", LeaseTooLong(most=24)),
]
RETIRE = [
    request_body("The host is lost", {"without_host": True}),
    answer(
        "Started",
        _running("sandbox_retire", step("quiet", "Wait for work in progress")),
        status=202,
    ),
    refusal("Over", SandboxMoving(name="case-4711", state="retired")),
]
START = [
    answer(
        "Started",
        _running("sandbox_start", step("host", "Check the host and the port")),
        status=202,
    ),
    refusal("Runs", SandboxMoving(name="case-4711", state="ready")),
]
RETRY = [
    answer(
        "Started",
        _running("sandbox_create", step("server", "Ask the server what it is")),
        status=202,
    ),
    refusal("Under way", SandboxMoving(name="case-4711", state="creating")),
]
VOLUMES = [answer("Described", _VOLUMES)]
SAVE_VOLUMES = [
    request_body(
        "Three volumes",
        {"server": "production", "site": "munich", "places": _VOLUMES["places"]},
    ),
    answer("Saved", _VOLUMES),
    refusal("No journal", VolumeListIncomplete(missing="journal")),
]
_VERSION = {"id": 1, "release": "2024.2", "path": "/opt/p4d/2024.2/p4d"}
_HOST = {
    "id": 1,
    "name": "isolated",
    "site": "munich",
    "address": "127.0.0.1",
    "first_port": 16660,
    "last_port": 16669,
    "at_most": 5,
    "sandboxes": 1,
    "uid": 20000,
    "gid": 20000,
    "queue": "sandboxes.isolated",
}
_POLICY = {
    "id": 1,
    "team": "Tools",
    "at_most": 1,
    "team_at_most": 3,
    "longest_hours": 24,
}
VERSIONS = [answer("Named", _VERSION)]
SAVE_VERSION = [
    request_body("A release", {key: _VERSION[key] for key in ("release", "path")}),
    answer("Saved", _VERSION),
]
HOSTS = [answer("Named", _HOST)]
SAVE_HOST = [
    request_body(
        "A host",
        {key: _HOST[key] for key in ("name", "site", "uid", "gid")},
    ),
    answer("Saved", _HOST),
    refusal("It moves", SandboxInUse(what="isolated", names="case-4711")),
]
DELETE_HOST = [
    refusal("In use", SandboxInUse(what="isolated", names="case-4711")),
]
POLICIES = [answer("Saved", _POLICY)]
SAVE_POLICY = [
    request_body(
        "One each, three together",
        {key: value for key, value in _POLICY.items() if key != "id"},
    ),
    answer("Saved", _POLICY),
]
NOTHING: list[Any] = []
