"""The ownership step where ONTAP does not re-own: the chown, and what it cannot do."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from provisioner.catalog.models import Template
from provisioner.engine import step_run
from provisioner.engine.models import Step
from provisioner.gateways import registry
from provisioner.gateways.errors import Unreachable
from provisioner.gateways.hosts.sampling import (
    OwnershipSample,
    sample_ownership_remotely,
)
from provisioner.sites.models import Site
from provisioner.workspaces.actions.retiring import workspace_retry
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.steps.provision import ensure_owner
from provisioner.workspaces.steps.run import WorkspaceRun
from tests.support.entries import entries_below
from tests.support.factories import UserFactory
from tests.support.jobs import run_jobs_once, settle, under_way_again
from tests.support.requests import workspace_create

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away"),
]


@pytest.fixture
def owned_by_the_host(built_template: Template) -> Template:
    """A template of a site where hosts do the chown."""
    Site.objects.filter(pk=built_template.site_id).update(reown=Site.Reown.HOST)
    built_template.refresh_from_db()
    return built_template


def owner_step(workspace: Workspace) -> Step:
    operation = workspace.operations.first()
    assert operation is not None
    return operation.steps.get(name="owner")


def test_the_host_gives_every_entry_to_the_owner(owned_by_the_host: Template) -> None:
    alice = UserFactory.create(username="alice", uid=20001, gid=20000)
    workspace = settle(workspace_create(by=alice, template=owned_by_the_host))

    assert workspace.state == Workspace.State.READY, workspace.status_message
    assert workspace.ownership["by"] == "chown"
    for path in (workspace.path, *entries_below(workspace.path)):
        status = path.lstat()
        assert (status.st_uid, status.st_gid) == (20001, 20000), path


@pytest.fixture
def make_stubborn() -> Iterator[Callable[[Path], None]]:
    """Return a function that makes a file nobody can chown, until the test ends."""
    if shutil.which("chattr") is None:
        pytest.skip("there is no chattr to make a file immutable with")
    stubborn: list[Path] = []

    def make(path: Path) -> None:
        done = subprocess.run(["chattr", "+i", path], check=False)
        if done.returncode:
            pytest.skip("this filesystem has no immutable files")
        stubborn.append(path)

    yield make
    for path in stubborn:
        subprocess.run(["chattr", "-i", path], check=False)


def test_every_path_that_failed_is_named_and_another_try_goes_on(
    owned_by_the_host: Template, make_stubborn: Callable[[Path], None]
) -> None:
    alice = UserFactory.create(username="alice", uid=20001, gid=20000)
    workspace = workspace_create(by=alice, template=owned_by_the_host)
    # Perforce is asked for access; then the step is held back until the clone has
    # its stubborn file.
    held = owned_by_the_host.site.host_queue
    run_jobs_once(queues=["perforce"])
    run_jobs_once(queues=["storage"])
    assert owner_step(workspace).state == Step.State.QUEUED
    stubborn = workspace.path / "src" / "file7.txt"
    make_stubborn(stubborn)

    run_jobs_once(queues=[held, "perforce"])

    workspace.refresh_from_db()
    assert workspace.status_code == "ownership_incomplete"
    assert "src/file7.txt" in workspace.status_message
    log = owner_step(workspace).log_path
    assert "src/file7.txt" in log.read_text()

    subprocess.run(["chattr", "-i", stubborn], check=True)
    workspace_retry(by=alice, workspace=workspace)
    settle(workspace)
    assert workspace.state == Workspace.State.READY, workspace.status_message


@pytest.mark.skipif(os.geteuid() != 0, reason="the lab gives files away as root alone")
def test_ontap_is_asked_whose_files_are_where_no_host_sees_them(
    lab_workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_run, "VISIBLE_WITHIN_SECONDS", 0.0)
    step = owner_step(lab_workspace)
    run = WorkspaceRun(step)
    run.site.mount_root = run.workspace.site.mount_root = "/nonexistent/clones"

    with under_way_again(step):
        ensure_owner(run)

    lab_workspace.refresh_from_db()
    assert lab_workspace.ownership["by"] == "ontap"
    assert "read through ONTAP agree" in lab_workspace.ownership["sentence"]
    run.workspace.uid += 1
    with pytest.raises(Unreachable):
        ensure_owner(run)


@pytest.mark.skipif(os.geteuid() != 0, reason="the lab gives files away as root alone")
def test_one_entry_of_another_owner_is_found_without_a_mount(
    lab_workspace: Workspace,
) -> None:
    workspace = lab_workspace

    def sampled() -> OwnershipSample:
        return sample_ownership_remotely(
            registry.ontap(workspace.site),
            workspace.volume_uuid,
            uid=workspace.uid,
            gid=workspace.gid,
            sample_size=200,
        )

    listed = registry.ontap(workspace.site).list_directory(
        workspace.volume_uuid, "", at_most=100
    )
    assert ".snapshot" in {entry.name for entry in listed}
    before = sampled()
    assert before.checked > 5
    assert before.mismatches == ()
    os.lchown(workspace.path / "src" / "file3.txt", 0, 0)
    assert sampled().mismatches == ("src/file3.txt belongs to 0:0",)
