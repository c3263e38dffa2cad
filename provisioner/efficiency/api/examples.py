"""Examples of deduplication and of data reduction for the schema."""

from __future__ import annotations

from provisioner.api.examples import answer, refusal, request_body
from provisioner.lib.refusals import InvalidRequest

_PLAN = {
    "site": "munich",
    "site_id": 1,
    "is_on": True,
    "covers_templates": True,
    "covers_mirrors": False,
    "more_volumes": "depot_main",
    "cron": "0 22 * * *",
    "minutes": 360,
    "waits_for_quiet": True,
    "ontap_policy": "",
    "status": "1 volume is being deduplicated, at most 2 at a time.",
    "checked_at": "2026-11-26T22:41:00Z",
}
PLANS = [answer("At night", _PLAN)]
CHANGE = [
    request_body("Six hours at night", {"cron": "0 22 * * *", "minutes": 360}),
    answer("At night", _PLAN),
    refusal(
        "A window that never comes",
        InvalidRequest.at(
            "cron", "The schedule 0 3 30 2 * never comes: its months have no such day."
        ),
    ),
]
RUNS = [
    answer(
        "A template's volume",
        {
            "id": 12,
            "volume": "cy_main_m5f0c2a",
            "site": "munich",
            "template": "main",
            "window_at": "2026-11-26T22:00:00Z",
            "state": "done",
            "is_ontaps_own": False,
            "message": "",
            "saved_before_bytes": 0,
            "saved_after_bytes": 429496729600,
            "took_before_bytes": 644245094400,
            "took_after_bytes": 214748364800,
            "created_at": "2026-11-26T22:00:04Z",
            "ended_at": "2026-11-26T22:38:31Z",
        },
    )
]
DAYS = [
    answer(
        "A site",
        {
            "day": "2026-11-26",
            "site": "munich",
            "kind": "site",
            "name": "munich",
            "logical_bytes": 9895604649984,
            "physical_bytes": 1099511627776,
            "provisioned_bytes": 32985348833280,
            "full_percent": 41.5,
            "reduction": 9.0,
            "overcommitment": 30.0,
            "without_snapshots_ratio": 4.2,
            "within_ratio": 1.6,
            "by_snapshots_bytes": 5277655813324,
            "by_clones_bytes": 2858730232217,
            "by_deduplication_bytes": 549755813888,
            "by_compression_bytes": 109951162777,
        },
    )
]
