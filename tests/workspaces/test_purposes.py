"""What a workspace is for decides its client, and what becomes of it at its end."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import pytest
from pytest_django import Settings

from provisioner.accounts.models import User
from provisioner.catalog.models import Template
from provisioner.engine.models import Step
from provisioner.gateways import registry
from provisioner.leases.sweeps.leases import purge_expired
from provisioner.lib.clocks import database_now
from provisioner.sites.models import ServerAbilities
from provisioner.sites.sweeps import check_abilities
from provisioner.workspaces.actions.retiring import workspace_retire
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.refusals import PurposeNotSupported
from tests.support.jobs import settle
from tests.support.lab import Lab
from tests.support.requests import workspace_create

ALL_TYPES = ["writeable", "readonly", "partitioned", "partitioned-jnl"]


@pytest.fixture
def p4(lab: Lab) -> Iterator[Any]:
    session = lab.as_admin()
    yield session
    session.disconnect()


@pytest.fixture
def no_partitions(p4: Any) -> Iterator[None]:
    """Run the server with its defaults, without client.readonly.dir."""
    p4.run("configure", "set", "client.readonly.dir=")
    yield
    p4.run("configure", "unset", "client.readonly.dir")


def made_for(purpose: str, *, by: User, template: Template) -> Workspace:
    return settle(
        workspace_create(
            by=by, template=template, purpose=purpose, name=f"{by.username}-{purpose}"
        )
    )


def test_each_purpose_gets_its_client_and_goes_as_it_should(
    published_template: Template,
    ci: User,
    jobs_emptied: None,
    p4: Any,
    settings: Settings,
) -> None:
    server = published_template.site.perforce_server
    server.partitioned_development = True
    server.save()
    check_abilities(server.pk)
    assert ServerAbilities.objects.get(server=server).client_types == ALL_TYPES
    pin = published_template.snapshots.get()
    gateway = registry.perforce(server)
    expected = {
        "build": "",
        "ci": "readonly",
        "ci-edit": "partitioned",
        "development": "partitioned-jnl",
    }

    made = {p: made_for(p, by=ci, template=published_template) for p in expected}

    for purpose, workspace in made.items():
        assert workspace.state == Workspace.State.READY, workspace.status_message
        assert workspace.client_type == expected[purpose]
        if purpose == "build":
            assert workspace.client_name == ""
            continue
        client = gateway.clients.find(workspace.client_name)
        assert client is not None
        assert client.type == expected[purpose]
        have = gateway.files.have_list(workspace.client_name)
        assert (have.count, have.digest) == (pin.have_count, pin.have_digest)

    # What is left in a workspace that nobody can submit from is nobody's work.
    reading, editing = made["ci"], made["ci-edit"]
    for workspace in (reading, editing):
        (workspace.path / "src" / "result.txt").write_text("of a build\n")
    change = p4.fetch_change()
    change |= {"Description": "empty", "Client": reading.client_name}
    change.pop("Files", None)
    p4.client = reading.client_name
    p4.save_change(change)
    for workspace in (reading, editing):
        workspace_retire(by=ci, workspace=workspace)
        settle(workspace)

    # Its purpose has no time in the trash, but one check alone purges nothing.
    settings.PURGE_CONFIRM_SECONDS = 120.0
    now = database_now()
    assert reading.state == Workspace.State.TRASHED, reading.status_message
    assert purge_expired(now=now) == 0
    assert purge_expired(now=now + dt.timedelta(minutes=2)) == 1
    settle(reading)

    assert reading.state == Workspace.State.RETIRED, reading.status_message
    assert gateway.clients.find(reading.client_name) is None
    assert not reading.path.exists()
    checks = Step.objects.filter(
        operation__subject__workspace=reading, name__in=("unsubmitted", "work")
    )
    assert not checks.exists()
    assert editing.state == Workspace.State.READY
    assert editing.status_code == "unsubmitted_work"


def test_what_the_server_lacks_is_said_before_or_at_the_latest_by_its_step(
    published_template: Template, ci: User, jobs_emptied: None, no_partitions: None
) -> None:
    workspace = made_for("ci", by=ci, template=published_template)

    assert workspace.state == Workspace.State.FAILED
    assert workspace.status_code == "purpose_not_supported"
    assert "client.readonly.dir" in workspace.status_message
    server = published_template.site.perforce_server
    check_abilities(server.pk)
    assert ServerAbilities.objects.get(server=server).client_types == ["writeable"]
    with pytest.raises(PurposeNotSupported):
        workspace_create(
            by=ci, template=published_template, purpose="ci-edit", name="another"
        )


def test_a_server_that_does_not_answer_leaves_what_was_known(
    template: Template,
) -> None:
    server = template.site.perforce_server

    check_abilities(server.pk)
    check_abilities(0)

    assert not ServerAbilities.objects.exists()
