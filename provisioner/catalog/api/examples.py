"""Examples of templates for the schema."""

from __future__ import annotations

from typing import Any

from provisioner.api.examples import answer

_TEMPLATE: dict[str, Any] = {
    "id": 3,
    "name": "main",
    "site": "munich",
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
    "used_bytes": 53687091200,
    "used_inodes": 240511,
    "max_inodes": 3276800,
    "snapshots_to_keep": 5,
    "created_at": "2026-11-01T08:00:00Z",
}
LIST = [answer("Templates", _TEMPLATE)]
