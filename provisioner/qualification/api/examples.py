"""Examples of runs for the schema."""

from __future__ import annotations

from typing import Any

from provisioner.api.examples import answer, refusal, request_body
from provisioner.qualification.refusals import NotScratch, RunNotFailed
from provisioner.sandboxes.refusals import NoSandboxesForYou

_RUN: dict[str, Any] = {
    "id": 12,
    "profile": "branchsubmit",
    "server": "production",
    "sandbox": "case-4711",
    "template": None,
    "site": "munich",
    "owner": "admin",
    "files": 70000,
    "size": 1024,
    "seed": 1,
    "children": 1,
    "hosts": 1,
    "rounds": 1,
    "stagger_ms": 0,
    "repeats": 2,
    "is_cold": False,
    "note": "new firmware",
    "state": "done",
    "status_code": "",
    "status_message": "",
    "release": "P4D/LINUX26X86_64/2024.2/2697822 (2024/12/19)",
    "created_at": "2026-11-28T09:12:00Z",
    "ended_at": "2026-11-28T09:14:41Z",
    "figures": [
        {
            "code": "commit_rate",
            "title": "Commit rate",
            "unit": "files/s",
            "values": [17500.0, 18421.1],
            "average": 17960.5,
        }
    ],
    "phases": [],
    "summary": [
        "Repeat 1: 70,000 files in 4.000 s, by the longest hold of a write lock: "
        "17,500 files/s."
    ],
}
LIST = [answer("Done", _RUN)]
GET = [answer("Done", _RUN)]
CREATE = [
    request_body(
        "Branch 70,000 files in a sandbox",
        {"profile": "branchsubmit", "sandbox": "case-4711", "repeats": 2},
    ),
    answer(
        "Requested",
        _RUN | {"state": "running", "ended_at": None, "figures": [], "summary": []},
        status=202,
    ),
    refusal("Not scratch", NotScratch(server="production")),
]
BASELINE = [
    request_body(
        "Measure production as it is now",
        {
            "profile": "branchsubmit",
            "server": "production",
            "name": "baseline",
            "version": "2024.2",
            "host": "isolated",
            "hours": 4,
        },
    ),
    answer(
        "Requested",
        _RUN
        | {"sandbox": "baseline", "state": "waiting", "ended_at": None}
        | {"release": "", "figures": [], "summary": [], "repeats": 5, "note": ""},
        status=202,
    ),
    refusal("No policy", NoSandboxesForYou()),
]
RETRY = [
    answer(
        "Goes on",
        _RUN | {"state": "running", "ended_at": None, "figures": [], "summary": []},
        status=202,
    ),
    refusal("Not failed", RunNotFailed(number="12", state="done")),
]
