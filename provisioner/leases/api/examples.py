"""Examples of leases for the schema."""

from __future__ import annotations

from provisioner.api.examples import answer, refusal, request_body
from provisioner.leases.refusals import LeaseTooLong
from provisioner.workspaces.api.examples import WORKSPACE
from provisioner.workspaces.refusals import WorkspaceRetired

_EXTENDED = {
    **WORKSPACE,
    "lease": {**WORKSPACE["lease"], "ends_at": "2026-11-24T13:00:00Z"},
}
EXTEND = [
    request_body("Four hours from now", {"seconds": 14400}),
    request_body("By the default length", {}),
    answer("Extended", _EXTENDED),
    refusal("Too long", LeaseTooLong(asked="1 Dec 09:00", latest="25 Nov 09:00")),
]
_KEPT = "The trade show runs on it."
KEEP = [
    request_body("For a trade show", {"reason": _KEPT}),
    answer(
        "Kept",
        {
            **WORKSPACE,
            "lease": {**WORKSPACE["lease"], "ends_at": None, "kept_because": _KEPT},
        },
    ),
]
_GONE = WorkspaceRetired(name="ci-main-4711", workspace=4711)
HEARTBEAT = [answer("Heard", WORKSPACE), refusal("Retired", _GONE)]
