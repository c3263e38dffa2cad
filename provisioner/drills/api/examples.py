"""Examples of drills and their plans for the schema."""

from __future__ import annotations

from typing import Any

from provisioner.api.examples import answer, refusal, request_body
from provisioner.drills.refusals import NoDrillPlan
from provisioner.sandboxes.refusals import PlanIncomplete

_DRILL: dict[str, Any] = {
    "id": 4,
    "server": "production",
    "sandbox": "drill-1-20261101-040000",
    "site": "pune",
    "host": "spare",
    "outcome": "Passed",
    "requested_at": "2026-11-01T04:00:12Z",
    "copy_of": "2026-11-01T03:05:00Z",
    "answered_at": "2026-11-01T04:01:07Z",
    "ended_at": "2026-11-01T04:01:08Z",
    "lost_seconds": 3312.0,
    "took_seconds": 55.0,
    "change": 4711,
    "oldest_hours": 24,
    "trouble": "",
    "finding": "",
}
_PLAN: dict[str, Any] = {
    "server": "production",
    "server_id": 1,
    "host": "spare",
    "version": "2024.2",
    "cron": "0 4 1 * *",
    "is_on": True,
    "has_failed": False,
    "status": "It answered at pune after 55 s, 55 min behind at change 4711.",
    "replicas": {"p4_db": "p4_db_dr", "p4_depot": "p4_depot_dr"},
    "oldest_hours": 24,
}

DRILLS = [answer("Passed", _DRILL)]
START = [
    request_body("Now", {"server": "production"}),
    answer(
        "Begun",
        _DRILL
        | {
            "outcome": "Running",
            "copy_of": None,
            "answered_at": None,
            "ended_at": None,
            "lost_seconds": None,
            "took_seconds": None,
            "change": None,
        },
        status=202,
    ),
    refusal("No plan", NoDrillPlan(server="production")),
]
PLANS = [answer("Monthly", _PLAN)]
SAVE_PLAN = [
    request_body("Each week", {"cron": "0 4 * * 0", "is_on": True}),
    answer("Saved", _PLAN),
    refusal("Nowhere", PlanIncomplete(server="production")),
]
