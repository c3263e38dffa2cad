"""Two requests that cross each other: one waits for the other, neither is lost."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction

from provisioner.accounts.models import User
from provisioner.catalog.actions.templates import template_build, template_build_stop
from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.refusals import NothingToStop
from provisioner.engine import states
from provisioner.engine import states as engine_states
from provisioner.engine.models import Operation
from provisioner.workspaces.actions.retiring import workspace_retire
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.states import set_workspace_state
from tests.support.crossing import (
    in_a_connection_of_its_own,
    wait_until_somebody_waits_for_a_lock,
)
from tests.support.requests import workspace_create

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("jobs_emptied"),
]


def test_a_build_is_asked_for_while_a_workspace_of_the_template_is(
    admin: User, alice: User, template: Template, snapshot: Snapshot
) -> None:
    def refer_to_the_template() -> None:
        # What the database does when a row that refers to it is written.
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = '5s'")
            cursor.execute(
                "SELECT 1 FROM catalog_template WHERE id = %s FOR KEY SHARE",
                [template.pk],
            )

    with ThreadPoolExecutor(1) as others, transaction.atomic():
        template_build(by=admin, template=template)

        others.submit(in_a_connection_of_its_own(refer_to_the_template)).result()


def test_a_workspace_is_retired_while_its_last_step_ends(
    alice: User, snapshot: Snapshot
) -> None:
    workspace = workspace_create(by=alice, template=snapshot.template)
    operation = workspace.operations.get()

    def retire() -> Operation:
        return workspace_retire(by=alice, workspace=workspace)

    with ThreadPoolExecutor(1) as others:
        with transaction.atomic():
            states.lock_operation(operation)
            retired = others.submit(in_a_connection_of_its_own(retire))
            wait_until_somebody_waits_for_a_lock()
            engine_states.end_operation(operation, Operation.State.SUCCEEDED)
            set_workspace_state(workspace, Workspace.State.READY)
        retirement = retired.result()

    assert isinstance(retirement, Operation)
    assert retirement.subject.workspace.was_ready
    operation.refresh_from_db()
    assert operation.state == Operation.State.SUCCEEDED


def test_a_build_is_stopped_in_the_moment_in_which_it_begins_to_publish(
    admin: User, template: Template
) -> None:
    build = template_build(by=admin, template=template)
    publishing = build.steps.get(name="snapshot")
    engine_states.queue_step(publishing, job_id=1)

    def stop() -> Operation:
        return template_build_stop(by=admin, template=template)

    with ThreadPoolExecutor(1) as others:
        with transaction.atomic():
            engine_states.start_step(publishing)
            stopped = others.submit(in_a_connection_of_its_own(stop))
            wait_until_somebody_waits_for_a_lock()
        with pytest.raises(NothingToStop):
            stopped.result()

    build.refresh_from_db()
    assert build.state == Operation.State.RUNNING
