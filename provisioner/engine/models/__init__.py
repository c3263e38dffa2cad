"""The models of this feature, with their constraints."""

from __future__ import annotations

from provisioner.engine.models.operations import (
    Operation,
    Parameters,
    PerforceUse,
    Step,
)
from provisioner.engine.models.slots import LockWait, ServerLoad, SlotBudget
from provisioner.engine.models.subjects import HasOperations, Subject
from provisioner.engine.models.workers import KnownTimeline, WorkerQueues

__all__ = [
    "HasOperations",
    "KnownTimeline",
    "LockWait",
    "Operation",
    "Parameters",
    "PerforceUse",
    "ServerLoad",
    "SlotBudget",
    "Step",
    "Subject",
    "WorkerQueues",
]
