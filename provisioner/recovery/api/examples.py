"""Examples of recoveries for the schema."""

from __future__ import annotations

from typing import Any

from provisioner.api.examples import answer, refusal, request_body
from provisioner.recovery.refusals import NothingCopied, OriginalAnswers
from provisioner.workspaces.api.examples import CREATING

_MADE: dict[str, Any] = {
    **CREATING,
    "id": 4730,
    "operation": {**CREATING["operation"], "id": 9050, "kind": "recover"},
}
RECOVER = [
    request_body("While its site does not answer", {"site": "bangalore"}),
    request_body(
        "By an administrator", {"site": "bangalore", "original_is_stopped": True}
    ),
    answer("Started", _MADE, status=202),
    refusal("In use", OriginalAnswers(site="munich", name="alice-main")),
    refusal("Nothing yet", NothingCopied(site="bangalore", name="alice-main")),
]
