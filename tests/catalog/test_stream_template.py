"""A template of a stream: its view is the stream's, for the template and its clones."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from provisioner.catalog.actions.templates import template_build, template_create
from provisioner.catalog.models import Template
from provisioner.gateways import registry
from provisioner.sites.models import Site
from provisioner.workspaces.models import Workspace
from tests.support.factories import UserFactory
from tests.support.lab import Lab
from tests.support.requests import workspace_create

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def stream(lab: Lab) -> str:
    """A mainline stream with two files in it."""
    depot = f"streams{uuid.uuid4().hex[:6]}"
    p4 = lab.as_admin()
    spec = p4.fetch_depot(depot)
    spec["Type"] = "stream"
    spec["StreamDepth"] = f"//{depot}/1"
    p4.save_depot(spec)
    name = f"//{depot}/main"
    spec = p4.fetch_stream("-t", "mainline", name)
    p4.save_stream(spec)
    root = lab.root / depot
    client = p4.fetch_client("-S", name, f"fill-{depot}")
    client["Root"], client["Host"] = str(root), ""
    p4.save_client(client)
    p4.client = f"fill-{depot}"
    for number in range(2):
        path = Path(root) / "src" / f"file{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{number}\n")
        p4.run("add", str(path))
    p4.run("submit", "-d", "Fill the stream")
    p4.disconnect()
    return name


def test_a_workspace_of_a_stream_has_the_streams_view(
    stream: str, lab_site: Site, run_jobs: Callable[[], None]
) -> None:
    admin = UserFactory.create(username="admin", is_staff=True)
    template = template_create(
        by=admin,
        site=lab_site,
        name="stream",
        stream=stream,
        build_command="echo built > built.txt",
        ignore_patterns="built.txt",
        volume_size_bytes=100 * 2**20,
    )
    template_build(by=admin, template=template)
    run_jobs()
    template.refresh_from_db()
    assert template.state == Template.State.READY, template.status_message

    alice = UserFactory.create(username="alice", uid=20001, gid=20000)
    workspace = workspace_create(by=alice, template=template, wants_reconcile=True)
    run_jobs()

    workspace.refresh_from_db()
    assert workspace.state == Workspace.State.READY, workspace.status_message
    client = registry.perforce(lab_site.perforce_server).clients.find(
        workspace.client_name
    )
    assert client is not None
    assert client.stream == stream
    assert client.view == (f"{stream}/... //{workspace.client_name}/...",)
    assert (workspace.path / "src" / "file1.txt").read_text() == "1\n"
    assert workspace.reconcile == {"count": 0, "findings": []}
