"""The whole main job on a server that was restored from a checkpoint.

Ours is small and made here. A real one is tried, too, where it is named:

    LAB_CHECKPOINT=…/checkpoint.gz LAB_CHECKPOINT_DEPOTS=…/depot.tar.gz \\
    LAB_CHECKPOINT_VIEW=//depot/jam/... LAB_CHECKPOINT_BUILD=make \\
    pytest tests/contract/test_restored_main_job.py
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from P4 import P4

from provisioner.catalog.actions.templates import template_build, template_create
from provisioner.catalog.models import Template
from provisioner.demo import depot
from provisioner.sites.models import Site
from provisioner.workspaces.actions.retiring import workspace_retire
from provisioner.workspaces.models import Unsubmitted, Workspace
from tests.support.checkpoints import CHECKPOINTS, Real
from tests.support.factories import UserFactory
from tests.support.jobs import settle
from tests.support.lab import Lab, running_lab
from tests.support.requests import workspace_create

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(300, method="thread"),
]


@pytest.fixture(scope="module", params=CHECKPOINTS, ids=lambda make: make.__name__)
def real(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Real:
    made: Real = request.param(tmp_path_factory.mktemp("checkpoint"))
    return made


@pytest.fixture(scope="module")
def lab(real: Real) -> Iterator[Lab]:
    """Both servers, Perforce as the checkpoint has it."""

    options = ("--restore", str(real.checkpoint), "--depots", str(real.depots))
    with running_lab(*options) as lab:
        assert lab.perforce["restore"]["without_archive"] == 0
        p4 = lab.as_admin()
        for user in ("alice", "ci"):
            depot.create_p4_user(p4, user=user, password="lab-password")
        p4.disconnect()
        yield lab


@pytest.fixture
def lab_workspace(lab_site: Site, real: Real, jobs_emptied: None) -> Workspace:
    """A workspace of alice, cloned from a template that was synced and built."""
    template = template_create(
        by=UserFactory.create(username="template-admin", is_staff=True),
        site=lab_site,
        name=f"t{uuid.uuid4().hex[:8]}",
        view=f"{real.view} //any/...",
        build_command=real.build,
        build_timeout_seconds=120,
        ignore_patterns="",
        volume_size_bytes=200 * 2**20,
    )
    template_build(by=template.owner, template=template)
    settle(template)
    assert template.state == Template.State.READY, template.status_message
    alice = UserFactory.create(username="alice", uid=20001, gid=20000)
    workspace = settle(workspace_create(by=alice, template=template))
    assert workspace.state == Workspace.State.READY, workspace.status_message
    return workspace


@pytest.fixture
def p4(lab_workspace: Workspace, lab: Lab) -> Iterator[P4]:
    """Alice's connection, with her new client."""
    account = depot.DepotAccount(
        port=lab.perforce["port"], user="alice", password="lab-password"
    )
    p4 = depot.connect(account, client=lab_workspace.client_name, scratch=lab.root)
    p4.exception_level = 1
    yield p4
    p4.disconnect()


@pytest.mark.integration
def test_a_workspace_of_restored_files_is_built_worked_in_and_given_back(
    lab_workspace: Workspace, real: Real, p4: P4
) -> None:
    files = {
        file["depotFile"]
        for file in p4.run(
            "files", "-e", f"{real.view}@{lab_workspace.snapshot.change}"
        )
    }
    haves = p4.run("have")
    assert {have["depotFile"] for have in haves} == files
    assert all(Path(have["path"]).is_file() for have in haves)
    assert p4.run("sync", "-n") == []
    assert p4.run("diff", "-se") == []

    source = next(have for have in haves if have["path"].endswith(".c"))
    path = Path(source["path"])
    before = path.read_bytes()
    p4.run("edit", str(path))
    path.write_bytes(b"/* alice was here */\n" + before)
    submitted = p4.run("submit", "-d", "say so", str(path))[-1]["submittedChange"]
    printed = "".join(p4.run("print", f"{source['depotFile']}@{submitted}")[1:])
    assert printed.encode() == path.read_bytes()

    # What was built is in no ignore pattern, so it is work that would be lost.
    workspace_retire(
        by=lab_workspace.owner,
        workspace=lab_workspace,
        unsubmitted=Unsubmitted.DISCARD,
        purge=True,
    )
    settle(lab_workspace)
    assert lab_workspace.state == Workspace.State.RETIRED, lab_workspace.status_message
    assert not path.exists()
    assert p4.run("clients", "-e", lab_workspace.client_name) == []
