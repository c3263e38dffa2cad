"""kill -9 of a worker in any step of a verification or a baseline leaves nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import pytest

from provisioner.demo.processes import Child
from provisioner.engine.models import Operation
from provisioner.engine.queues import PERFORCE, STORAGE
from provisioner.engine.workflow import StepSpec
from provisioner.gateways.hosts.scratch import scratch_left
from provisioner.gateways.owners import Ids
from provisioner.qualification.actions.baselines import baseline_start
from provisioner.qualification.models import QualificationOperation, QualificationRun
from provisioner.qualification.queries import values_of
from provisioner.qualification.workflows import RUN
from provisioner.recipes.models import Verification, VerifiedDepot
from provisioner.recipes.workflows import VERIFY
from provisioner.sandboxes.models import Sandbox, SandboxOperation
from provisioner.sandboxes.workflows import CREATE, RETIRE
from tests.support.killed_workers import (
    LATENCY_SECONDS,
    kill_in_steps,
    slow_ends,
    start_worker,
    warm_worker,
)
from tests.support.lab import Lab
from tests.support.sandboxes import SandboxScene, admin_user_row, sandbox_scene

pytestmark = [
    pytest.mark.integration,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(600),
]

__all__ = ["admin_user_row", "sandbox_scene", "start_worker", "warm_worker"]

Start = Callable[..., Child]
MEASURED = {"target", "data", "measure1", "figures"}


def names_of(specs: Iterable[StepSpec]) -> set[str]:
    return {spec.name for spec in specs}


def killed_in(operation: Operation, names: set[str], start_worker: Start) -> None:
    """Kill a worker in each of these steps; one may end between two looks."""
    missed = set(names)
    queues = f"{STORAGE},{PERFORCE},{operation.subject.row.own_queue}"
    start = partial(start_worker, "--queues", queues)
    kill_in_steps(operation, names=missed, start_worker=start)
    assert len(missed) < len(names) / 2, f"hardly seen to run: {missed}"


def gone(scene: SandboxScene, sandbox: Sandbox, start_worker: Start) -> None:
    """Kill in each step of the retirement, and look for what is left after that."""
    killed_in(
        sandbox.operations.get(kind=SandboxOperation.RETIRE),
        names_of(RETIRE) - {"quiet"},
        start_worker,
    )
    sandbox.refresh_from_db()
    assert sandbox.state == Sandbox.State.RETIRED, sandbox.status_message
    assert scene.left() == []
    owner = Ids(uid=scene.host.uid, gid=scene.host.gid)
    assert scratch_left(str(sandbox.tag), owner) == []


def test_workers_killed_while_archives_are_verified_leave_nothing(
    sandbox_scene: SandboxScene, lab: Lab, start_worker: Start
) -> None:
    scene = sandbox_scene
    lab.break_ontap({"latency_seconds": LATENCY_SECONDS})
    sandbox = scene.create(purpose=Sandbox.Purpose.VERIFY)
    steps = names_of(VERIFY)

    with slow_ends(*steps, *names_of(RETIRE)):
        killed_in(sandbox.operations.get(), steps, start_worker)
        gone(scene, sandbox, start_worker)

    verification = Verification.objects.get()
    assert verification.ended_at is not None
    depots = VerifiedDepot.objects.filter(left_out="")
    assert [(each.bad, each.missing) for each in depots] == [(0, 0)]


def test_workers_killed_while_a_sandbox_is_measured_leave_nothing(
    sandbox_scene: SandboxScene, lab: Lab, start_worker: Start
) -> None:
    scene = sandbox_scene
    lab.break_ontap({"latency_seconds": LATENCY_SECONDS})
    run = baseline_start(
        by=scene.by,
        profile="sync",
        server=scene.server,
        name="baseline",
        version=scene.version,
        host=scene.host,
        hours=2,
        files=150,
        size=64,
        children=2,
        repeats=1,
    )
    sandbox = run.sandbox
    assert sandbox is not None
    steps = names_of(CREATE)

    with slow_ends(*steps, *names_of(RUN), *names_of(RETIRE)):
        killed_in(sandbox.operations.get(), steps, start_worker)
        killed_in(
            run.operations.get(kind=QualificationOperation.RUN), MEASURED, start_worker
        )
        gone(scene, sandbox, start_worker)

    run.refresh_from_db()
    assert run.state == QualificationRun.State.DONE, run.status_message
    assert len(values_of(run)["elapsed"]) == 1
