"""Stopping the very worker that has a step, in one step after the other."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import QuerySet, TextChoices
from procrastinate.contrib.django.models import ProcrastinateJob

from provisioner.cloning.models import CloningOperation
from provisioner.engine import workflow
from provisioner.engine.models import Step, WorkerQueues
from provisioner.recovery.models import RecoveryOperation
from provisioner.transfer.models import TransferOperation
from provisioner.workspaces.models import WorkspaceOperation
from tests.chaos.faultboard import Fault
from tests.chaos.patience import from_database
from tests.chaos.servers import Servers

# Short steps last long enough to be met.
SLOW = Fault(
    kind="slow for a freeze",
    ontap=({"path": "/api/*", "latency_seconds": 0.3, "times": 20},),
    perforce=({"command": "*", "latency_seconds": 0.3, "times": 20},),
)
Place = tuple[str, str]
"""The kind of an operation, and the name of one of its steps."""


def steps_of(request: str) -> list[Place]:
    """Return the steps that a request may lead to."""
    of_requests: dict[str, list[TextChoices]] = {
        "create": [WorkspaceOperation.PROVISION],
        "check": [WorkspaceOperation.CHECK],
        "transfer": [TransferOperation.TRANSFER],
        "clone": [CloningOperation.CLONE],
        "recover": [RecoveryOperation.RECOVER],
        "split": [WorkspaceOperation.SPLIT],
        "stop split": [WorkspaceOperation.STOP_SPLIT],
        "compare": [WorkspaceOperation.COMPARE],
        "take back": [WorkspaceOperation.TAKE_BACK],
        "restore snapshot": [WorkspaceOperation.RESTORE_SNAPSHOT],
        "restore": [WorkspaceOperation.RESTORE],
        "purge": [WorkspaceOperation.PURGE],
        "retry": [WorkspaceOperation.PROVISION, WorkspaceOperation.RETIRE],
    }
    kinds = of_requests.get(request, [WorkspaceOperation.RETIRE])
    if "and purge" in request:
        kinds = [*kinds, WorkspaceOperation.PURGE]
    return [
        (str(kind), spec.name)
        for kind in kinds
        for spec in workflow.WORKFLOWS[kind].steps
    ]


@dataclass(frozen=True, kw_only=True)
class Held:
    """An attempt at a step, and the process of the worker that is at it."""

    step_id: int
    attempt: int
    process_id: int


def holder_of(steps: QuerySet[Step]) -> Held | None:
    """Return who is at the first of these steps that runs, if anybody is."""
    step = steps.filter(state=Step.State.RUNNING).first()
    if step is None:
        return None
    jobs = ProcrastinateJob.objects.filter(pk=step.job_id, status="doing")
    worker = WorkerQueues.objects.filter(worker_id__in=jobs.values("worker_id")).first()
    if worker is None:
        return None
    return Held(step_id=step.pk, attempt=step.attempt, process_id=worker.process_id)


class Freezer:
    """Counts in which steps a worker was stopped while it was at them."""

    def __init__(self, servers: Servers) -> None:
        self.counts: Counter[str] = Counter()
        self._tried: Counter[Place] = Counter()
        self._servers = servers
        self._lock = threading.Lock()

    def next_of(self, places: Sequence[Place]) -> Place:
        """Return the step of these that was met least; of several, tried least."""
        with self._lock:
            place = min(
                places, key=lambda one: (self.counts[": ".join(one)], self._tried[one])
            )
            self._tried[place] += 1
        return place

    def freeze_in(self, steps: QuerySet[Step], *, place: Place) -> str:
        """Stop whoever is at one of these steps; say who, "" where nobody is."""
        held = from_database(lambda: holder_of(steps))
        if held is None:
            return ""

        def count() -> None:
            """Count it where the step had not ended before its worker stopped."""
            same = Step.objects.filter(
                pk=held.step_id, attempt=held.attempt, state=Step.State.RUNNING
            )
            if from_database(same.exists):
                self.counts[": ".join(place)] += 1

        return self._servers.freeze_process(held.process_id, once_stopped=count)

    def missed(self, places: Sequence[Place]) -> list[str]:
        """Return those of the steps that ran in which no worker was ever stopped."""
        ran = from_database(
            lambda: set(
                Step.objects.filter(attempt__gt=0)
                .exclude(state=Step.State.SKIPPED)
                .order_by()
                .values_list("operation__kind", "name")
                .distinct()
            )
        )
        return sorted(
            ": ".join(place)
            for place in places
            if place in ran and not self.counts[": ".join(place)]
        )
