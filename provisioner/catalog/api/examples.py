"""Examples of templates for the schema."""

from __future__ import annotations

from typing import Any

from provisioner.api.examples import answer, refusal, request_body
from provisioner.catalog.refusals import (
    NothingToRollBackTo,
    SnapshotWithdrawn,
    TemplateNeeded,
)
from provisioner.engine.api.examples import operation, step

_TEMPLATE: dict[str, Any] = {
    "id": 3,
    "name": "main",
    "title": "Main line",
    "owner": "alice",
    "pinned": True,
    "site": "munich",
    "perforce_server": "munich",
    "routed_because": "",
    "archived_at": None,
    "archived_by": None,
    "archive_reason": "",
    "description": "The main line, built for Linux.",
    "state": "ready",
    "status_code": "",
    "status_message": "",
    "snapshot": {"id": 88, "change": 5023, "quality": "tested"},
    "freshness": {
        "changes": 2,
        "newest": 5027,
        "since": "2026-11-24T08:10:00Z",
        "users": ["bob", "carol"],
    },
    "refresh": {
        "mode": "on_change",
        "quiet_seconds": 120,
        "every_seconds": 1800,
        "cron": "",
        "clean_cron": "0 2 * * 0",
        "unused_days": None,
        "is_paused": False,
        "sentence": "It is built after changes, every 30 minutes at most.",
    },
    "path": "/mnt/cloneyard/t-main",
    "view": "//depot/main/... //template-main/...",
    "stream": "",
    "line_end": "local",
    "client_options": "",
    "submit_options": "",
    "build_command": "make -j8",
    "bisection_environment": {},
    "commands_have_network": True,
    "build_timeout_seconds": 14400,
    "test_command": "make test",
    "test_timeout_seconds": 3600,
    "wanted_quality": "tested",
    "ignore_patterns": "*.o",
    "error_patterns": "",
    "volume_size_bytes": 107374182400,
    "actual_size_bytes": 107374182400,
    "aggregate": "aggr1",
    "file_bytes": 107374182400,
    "used_bytes": 53687091200,
    "snapshot_bytes": 1073741824,
    "used_inodes": 240511,
    "max_inodes": 3276800,
    "snapshots_to_keep": 5,
    "created_at": "2026-11-01T08:00:00Z",
}
LIST = [answer("Templates", _TEMPLATE)]
GET = [answer("A template", _TEMPLATE)]
BUILD = [
    request_body("At the newest change", {}),
    request_body("Clean, at a change", {"change": 5031, "clean": True}),
    answer(
        "Started",
        operation(
            "template_build",
            step("sync", "Sync the files", state="queued", attempt=0),
            state="running",
            ended_at=None,
            requested_by="alice",
            template=3,
        ),
        status=202,
    ),
]

_SNAPSHOT: dict[str, Any] = {
    "id": 88,
    "template": 3,
    "name": "c5023.b412",
    "change": 5023,
    "parts": [],
    "quality": "tested",
    "is_clean": False,
    "behind": 2,
    "have_count": 240102,
    "have_digest": "9f2c" * 16,
    "remarks": [],
    "sync_seconds": 41.2,
    "build_seconds": 1310.5,
    "test_seconds": 402.0,
    "operation": 412,
    "created_at": "2026-11-24T07:10:00Z",
    "label": "",
    "notes": "",
    "held_at": None,
    "held_by": None,
    "hold_reason": "",
    "withdrawn_at": None,
    "withdrawn_by": None,
    "withdraw_reason": "",
}
_BY_ALICE = ("2026-11-24T09:00:00Z", "alice")
_WHY_HELD = "The trade show runs on this one until Friday."
_WHY_WITHDRAWN = "Its shaders are those of the wrong branch."
_WITHDRAWN = SnapshotWithdrawn(snapshot="c5023.b412", reason=_WHY_WITHDRAWN)


SNAPSHOTS = [answer("Snapshots of a template", _SNAPSHOT)]
SNAPSHOT = [answer("A snapshot", _SNAPSHOT)]


def _held(reason: str) -> dict[str, Any]:
    held_at, held_by = _BY_ALICE
    said = {"held_at": held_at, "held_by": held_by, "hold_reason": reason}
    return {**_SNAPSHOT, **said}


HOLD = [
    request_body("Until a trade show is over", {"reason": _WHY_HELD}),
    answer("Held", _held(_WHY_HELD)),
    refusal("Withdrawn", _WITHDRAWN),
]
WITHDRAW = [
    request_body("Wrong files", {"reason": _WHY_WITHDRAWN}),
    answer(
        "Withdrawn",
        {
            **_SNAPSHOT,
            "withdrawn_at": _BY_ALICE[0],
            "withdrawn_by": _BY_ALICE[1],
            "withdraw_reason": _WHY_WITHDRAWN,
        },
    ),
]
DESCRIBE = [
    request_body("A label", {"label": "Alpha 3"}),
    answer("Labeled", {**_SNAPSHOT, "label": "Alpha 3"}),
]
ROLL_BACK = [
    request_body("The newest build", {}),
    answer("Held", _held("The build at change 5031 failed (operation 415).")),
    refusal("Nothing good before", NothingToRollBackTo(template="main")),
]

_WHY_ARCHIVED = "Use release-42 instead."
CHANGE = [
    request_body("Another owner", {"owner": "bob"}),
    request_body("A larger volume", {"volume_size_bytes": 214748364800}),
    answer("Handed over", {**_TEMPLATE, "owner": "bob"}),
]
ARCHIVE = [
    request_body("What to use instead", {"reason": _WHY_ARCHIVED}),
    answer(
        "Archived",
        {
            **_TEMPLATE,
            "archived_at": _BY_ALICE[0],
            "archived_by": _BY_ALICE[1],
            "archive_reason": _WHY_ARCHIVED,
        },
    ),
]
NEEDS = [
    answer(
        "Still needed",
        {
            "can_be_deleted": False,
            "needed_by": [
                {"what": "workspaces", "number": 2, "names": ["alice-main", "bob-main"]}
            ],
            "goes_with": [],
            "snapshots_count": 5,
        },
    )
]
DELETE = [
    refusal("Still needed", TemplateNeeded(name="main", what="2 workspaces")),
]
