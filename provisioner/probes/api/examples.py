"""Examples of probes for the schema."""

from __future__ import annotations

from provisioner.api.examples import answer

_PLAN = {
    "server": "commit",
    "server_id": 1,
    "is_on": True,
    "commands": ["info", "dirs //*", "opened"],
}
PLANS = [answer("One server", _PLAN)]
CHANGE = [answer("Changed", _PLAN)]
TIMES = [
    answer(
        "One command",
        {
            "id": 81,
            "server": "commit",
            "at": "2026-11-24T09:15:02Z",
            "host": "desk7",
            "command": "dirs //*",
            "seconds": 0.41,
            "error": "",
            "lapse_seconds": 1.92,
        },
    )
]
WEEKS = [
    answer(
        "One week",
        {
            "server": "commit",
            "begin": "2026-11-23",
            "command": "First to last",
            "rounds": 660,
            "gaps": 12,
            "failed": 0,
            "average": 12.2,
            "median": 4.1,
            "maximum": 125.0,
            "minimum": 1.3,
        },
    )
]
