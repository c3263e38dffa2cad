"""Examples of processes for the schema."""

from __future__ import annotations

from provisioner.api.examples import answer, refusal
from provisioner.insight.refusals import ProcessOfTheServer

_PROCESS = {
    "id": 31,
    "server": "commit",
    "number": 208015,
    "state": "R",
    "user": "qtdev",
    "program": "p4/2025.1",
    "client": "qtdev-main",
    "host": "10.5.70.45",
    "command": "sync",
    "arguments": "-f -q //...",
    "started_at": "2026-11-24T09:18:11Z",
    "is_of_the_server": False,
}
LIST = [answer("One long sync", _PROCESS)]
GET = [answer("One long sync", _PROCESS)]
END = [
    answer(
        "Requested",
        {
            "id": 4,
            "server": "commit",
            "number": 208015,
            "user": "qtdev",
            "command": "sync",
            "started_at": "2026-11-24T09:18:11Z",
            "requested_by": "admin",
            "requested_at": "2026-11-24T09:41:03Z",
            "state": "requested",
            "message": "",
        },
        status=202,
    ),
    refusal("Replication", ProcessOfTheServer(command="pull")),
]
