"""Making a workspace on the lab: ready, again, after lost replies and failures."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from provisioner.accounts.models import User
from provisioner.catalog import pins
from provisioner.catalog.models import Template
from provisioner.engine.models import Operation, Step
from provisioner.gateways import registry
from provisioner.gateways.ontap.types import Volume, VolumeSpec
from provisioner.gateways.perforce.files.have import HaveLists
from provisioner.gateways.perforce.paths import escape_path
from provisioner.lib.refusals import StepRefused
from provisioner.sites.models import Site
from provisioner.workspaces.actions.retiring import workspace_retry
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.steps import flushing
from provisioner.workspaces.steps.provision import ensure_p4config
from provisioner.workspaces.steps.run import WorkspaceRun
from provisioner.workspaces.workflows import PROVISION
from tests.gateways.hosts.trees import needs_root
from tests.support.entries import entries_below
from tests.support.factories import UserFactory
from tests.support.jobs import perform_again, settle
from tests.support.lab import Lab
from tests.support.requests import workspace_create

pytestmark = pytest.mark.django_db(transaction=True)

AS_ROOT = os.geteuid() == 0


@pytest.fixture
def owner(transactional_db: None) -> User:
    return UserFactory.create(username="alice", uid=20001, gid=20000)


@pytest.fixture
def provision(
    owner: User, published_template: Template, run_jobs: Callable[[], None]
) -> Callable[..., Workspace]:
    """Return a function that asks for a workspace, runs the jobs and returns it."""

    def make(**fields: Any) -> Workspace:
        workspace = workspace_create(by=owner, template=published_template, **fields)
        run_jobs()
        workspace.refresh_from_db()
        return workspace

    return make


def step_named(workspace: Workspace, name: str) -> Step:
    return Step.objects.get(operation__subject__workspace=workspace, name=name)


def owners_below(root: Path) -> set[tuple[int, int]]:
    found = (path.lstat() for path in (root, *entries_below(root)))
    return {(status.st_uid, status.st_gid) for status in found}


def test_a_workspace_is_a_built_clone_that_is_its_owners(
    provision: Callable[..., Workspace], published_template: Template
) -> None:
    workspace = provision()

    assert workspace.state == Workspace.State.READY, workspace.status_message
    assert (workspace.path / "out" / "all").read_text() == (
        published_template.path / "out" / "all"
    ).read_text()
    assert (workspace.path / "awkward" / "run.sh").stat().st_mode & 0o100
    assert os.readlink(workspace.path / "awkward" / "link-to-run") == "run.sh"
    expected = (20001, 20000) if AS_ROOT else (os.geteuid(), os.getegid())
    assert owners_below(workspace.path) == {expected}


def test_the_server_believes_exactly_the_pin(
    provision: Callable[..., Workspace],
) -> None:
    workspace = provision()

    perforce = registry.perforce(workspace.site.perforce_server)
    have = perforce.files.have_list(workspace.client_name)
    pin = workspace.snapshot
    assert (have.count, have.digest) == (pin.have_count, pin.have_digest)
    client = perforce.clients.find(workspace.client_name)
    assert client is not None
    assert (client.owner, client.host) == ("alice", "")
    assert client.root == str(workspace.path)


def test_p4config_points_at_the_workspace(provision: Callable[..., Workspace]) -> None:
    workspace = provision()

    lines = (workspace.path / ".p4config").read_text().splitlines()
    assert f"P4CLIENT={workspace.client_name}" in lines
    assert "P4USER=alice" in lines
    assert f"P4PORT={workspace.site.perforce_server.p4port}" in lines


def test_p4config_names_the_p4port_that_people_use(
    provision: Callable[..., Workspace], published_template: Template
) -> None:
    server = published_template.site.perforce_server
    server.people_p4port = "ssl:proxy.munich.example:1667"
    server.save()

    workspace = provision()

    assert workspace.state == Workspace.State.READY, workspace.status_message
    lines = (workspace.path / ".p4config").read_text().splitlines()
    assert "P4PORT=ssl:proxy.munich.example:1667" in lines


def test_a_large_flush_goes_on_in_batches(
    provision: Callable[..., Workspace], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Flushing all of it at once would keep others waiting as if nothing was done."""
    workspace = provision()
    perforce = registry.perforce(workspace.site.perforce_server)
    had: list[str] = []
    perforce.files.local_paths(workspace.client_name, had.append)
    most = [(escape_path(path), 0) for path in had[1:]]
    perforce.files.flush_to(workspace.client_name, most)
    asked: list[bool] = []
    flush = HaveLists.flush

    def watched(
        self: HaveLists, client: str, *, in_batches: bool = False, **how: Any
    ) -> None:
        asked.append(in_batches)
        flush(self, client, in_batches=in_batches, **how)

    monkeypatch.setattr(HaveLists, "flush", watched)
    monkeypatch.setattr(pins, "FILES_IN_A_BATCH", 1)

    have = flushing.flush_to_pin(perforce, workspace)

    assert have.count == workspace.snapshot.have_count
    assert asked == [True]


