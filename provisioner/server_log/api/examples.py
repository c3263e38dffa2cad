"""Examples of logs and their commands for the schema."""

from __future__ import annotations

from provisioner.api.examples import answer

_LOG = {
    "server": "commit",
    "server_id": 1,
    "way": "host",
    "path": "/p4/1/logs/log",
    "time_zone": "Europe/Berlin",
    "is_followed": True,
    "build_users": "jenkins*",
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
UPLOADS = [
    answer(
        "A log that was read",
        {
            "id": 12,
            "server": "commit",
            "name": "log.4711.gz",
            "size": 91283112,
            "state": "read",
            "message": "Read 1,204,112 commands and 83 errors.",
            "uploaded_by": "ann",
            "uploaded_at": "2026-11-27T09:01:10Z",
        },
    )
]
MESSAGES = [
    answer(
        "An error of a command",
        {
            "id": 5512,
            "server": "commit",
            "at": "2026-11-27T08:01:12Z",
            "kind": "error",
            "pid": 208015,
            "operation": "user-sync",
            "text": "Request too large (over 500000); see 'p4 help maxresults'.",
        },
    )
]
_COMMAND = {
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
    "rows_scanned": 2120440,
    "origin": "people",
}
COMMANDS = [answer("One long sync", _COMMAND)]
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
            "rows_scanned": 90211044,
            "most_rows": 2120440,
        },
    )
]
LOCK_SUMS = [
    answer(
        "Integrations",
        {
            "table": "db.integed",
            "user": "release",
            "command": "user-integrate",
            "commands": 41,
            "read_held_ms": 910220,
            "write_held_ms": 4120,
            "read_wait_ms": 0,
            "write_wait_ms": 90,
            "wait_ms": 90,
            "longest_wait_ms": 60,
            "longest_held_ms": 40950,
        },
    )
]
POLLING = [
    answer(
        "A build server that asks every seven seconds",
        {
            "user": "jenkins",
            "program": "p4-jenkins/1.15",
            "client": "jenkins-main",
            "command": "user-changes",
            "hours": 24,
            "commands": 12340,
            "every_seconds": 7,
            "lapse_ms": 2110400,
            "rows_scanned": 90211,
            "last_hour": "2026-11-27T08:00:00Z",
        },
    )
]
CHECKPOINTS = [
    answer(
        "From the log",
        {
            "server": "commit",
            "began": "2026-11-27T02:00:03Z",
            "ended": "2026-11-27T02:31:40Z",
            "what": "admin checkpoint of super",
            "command_id": 80112,
        },
    )
]
TABLE_USES = [
    answer(
        "A long read",
        {
            "server": "commit",
            "command_id": 90180,
            "started_at": "2026-11-27T08:00:58Z",
            "ended_at": "2026-11-27T08:01:39Z",
            "user": "release",
            "client": "release-main",
            "command": "user-integrate",
            "origin": "people",
            "table": "db.integed",
            "read_wait_ms": 0,
            "read_held_ms": 40950,
            "write_wait_ms": 0,
            "write_held_ms": 12,
        },
    )
]
_INTEGRATE = {
    "command_id": 90180,
    "user": "release",
    "command": "user-integrate",
    "began": "2026-11-27T08:00:58Z",
    "ended": "2026-11-27T08:01:39Z",
    "read_held_ms": 40950,
    "write_held_ms": 12,
}
_SYNC = {
    "command_id": 90211,
    "user": "qtdev",
    "command": "user-sync",
    "began": "2026-11-27T08:01:12Z",
    "ended": "2026-11-27T08:02:41Z",
    "read_held_ms": 20,
    "write_held_ms": 0,
    "read_wait_ms": 26110,
    "write_wait_ms": 0,
}
_SUBMIT = {
    **_SYNC,
    "command_id": 90199,
    "user": "ann",
    "command": "dm-CommitSubmit",
    "read_wait_ms": 0,
    "write_wait_ms": 31240,
}
LOCK_WAITS = [
    answer(
        "A sync behind a submit behind an integrate",
        {"table": "db.integed", "waiter": _SYNC, "by": _INTEGRATE, "through": _SUBMIT},
    )
]
LOCKS = [
    answer(
        "A sync behind a submit behind an integrate",
        {
            "command": _COMMAND,
            "locks": [
                {
                    "table": "db.integed",
                    "read_wait_ms": 26110,
                    "read_held_ms": 20,
                    "write_wait_ms": 0,
                    "write_held_ms": 0,
                    "by": _INTEGRATE,
                    "through": _SUBMIT,
                }
            ],
        },
    )
]
