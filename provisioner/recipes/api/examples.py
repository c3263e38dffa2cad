"""Examples of checkpoints and verifications for the schema."""

from __future__ import annotations

from typing import Any

from provisioner.api.examples import answer, refusal, request_body
from provisioner.sandboxes.api.examples import SANDBOX
from provisioner.sandboxes.refusals import PlanIncomplete, PlanRunning

_CHECKPOINT: dict[str, Any] = {
    "id": 12,
    "server": "production",
    "sandbox": "checkpoint-1-20261128-023000",
    "host": "isolated",
    "release": "2024.2",
    "path": "/checkpoints/production.20261128-023007.1f3a9c.ckp.gz",
    "taken_at": "2026-11-28T02:30:07Z",
    "change": 4711,
    "journal": 212,
    "size_bytes": 1830291,
    "plain_bytes": 10921733,
    "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "md5": "D41D8CD98F00B204E9800998ECF8427E",
    "dump_seconds": 31.4,
    "replay_seconds": 44.0,
    "tables": {"db.change": 4711, "db.have": 90210, "db.rev": 31337, "db.user": 42},
    "is_proven": True,
    "remark": "",
    "made_at": "2026-11-28T02:31:52Z",
    "removed_at": None,
    "removed_because": "",
}
_PLAN: dict[str, Any] = {
    "server": "production",
    "server_id": 1,
    "host": "isolated",
    "version": "2024.2",
    "directory": "/checkpoints",
    "cron": "30 2 * * *",
    "keep_daily": 7,
    "keep_weekly": 4,
    "oldest_hours": 36,
    "late_at": None,
    "is_on": True,
    "has_failed": False,
    "status": "",
}
_VERIFICATION_PLAN: dict[str, Any] = {
    "server": "production",
    "server_id": 1,
    "host": "isolated",
    "version": "2024.2",
    "cron": "0 3 * * 6",
    "is_on": True,
    "has_failed": False,
    "status": "Verified 3 depots of a copy: 0 damaged revisions, 0 lost.",
    "has_shelved": True,
}
_VERIFICATION: dict[str, Any] = {
    "id": 3,
    "server": "production",
    "sandbox": "weekly",
    "taken_at": "2026-11-28T09:12:00Z",
    "began_at": "2026-11-28T09:12:41Z",
    "ended_at": "2026-11-28T10:40:02Z",
    "bad": 0,
    "missing": 1,
    "shelved_bad": 0,
    "shelved_missing": 0,
    "depots": [
        {
            "name": "depot",
            "kind": "local",
            "bad": 0,
            "missing": 1,
            "seconds": 5230.2,
            "shelved_bad": 0,
            "shelved_missing": 0,
            "shelved_seconds": 61.0,
            "left_out": "",
        }
    ],
}
_DAMAGED = {
    "depot": "depot",
    "path": "//depot/game/level1.map",
    "revision": 4,
    "change": 1207,
    "status": "missing",
}

_BEGUN = SANDBOX | {"state": "creating", "owner": "admin", "p4port": ""}

CHECKPOINTS = [answer("Kept", _CHECKPOINT)]
MAKE_CHECKPOINT = [
    request_body("Now", {"server": "production"}),
    answer(
        "Begun",
        _BEGUN | {"name": "checkpoint-1-20261128-023000", "purpose": "checkpoint"},
        status=202,
    ),
    refusal(
        "One is under way",
        PlanRunning(server="production", name="checkpoint-1-20261128-023000"),
    ),
]
VERIFY = [
    request_body("Now", {"server": "production"}),
    answer(
        "Begun",
        _BEGUN | {"name": "verify-1-20261128-091200", "purpose": "verify"},
        status=202,
    ),
    refusal("Nowhere", PlanIncomplete(server="production")),
]
PLANS = [answer("Daily", _PLAN)]
SAVE_PLAN = [
    request_body("Each night", {"cron": "30 2 * * *", "is_on": True}),
    answer("Saved", _PLAN),
    refusal("Nowhere", PlanIncomplete(server="production")),
]
VERIFICATION_PLANS = [answer("Weekly", _VERIFICATION_PLAN)]
SAVE_VERIFICATION_PLAN = [
    request_body("Each Saturday", {"cron": "0 3 * * 6", "is_on": True}),
    answer("Saved", _VERIFICATION_PLAN),
    refusal("Nowhere", PlanIncomplete(server="production")),
]
VERIFICATIONS = [answer("A file is lost", _VERIFICATION)]
DAMAGED = [answer("Lost", _DAMAGED)]
