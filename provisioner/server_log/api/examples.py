"""Examples of logs and their commands for the schema."""

from __future__ import annotations

from provisioner.api.examples import answer

_LOG = {
    "server": "commit",
    "server_id": 1,
    "path": "/p4/1/logs/log",
    "time_zone": "Europe/Berlin",
    "is_followed": True,
    "read_at": "2026-11-27T09:18:11Z",
    "behind_bytes": 0,
    "trouble": "",
    "commands": 1840211,
    "errors": 212,
    "other_lines": 3,
    "not_utf8": 0,
    "ends_without_start": 4,
    "clock_jumps": 0,
    "misdated": 0,
    "gaps": 0,
}
LOGS = [answer("One log", _LOG)]
CHANGE = [answer("Changed", _LOG)]
COMMANDS = [
    answer(
        "One long sync",
        {
            "id": 90211,
            "server": "commit",
            "started_at": "2026-11-27T08:01:12Z",
            "ended_at": "2026-11-27T08:02:41Z",
            "pid": 208015,
            "user": "qtdev",
            "client": "qtdev-main",
            "host": "10.5.70.45",
            "program": "p4/2025.1/LINUX26X86_64/2700001",
            "command": "user-sync",
            "arguments": "-q //depot/main/...",
            "lapse_ms": 89400,
            "compute_ms": 2100,
            "paused_ms": 0,
            "cpu_ms": 3120,
            "wait_ms": 410,
            "held_ms": 30,
            "max_rss_kb": 68864,
            "rpc_in_mb": 0,
            "rpc_out_mb": 1893,
            "files_sent": 20512,
            "sent_mb": 1862,
            "has_failed": False,
        },
    )
]
LOAD = [
    answer(
        "Syncs",
        {
            "name": "user-sync",
            "commands": 1204,
            "failed": 2,
            "over_30s": 31,
            "over_60s": 12,
            "over_120s": 3,
            "lapse_ms": 3910220,
            "longest_ms": 184000,
            "cpu_ms": 204118,
            "wait_ms": 60410,
            "held_ms": 81220,
            "files_sent": 2410551,
            "sent_mb": 411203,
        },
    )
]
