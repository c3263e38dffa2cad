"""kill -9 of a worker during any step: the next one brings the workspace to READY."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator

import pytest

from provisioner.accounts.models import User
from provisioner.catalog.actions.templates import template_build
from provisioner.catalog.models import Template
from provisioner.demo.processes import Child
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.workflows import PROVISION
from tests.support.factories import UserFactory
from tests.support.killed_workers import (
    LATENCY_SECONDS,
    kill_in_steps,
    slow_ends,
    start_worker,
    wait_for,
    warm_worker,
)
from tests.support.lab import Lab
from tests.support.requests import workspace_create

pytestmark = [
    pytest.mark.integration,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(600),
]

__all__ = ["start_worker", "warm_worker"]


@pytest.fixture
def slow_local_steps(transactional_db: None) -> Iterator[None]:
    with slow_ends("owner", "p4config"):
        yield


@pytest.mark.usefixtures("slow_local_steps")
def test_workers_killed_while_provisioning_are_a_non_event(
    published_template: Template, lab: Lab, start_worker: Callable[[], Child]
) -> None:
    alice: User = UserFactory.create(username="alice", uid=20001, gid=20000)
    lab.break_ontap({"latency_seconds": LATENCY_SECONDS})
    lab.break_perforce({"latency_seconds": LATENCY_SECONDS})
    names = {spec.name for spec in PROVISION}
    for _try in range(3):  # one may end between two looks
        workspace = workspace_create(
            by=alice, template=published_template, wants_reconcile=True
        )
        kill_in_steps(
            workspace.operations.get(), names=names, start_worker=start_worker
        )
        workspace.refresh_from_db()
        assert workspace.state == Workspace.State.READY
        if not names:
            return
    raise AssertionError(f"never seen to run: {names}")


def test_workers_killed_while_building_are_a_non_event(
    lab_template: Template, lab: Lab, start_worker: Callable[[], Child]
) -> None:
    Template.objects.filter(pk=lab_template.pk).update(
        build_command=f"sleep 1 && {lab_template.build_command}"
    )
    lab.break_ontap({"latency_seconds": LATENCY_SECONDS})
    lab.break_perforce({"latency_seconds": LATENCY_SECONDS})
    operation = template_build(by=lab_template.owner, template=lab_template)
    names = {"sync", "build", "snapshot"}

    kill_in_steps(operation, names=names, start_worker=start_worker)

    assert not names, "never seen to run"
    assert lab_template.snapshots.count() == 1


def test_a_worker_closes_logs_of_earlier_releases(
    start_worker: Callable[[], Child], lab: Lab
) -> None:
    log = lab.root / "logs" / "operation-0-build.log"
    log.parent.mkdir(exist_ok=True)
    log.parent.chmod(0o755)
    log.write_text("of an earlier release\n")
    log.chmod(0o644)

    worker = start_worker()

    wait_for(lambda: stat.S_IMODE(log.stat().st_mode) == 0o640, worker=worker)
    assert stat.S_IMODE(log.parent.stat().st_mode) == 0o750
