"""A workspace's life at a site whose hosts mount each volume.

The lab's program stands in for mount(8): it asks the lab for leave, as an NFS server is
asked, and binds the volume.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from provisioner.accounts.models import User
from provisioner.catalog.actions.lifecycle import template_delete
from provisioner.catalog.models import Template
from provisioner.engine.models import Step
from provisioner.gateways import registry
from provisioner.gateways.hosts.mounts import mounted_in, mounts_at
from provisioner.sites.connections.hosts import check_from_host
from provisioner.sites.connections.trial import try_out
from provisioner.sites.models import Site
from provisioner.sites.sweeps import check_mount
from provisioner.workspaces.actions.retiring import (
    workspace_purge,
    workspace_restore,
    workspace_retire,
)
from provisioner.workspaces.models import Workspace
from tests.support.factories import UserFactory
from tests.support.jobs import settle
from tests.support.lab import Lab
from tests.support.requests import workspace_create

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts"),
]


@pytest.fixture
def site(lab: Lab, lab_site: Site, settings: Any, tmp_path: Path) -> Iterator[Site]:
    """The lab's site, whose hosts do not see its namespace."""
    password = tmp_path / "password"
    password.write_text(lab.ontap["password"])
    settings.MOUNT_COMMAND = [
        *(sys.executable, "-m", "provisioner.lab.ontap.mount"),
        *("--port", str(lab.ontap["port"]), "--ca-file", lab.ontap["ca_file"]),
        *("--password-file", str(password)),
    ]
    root = lab.root / "each"
    root.mkdir()
    lab_site.mounting, lab_site.nfs_server = Site.Mounting.EACH, "127.0.0.1"
    lab_site.mount_root = str(root)
    lab_site.remove_contents = True
    lab_site.full_clean()
    lab_site.save()
    yield lab_site
    for mount in mounted_in(root):
        subprocess.run(["umount", "-l", str(mount.mount_point)], check=True)
    for directory in root.iterdir():
        directory.rmdir()
    root.rmdir()


@pytest.fixture
def owner(transactional_db: None) -> User:
    return UserFactory.create(username="alice", uid=20001, gid=20000)


Run = Callable[[], None]


def now(workspace: Workspace) -> Workspace:
    workspace.refresh_from_db()
    return workspace


def is_mounted(path: Path) -> bool:
    return bool(mounts_at(path))


def test_a_workspace_lives_and_ends_without_the_namespace(
    site: Site, built_template: Template, owner: User, run_jobs: Run
) -> None:
    assert is_mounted(built_template.path)
    workspace = workspace_create(by=owner, template=built_template, name="each")
    run_jobs()
    assert now(workspace).state == Workspace.State.READY, workspace.status_message
    assert len(mounts_at(workspace.path)) == 1
    assert (workspace.path / "out" / "all").stat().st_uid == 20001
    assert ".p4config" in os.listdir(workspace.path)

    # After a reboot the next step mounts it again.
    subprocess.run(["umount", str(workspace.path)], check=True)
    (workspace.path.parent / "w-each").rmdir()
    workspace_retire(by=owner, workspace=workspace)
    run_jobs()
    assert now(workspace).state == Workspace.State.TRASHED, workspace.status_message
    assert not workspace.path.exists()

    workspace_restore(by=owner, workspace=workspace)
    run_jobs()
    assert now(workspace).state == Workspace.State.READY, workspace.status_message
    assert is_mounted(workspace.path)

    workspace_retire(by=owner, workspace=workspace)
    run_jobs()
    workspace_purge(by=owner, workspace=now(workspace))
    run_jobs()
    assert now(workspace).state == Workspace.State.RETIRED, workspace.status_message
    assert [m.mount_point for m in mounted_in(workspace.path.parent)] == [
        built_template.path
    ]


def test_a_workspace_in_use_on_a_host_of_workers_is_not_torn_away(
    site: Site, built_template: Template, owner: User, run_jobs: Run
) -> None:
    workspace = workspace_create(by=owner, template=built_template, name="each")
    run_jobs()

    with (workspace.path / "note").open("w") as file:
        workspace_retire(by=owner, workspace=workspace, unsubmitted="discard")
        run_jobs()
        step = Step.objects.filter(name="leave").latest("pk")
        assert step.state == Step.State.RETRYING
        assert "still mounted on this host" in step.error_message
        assert is_mounted(workspace.path)
        volume = registry.ontap(site).find_volume(workspace.volume_name)
        assert volume is not None
        assert volume.junction_path == workspace.junction_path
        file.write("kept")

    assert settle(workspace).state == Workspace.State.TRASHED, workspace.status_message


def test_a_template_is_unmounted_before_it_is_deleted(
    site: Site, built_template: Template, run_jobs: Run
) -> None:
    assert is_mounted(built_template.path)
    template_delete(by=built_template.owner, template=built_template)
    run_jobs()
    assert not built_template.path.exists()


def test_what_another_host_retired_is_unmounted_by_the_daily_check(
    site: Site, built_template: Template, owner: User, run_jobs: Run
) -> None:
    workspace = workspace_create(by=owner, template=built_template, name="each")
    run_jobs()
    workspace_retire(by=owner, workspace=now(workspace))
    run_jobs()
    # As on a host that mounted it once, and on which the retirement did not run.
    workspace.path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "gone", workspace.path], check=True)

    check_mount(site.pk, os.uname().nodename, 0)

    assert not workspace.path.exists()
    assert is_mounted(built_template.path)


def test_a_connection_is_tested_and_tried_out(site: Site) -> None:
    found = {check.name: check for check in check_from_host(site)}
    assert "mounted by" in found["namespace"].sentence
    assert "nosuid,nodev" in found["mount_options"].sentence
    assert all(found[name].outcome == "passed" for name in ("namespace", "mount_root"))

    tried = try_out(site)

    assert {check.outcome for check in tried} == {"passed"}, tried
    assert not list(Path(site.mount_root).iterdir())
