"""Examples of probes, moments and comparisons for the schema."""

from __future__ import annotations

from provisioner.api.examples import answer, refusal
from provisioner.insight.refusals import MailsNotSent

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
ROUNDS = [
    answer(
        "One gap",
        {
            "id": 20,
            "server": "commit",
            "at": "2026-11-29T03:00:04Z",
            "host": "",
            "lapse_seconds": None,
            "change": None,
            "gap": "The server is in maintenance.",
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

_MOMENT = {
    "id": 3,
    "server": "commit",
    "label": "Moved db.* to NVMe",
    "at": "2026-11-09T06:00:00Z",
    "note": "",
    "created_by": "admin",
    "created_at": "2026-11-09T07:12:40Z",
}
MOMENTS = [answer("One moment", _MOMENT)]
MARK = [answer("Marked", _MOMENT, status=201)]
_STEADY = {"p95": 90.0, "maximum": 125.0, "minimum": 41.0, "days": 14}
COMPARISON = [
    answer(
        "One command",
        {
            "measure": "dirs //*",
            "before": {**_STEADY, "number": 1320, "average": 329.0, "median": 301.0},
            "after": {**_STEADY, "number": 1344, "average": 64.0, "median": 58.0},
            "variance": 0.805,
            "adjusted": 0.83,
            "interval": [0.771, 0.834],
            "outcome": "better",
            "reason": "Less, beyond what days differ by.",
        },
    )
]
_MAIL = {
    "id": 12,
    "server": "commit",
    "person": "ann",
    "subject": "Did it help? commit: Moved db.* to NVMe",
    "requested_by": "admin",
    "requested_at": "2026-11-24T07:12:40Z",
    "sent_at": None,
    "outcome": "Waits for the mail server.",
}
REPORT_MAILS = [answer("One mail", _MAIL)]
REPORT_MAIL = [
    answer("Requested", {"mails": [_MAIL]}, status=202),
    refusal("No mail server", MailsNotSent()),
]
