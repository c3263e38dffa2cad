"""Examples of workspace requests for the schema."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample

from provisioner.accounts.refusals import OutOfScope
from provisioner.api.examples import answer, refusal, request_body
from provisioner.lib.limits import CloneLimitReached, Limit
from provisioner.lib.refusals import NameTaken
from provisioner.workspaces.api.examples import CREATING, WORKSPACE
from provisioner.workspaces.refusals import WorkspaceFailed

CREATE: list[OpenApiExample] = [
    request_body(
        "For a CI job",
        {"template": "main", "purpose": "ci", "lease": 3600, "heartbeat_seconds": 300},
    ),
    request_body("For a developer", {"template": "main"}),
    answer("Ready", WORKSPACE, status=201),
    answer("Still being made", CREATING, status=202),
    refusal("Another token", OutOfScope(what="the purpose “development”")),
    refusal("Name taken", NameTaken(name="ci-main-4711")),
    refusal(
        "It failed",
        WorkspaceFailed(
            name="ci-main-4711", reason="The aggregate is full.", workspace=4711
        ),
    ),
    refusal(
        "A limit is reached",
        CloneLimitReached(
            (limit := Limit("clone_limit", subject="main", used=500, allowed=500)),
            [limit],
        ),
    ),
]
