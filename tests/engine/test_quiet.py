"""Waiting for what an operation that was cut short had begun."""

from __future__ import annotations

import pytest
from django.utils import timezone

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot
from provisioner.engine.models import Operation, Step
from provisioner.engine.steps import ensure_quiet
from provisioner.gateways.errors import Busy
from provisioner.workspaces.steps.run import WorkspaceRun
from tests.support.requests import workspace_create

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("kind", ["retire", "restore", "purge"])
def test_each_kind_of_operation_waits_in_its_own_name(
    kind: str, alice: User, snapshot: Snapshot
) -> None:
    workspace = workspace_create(by=alice, template=snapshot.template)
    earlier = workspace.operations.get()
    Operation.objects.filter(pk=earlier.pk).update(
        state=Operation.State.CANCELED, ended_at=timezone.now()
    )
    at_work = earlier.steps.get(name="owner")
    Step.objects.filter(pk=at_work.pk).update(
        state=Step.State.RUNNING, started_at=timezone.now()
    )
    later = Operation.objects.create(
        subject=workspace.subject, kind=kind, requested_by=workspace.owner
    )
    run = WorkspaceRun(Step.objects.create(operation=later, name="quiet", position=0))

    with pytest.raises(Busy, match=f"running on {workspace.name}: owner") as busy:
        ensure_quiet(run)
    assert busy.value.operation == kind

    Step.objects.filter(pk=at_work.pk).update(
        state=Step.State.DONE, ended_at=timezone.now()
    )
    ensure_quiet(run)