def test_a_later_submit_does_not_change_what_a_workspace_has(
    provision: Callable[..., Workspace], lab: Lab
) -> None:
    p4 = lab.as_admin(client=f"submitter-{os.getpid()}")
    root = lab.root / f"submitter-{os.getpid()}"
    root.mkdir(exist_ok=True)
    spec = p4.fetch_client(p4.client)
    spec["Root"], spec["Host"] = str(root), ""
    spec["View"] = [f"//depot/tree/... //{p4.client}/..."]
    p4.save_client(spec)
    new = root / "src" / f"later{os.getpid()}-{len(p4.run('changes'))}.txt"
    new.parent.mkdir(exist_ok=True)
    new.write_text("later\n")
    p4.run("add", str(new))
    p4.run("submit", "-d", "Later")
    p4.disconnect()

    workspace = provision()

    assert workspace.state == Workspace.State.READY, workspace.status_message
    assert not (workspace.path / "src" / new.name).exists()


def test_reconcile_is_clean_when_asked_for(provision: Callable[..., Workspace]) -> None:
    workspace = provision(wants_reconcile=True)

    assert workspace.state == Workspace.State.READY, workspace.status_message
    assert workspace.reconcile == {"count": 0, "findings": []}


def test_build_only_has_no_client(provision: Callable[..., Workspace]) -> None:
    workspace = provision(purpose="build")

    assert workspace.state == Workspace.State.READY, workspace.status_message
    assert not (workspace.path / ".p4config").exists()
    clients = registry.perforce(workspace.site.perforce_server).clients.find_all(
        name_filter=f"*{workspace.tag.hex[:6]}*"
    )
    assert clients == []


def test_a_step_that_was_done_already_changes_nothing(
    provision: Callable[..., Workspace],
) -> None:
    workspace = provision(wants_reconcile=True)
    ontap = registry.ontap(workspace.site)
    perforce = registry.perforce(workspace.site.perforce_server)

    def everything() -> tuple[object, ...]:
        return (
            but_for_its_space(ontap.find_volume(workspace.volume_name)),
            perforce.files.have_list(workspace.client_name),
            owners_below(workspace.path),
            (workspace.path / ".p4config").read_text(),
        )

    before = everything()
    for spec in PROVISION:
        perform_again(step_named(workspace, spec.name))
        assert everything() == before, spec.name


def but_for_its_space(volume: Volume | None) -> Volume | None:
    """Leave out what ONTAP measures now and then."""
    return volume and replace(volume, used_bytes=None, used_inodes=None)


LOST_REPLIES = {
    "clone": {"method": "POST", "path": "/api/storage/volumes*"},
    "export": {"method": "PATCH", "path": "/api/storage/volumes/*"},
}


@pytest.mark.parametrize("name", LOST_REPLIES)
def test_a_lost_reply_of_ontap_leads_to_ready(
    name: str,
    provision: Callable[..., Workspace],
    lab: Lab,
    published_template: Template,
) -> None:
    lab.break_ontap({**LOST_REPLIES[name], "drop": True, "when": "after", "times": 1})

    workspace = provision_until_settled(provision)

    assert workspace.state == Workspace.State.READY, workspace.status_message
    clones = registry.ontap(workspace.site).list_volumes(
        comment_prefix=workspace.volume_comment
    )
    assert len(clones) == 1


@pytest.mark.parametrize("command", ["client", "sync"])
def test_a_lost_reply_of_perforce_leads_to_ready(
    command: str, provision: Callable[..., Workspace], lab: Lab
) -> None:
    lab.break_perforce({"command": command, "drop": "after", "times": 1})

    workspace = provision_until_settled(provision)

    assert workspace.state == Workspace.State.READY, workspace.status_message


