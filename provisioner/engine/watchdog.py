"""The texts about operations that were lost."""

from __future__ import annotations

from provisioner.engine.workflow import Failure

LOST = Failure(
    code="operation_lost",
    message="The work on it was lost and nobody goes on with it. Try again, or retire "
    "it.",
)
