"""Examples of snapshots of workspaces for the schema."""

from __future__ import annotations

from provisioner.api.examples import answer

SNAPSHOTS = [
    answer(
        "Hourly",
        {
            "id": 31,
            "name": "cloneyard-ws-hourly.2026-11-24_0905",
            "taken_at": "2026-11-24T09:05:00Z",
            "is_client_known": True,
        },
    )
]
