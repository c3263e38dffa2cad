"""Examples of processes and configurations for the schema."""

from __future__ import annotations

from provisioner.api.examples import answer, refusal
from provisioner.insight.refusals import MailsNotSent, ProcessOfTheServer

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
_ENDING = {
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
}
END = [
    answer("Requested", _ENDING, status=202),
    refusal("Replication", ProcessOfTheServer(command="pull")),
]

PROGRAMS = [
    answer(
        "One old client",
        {
            "server": "commit",
            "program": "p4",
            "release": "2019.1",
            "user": "qtdev",
            "host": "10.5.70.45",
            "first_seen_at": "2026-08-24T09:18:11Z",
            "last_seen_at": "2026-11-24T09:18:11Z",
        },
    )
]

_RELEASES = {
    "server": "commit",
    "server_id": 1,
    "releases": [{"program": "p4", "minimum": "2020.1", "recommended": "2024.2"}],
    "people": [
        {
            "user": "qtdev",
            "outdated": [
                {
                    "program": "p4",
                    "release": "2019.1",
                    "minimum": "2020.1",
                    "recommended": "2024.2",
                    "is_too_old": True,
                }
            ],
            "mailed_at": None,
            "trouble": "",
            "is_due": True,
        }
    ],
}
RELEASES = [answer("One server", _RELEASES)]
RELEASE_CHANGE = [answer("Changed", _RELEASES)]
RELEASES_ASK = [
    answer(
        "Requested",
        {"mails": [{"id": 7, "user": "qtdev", "requested_at": "2026-11-24T09:41:03Z"}]},
        status=202,
    ),
    refusal("No mail server", MailsNotSent()),
]

_RULE = {
    "server": "commit",
    "server_id": 1,
    "command_hours": 72,
    "idle_hours": None,
    "only_gone_hosts": True,
    "is_automatic": False,
    "orphans": [{**_PROCESS, "started_at": "2026-11-19T09:18:11Z"}],
}
ORPHAN_RULES = [answer("One server", _RULE)]
ORPHAN_RULE_CHANGE = [answer("Changed", _RULE)]
ORPHANS_END = [answer("Requested", {"endings": [_ENDING]}, status=202)]

CLIENTS = [
    answer(
        "One client with a loose view",
        {
            "server": "commit",
            "name": "qtdev-all",
            "kind": "",
            "owner": "qtdev",
            "host": "",
            "accessed_at": "2026-11-24T09:18:11Z",
            "opened_files": 0,
            "locked_files": 0,
            "synced_files": None,
            "findings": [
                {
                    "code": "whole-depot",
                    "title": "Maps a whole depot",
                    "saw": "Its view maps //depot/... //qtdev-all/....",
                    "advice": "Ask its owner for a tight view: the directories that "
                    "are worked on. That prevents accidental syncs of the entire "
                    "depot.",
                    "reference": "P4 Server Administration Documentation, Using tight "
                    "views; RIM limited client specs",
                }
            ],
        },
    )
]
_ADVICE_RULE = {
    "server": "commit",
    "server_id": 1,
    "unused_days": 90,
    "many_files": 100000,
    "many_protections": 1000,
}
ADVICE_RULES = [answer("One server", _ADVICE_RULE)]
ADVICE_RULE_CHANGE = [answer("Changed", {**_ADVICE_RULE, "unused_days": 180})]

CONFIGURATIONS = [
    answer(
        "One server",
        {
            "id": 1,
            "server": "commit",
            "read_at": "2026-11-24T04:41:02Z",
            "trouble": "",
            "version": "P4D/LINUX26X86_64/2024.2/2675662 (2024/11/12)",
            "users": 180,
            "files": 12400000,
            "protection_lines": 84,
            "wide_protections": 0,
            "host": "p4d1",
            "host_read_at": "2026-11-24T04:41:04Z",
            "memory_bytes": 68719476736,
            "settings": [{"name": "monitor", "value": "1", "source": "configure"}],
            "filesystems": [
                {
                    "name": "P4ROOT",
                    "fs_type": "xfs",
                    "mount_point": "/p4/1",
                    "percent_used": 61,
                    "mount_options": "rw,noatime",
                }
            ],
            "judgments": [
                {
                    "code": "parallel",
                    "title": "Parallel syncs",
                    "outcome": "advice",
                    "saw": "net.parallel.max=0",
                    "advice": "Set net.parallel.max, to 8 for example: templates sync "
                    "over several connections then.",
                    "reference": "p4 configure help net.parallel.max",
                }
            ],
        },
    )
]
