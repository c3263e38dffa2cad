"""Examples of warm pools for the schema."""

from __future__ import annotations

from typing import Any

from provisioner.api.examples import answer, refusal, request_body
from provisioner.pools.refusals import PoolExists

_POOL: dict[str, Any] = {
    "id": 5,
    "template": "main",
    "template_id": 3,
    "site": "munich",
    "purpose": "ci",
    "owner": "ci",
    "size": 4,
    "windows": ["mon-fri 07:00-19:00 20"],
    "max_age_seconds": 86400,
    "idle_seconds": 172800,
    "failures": 0,
    "retry_at": None,
    "status_message": "",
    "created_at": "2026-11-24T09:00:00Z",
    "figures": {
        "wanted": 20,
        "ready": 18,
        "making": 2,
        "failed": 0,
        "leaving": 1,
        "unique_bytes": 52428800,
        "unmeasured": 2,
        "warm": 612,
        "cold": 9,
        "seconds_saved": 3672.0,
        "last_asked_at": "2026-11-24T09:29:58Z",
    },
}
_NEW = {
    **_POOL,
    "figures": {
        **dict.fromkeys(_POOL["figures"], 0),
        "wanted": 20,
        "seconds_saved": 0.0,
        "last_asked_at": None,
    },
}
LIST = [answer("Filling", _POOL)]
GET = [answer("Filling", _POOL)]
CREATE = [
    request_body(
        "Twenty at work, four at night",
        {
            "template": "main",
            "purpose": "ci",
            "owner": "ci",
            "size": 4,
            "windows": ["mon-fri 07:00-19:00 20"],
        },
    ),
    answer("Created", _NEW, status=201),
    refusal("It exists", PoolExists(template="main", site="munich", owner="ci")),
]
CHANGE = [
    request_body("A larger pool", {"size": 8}),
    answer("Changed", {**_POOL, "size": 8}),
]