def provision_until_settled(provision: Callable[..., Workspace]) -> Workspace:
    """Provision, and run what was put off until a retry time."""
    return settle(provision())


@pytest.mark.parametrize(
    "rule",
    [
        {"method": "POST", "path": "/api/storage/volumes*", "job_code": "917536"},
        {"method": "PATCH", "path": "/api/storage/volumes/*", "status": 403},
    ],
)
def test_a_failure_of_ontap_can_be_retried(
    rule: dict[str, object],
    provision: Callable[..., Workspace],
    lab: Lab,
    run_jobs: Callable[[], None],
) -> None:
    lab.break_ontap(rule)
    workspace = provision()
    assert workspace.state == Workspace.State.FAILED
    assert workspace.status_code.startswith("ontap")
    assert workspace.status_message

    lab.break_ontap()
    workspace_retry(by=workspace.owner, workspace=workspace)
    run_jobs()

    workspace.refresh_from_db()
    assert workspace.state == Workspace.State.READY, workspace.status_message


def test_a_strangers_volume_of_our_name_is_left_alone(
    owner: User, published_template: Template, lab: Lab, run_jobs: Callable[[], None]
) -> None:
    workspace = workspace_create(by=owner, template=published_template)
    ontap = registry.ontap(published_template.site)
    parent = ontap.find_volume(published_template.volume_name)
    assert parent is not None
    stranger = ontap.create_volume(
        VolumeSpec(
            name=workspace.volume_name,
            aggregate=parent.aggregate,
            size_bytes=20 * 2**20,
            comment="somebody else's",
            export_policy=parent.export_policy,
            uid=1,
            gid=1,
        )
    )

    run_jobs()

    workspace.refresh_from_db()
    assert workspace.state == Workspace.State.FAILED
    assert workspace.status_code == "volume_name_taken"
    assert ontap.get_volume(stranger.uuid).comment == "somebody else's"
    ontap.delete_volume(stranger.uuid, force=True)


def test_a_user_unknown_to_perforce_is_reported(
    published_template: Template, run_jobs: Callable[[], None]
) -> None:
    stranger = UserFactory.create(username="unheard-of", uid=20009, gid=20000)
    workspace = workspace_create(by=stranger, template=published_template)

    run_jobs()

    workspace.refresh_from_db()
    assert workspace.status_code == "p4_user_unknown"
    operation = workspace.operations.get()
    assert operation.state == Operation.State.FAILED
    waiting = operation.steps.filter(
        state__in=[Step.State.WAITING, Step.State.QUEUED, Step.State.RETRYING]
    )
    assert not waiting.exists()


@needs_root
@pytest.mark.parametrize(
    ("options", "code"),
    [("nr_inodes=1", "volume_out_of_inodes"), ("size=4k", "volume_full")],
)
def test_a_clone_without_room_for_its_settings_says_of_what(
    options: str, code: str, provision: Callable[..., Workspace]
) -> None:
    workspace = provision()
    run = WorkspaceRun(step_named(workspace, "p4config"))
    mount = ["mount", "-t", "tmpfs", "-o", options, "none", str(workspace.path)]
    subprocess.run(mount, check=True)
    try:
        if code == "volume_full":
            (workspace.path / "all").write_bytes(b"x" * 4096)
        with pytest.raises(StepRefused) as refused:
            ensure_p4config(run)
    finally:
        subprocess.run(["umount", str(workspace.path)], check=True)

    assert refused.value.code == code
    assert f"The volume {workspace.volume_name}" in str(refused.value)


@needs_root
def test_no_step_touches_a_directory_of_the_host(
    owner: User, published_template: Template, tmp_path: Path
) -> None:
    """An administrator named a directory where anybody may make what is given away."""
    tmp_path.chmod(0o1777)
    planted = tmp_path / "w-hers"
    planted.mkdir()
    (planted / "passwd").write_text("root's")
    Site.objects.update(mount_root=str(tmp_path))

    workspace = settle(
        workspace_create(by=owner, template=published_template, name="hers")
    )

    assert workspace.state == Workspace.State.FAILED
    assert "can be written to by others" in workspace.status_message
    assert owners_below(planted) == {(0, 0)}
    assert [path.name for path in planted.iterdir()] == ["passwd"]
