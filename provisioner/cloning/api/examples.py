"""Examples of clones for the schema."""

from __future__ import annotations

from typing import Any

from provisioner.api.examples import answer, refusal, request_body
from provisioner.cloning.refusals import CannotSeeSource
from provisioner.workspaces.api.examples import CREATING

_MADE: dict[str, Any] = {
    **CREATING,
    "id": 4731,
    "operation": {**CREATING["operation"], "id": 9051, "kind": "clone_workspace"},
}
CLONE = [
    request_body("For a colleague", {"owner": "bob"}),
    request_body("As it was", {"snapshot": 31}),
    answer("Started", _MADE, status=202),
    refusal("Not shared", CannotSeeSource(username="carol", name="alice-main")),
]
