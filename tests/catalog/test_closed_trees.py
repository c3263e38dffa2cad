"""Whom Perforce refuses a template: what they reach of it by path, as their own uid."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from django.urls import reverse

from provisioner.accounts.models import User
from provisioner.catalog.models import Template
from provisioner.engine.models import Step
from provisioner.gateways import registry
from provisioner.gateways.ontap.types import ExportRule
from provisioner.lib.names import TAG_PREFIX
from provisioner.sites.models import OpenTo, Site
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.sweeps import apply_exports
from tests.support.api_clients import api_of
from tests.support.browsers import browser_of
from tests.support.factories import UserFactory
from tests.support.jobs import run_jobs_once
from tests.support.lab import Lab, build
from tests.support.projects import Project
from tests.support.requests import workspace_create

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can be others"),
]

ALICE, COLLEAGUE, STRANGER = (20001, 20000), (20002, 20000), (20003, 30000)


def can_read(path: Path, *, who: tuple[int, int]) -> bool:
    """Return whether somebody gets at what is in a file, as their own uid and gid."""
    uid, gid = who
    read = subprocess.run(
        ["/bin/cat", str(path)],
        cwd="/",
        user=uid,
        group=gid,
        extra_groups=[],
        capture_output=True,
    )
    assert read.returncode == 0 or b"Permission denied" in read.stderr, read.stderr
    return read.returncode == 0


@pytest.fixture
def alice_of_the_lab(db: None) -> User:
    return UserFactory.create(username="alice", uid=20001, gid=20000)


def a_file_of(it: Workspace | Template) -> Path:
    return it.path / "src" / "file3.txt"


def opened_to(workspace: Workspace, access: OpenTo) -> Path:
    """Open the workspace as its owner; return a file in it."""
    browser = browser_of(workspace.owner)
    page = reverse("workspace-open", args=[workspace.pk])
    assert browser.post(page, {"to": access}).status_code == 302
    run_jobs_once()
    return a_file_of(workspace)


def test_nobody_reads_a_template_by_its_path(published_template: Template) -> None:
    file = a_file_of(published_template)

    assert can_read(file, who=(20000, 20000))
    assert not any(can_read(file, who=who) for who in (ALICE, COLLEAGUE, STRANGER))


def test_nobody_reads_the_clone_of_a_colleague(lab_workspace: Workspace) -> None:
    file = a_file_of(lab_workspace)

    assert can_read(file, who=ALICE)
    assert not any(can_read(file, who=who) for who in (COLLEAGUE, STRANGER))


@pytest.mark.parametrize("reown", Site.Reown)
def test_whoever_gives_a_clone_away_it_is_closed(
    published_template: Template,
    run_jobs: Callable[[], None],
    alice_of_the_lab: User,
    reown: Site.Reown,
) -> None:
    Site.objects.update(reown=reown)
    workspace = workspace_create(by=alice_of_the_lab, template=published_template)
    run_jobs()

    file = a_file_of(workspace)
    assert can_read(file, who=ALICE)
    assert not can_read(file, who=COLLEAGUE)
    assert stat.S_IMODE(workspace.path.stat().st_mode) == 0o700


def test_a_site_may_open_its_clones_to_their_owners_groups(
    published_template: Template,
    run_jobs: Callable[[], None],
    alice_of_the_lab: User,
) -> None:
    Site.objects.update(clones_open_to=OpenTo.GROUP_READS)
    workspace = workspace_create(by=alice_of_the_lab, template=published_template)
    run_jobs()

    assert can_read(a_file_of(workspace), who=COLLEAGUE)
    assert not can_read(a_file_of(workspace), who=STRANGER)
    assert not can_read(a_file_of(published_template), who=COLLEAGUE)


def test_an_owner_may_open_a_clone_and_close_it(lab_workspace: Workspace) -> None:
    for access, mode in (("group-writes", 0o770), ("group-reads", 0o750)):
        file = opened_to(lab_workspace, OpenTo(access))
        assert stat.S_IMODE(lab_workspace.path.stat().st_mode) == mode
        assert can_read(file, who=COLLEAGUE)
        assert not can_read(file, who=STRANGER)
    owner = lab_workspace.path.stat()
    assert (owner.st_uid, owner.st_gid) == ALICE

    assert not can_read(opened_to(lab_workspace, OpenTo.OWNER), who=COLLEAGUE)


def test_others_open_nothing(lab_workspace: Workspace) -> None:
    stranger = browser_of(UserFactory.create())
    page = reverse("workspace-open", args=[lab_workspace.pk])

    assert stranger.post(page, {"to": "group-writes"}).status_code == 404
    assert browser_of(lab_workspace.owner).post(page, {"to": "all"}).status_code == 302

    lab_workspace.refresh_from_db()
    assert lab_workspace.opened_to == ""


def test_the_api_opens_and_says_so(lab_workspace: Workspace) -> None:
    api = api_of(lab_workspace.owner)
    address = f"/api/v1/workspaces/{lab_workspace.pk}"
    assert api.get(address).json()["open_to"] == "owner"

    answer = api.post(f"{address}/open", {"to": "group-reads"})
    run_jobs_once()

    assert (answer.status_code, answer.json()["open_to"]) == (200, "group-reads")
    assert can_read(a_file_of(lab_workspace), who=COLLEAGUE)
    event = lab_workspace.events.get(kind="workspace_opened")
    assert event.message == "Opened its directory to its owner's group, to read."
    assert api.post(f"{address}/open", {"to": "everybody"}).status_code == 400


def test_what_its_owner_changed_by_hand_stays(lab_workspace: Workspace) -> None:
    lab_workspace.path.chmod(0o755)

    apply_exports(site_id=lab_workspace.site_id)

    assert can_read(a_file_of(lab_workspace), who=STRANGER)


def test_clones_and_templates_of_earlier_releases_are_closed(
    lab_workspace: Workspace, published_template: Template
) -> None:
    site = lab_workspace.site
    ontap = registry.ontap(site)
    for uuid in (lab_workspace.volume_uuid, published_template.volume_uuid):
        ontap.set_volume_policies(
            uuid, export_policy=site.export_policy, root_mode="755"
        )
    Workspace.objects.update(root_mode="")

    apply_exports(site_id=site.pk)

    assert not can_read(a_file_of(lab_workspace), who=COLLEAGUE)
    assert not can_read(a_file_of(published_template), who=COLLEAGUE)
    volume = ontap.get_volume(published_template.volume_uuid)
    assert volume.export_policy == site.templates_policy


def test_nobody_sees_snapshots_in_a_clone_unless_the_site_shows_them(
    lab_workspace: Workspace,
) -> None:
    """Over NFSv3 find, rsync and p4 reconcile go into it."""
    site, template = lab_workspace.site, lab_workspace.template
    ontap = registry.ontap(site)
    ours = {lab_workspace.volume_uuid, template.volume_uuid}

    def showing() -> set[str]:
        found = ontap.list_showing_snapshots(
            comment_prefix=TAG_PREFIX, shows_snapshots=True
        )
        return ours.intersection(found)

    Site.objects.filter(pk=site.pk).update(shows_snapshots=False)
    apply_exports(site.pk)
    assert showing() == set()
    ontap.set_volume_policies(lab_workspace.volume_uuid, shows_snapshots=True)
    apply_exports(site.pk)
    assert showing() == set()

    Site.objects.filter(pk=site.pk).update(shows_snapshots=True)
    apply_exports(site.pk)
    assert showing() == ours


def test_a_release_that_does_not_know_the_setting_takes_the_others(
    lab_workspace: Workspace, lab: Lab
) -> None:
    """Before 9.13.1 the command line alone sets it."""
    ontap = registry.ontap(lab_workspace.site)
    unknown = {"status": 400, "code": "262179", "path": "/api/storage/volumes*"}

    lab.break_ontap({**unknown, "method": "PATCH", "times": 1})
    volume = ontap.set_volume_policies(
        lab_workspace.volume_uuid, root_mode="750", shows_snapshots=False
    )
    assert volume.root_mode == "750"

    lab.break_ontap({**unknown, "method": "GET", "times": 1})
    found = ontap.list_showing_snapshots(
        comment_prefix=TAG_PREFIX, shows_snapshots=False
    )
    assert found == []
    lab.break_ontap()


def test_templates_are_exported_to_workers_alone(published_template: Template) -> None:
    site = published_template.site
    site.export_clients, site.worker_clients = ["10.0.0.0/24"], ["10.0.0.5"]
    site.save()

    apply_exports(site_id=site.pk)

    policy = registry.ontap(site).find_export_policy(f"{site.export_policy}-templates")
    assert policy is not None
    assert policy.rules == (ExportRule(clients=("10.0.0.5",), superuser=("sys",)),)


def test_a_build_that_opens_its_tree_publishes_a_closed_one(
    project: Project,
    make_template: Callable[..., Template],
    run_jobs: Callable[[], None],
) -> None:
    project.submit(a="text\n")
    template = make_template(project, build_command="chmod 777 . && echo built")

    build(template, run_jobs)

    assert stat.S_IMODE(template.path.stat().st_mode) == 0o700
    assert not can_read(template.path / "a.txt", who=COLLEAGUE)


def test_nobody_reads_what_a_build_printed(built_template: Template) -> None:
    log = Step.objects.get(
        operation__subject__template=built_template, name="build"
    ).log_path

    assert log.read_text() == "built\n"
    assert stat.S_IMODE(log.stat().st_mode) == 0o640
    assert stat.S_IMODE(log.parent.stat().st_mode) == 0o750
    assert not any(can_read(log, who=who) for who in (ALICE, STRANGER))
