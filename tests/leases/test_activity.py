"""Signs of life, collected from the lab's servers and from trees."""

from __future__ import annotations

import datetime as dt
import os
import sqlite3
from collections.abc import Callable

import pytest
from django.utils import timezone

from provisioner.accounts.models import User
from provisioner.catalog.models import Template
from provisioner.leases.sweeps.activity import (
    check_clients,
    check_trees,
    sweep_activity,
)
from provisioner.workspaces.models import Workspace
from tests.support.factories import UserFactory
from tests.support.lab import Lab
from tests.support.requests import workspace_create

LONG_AGO = 1_600_000_000

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def lab_workspace(
    published_template: Template, run_jobs: Callable[[], None]
) -> Workspace:
    """A real one, ready on the lab."""
    owner = UserFactory.create(
        username="alice",
        uid=20001 if os.geteuid() == 0 else os.geteuid(),
        gid=20000 if os.geteuid() == 0 else os.getegid(),
    )
    workspace = workspace_create(by=owner, template=published_template)
    run_jobs()
    workspace.refresh_from_db()
    assert workspace.state == Workspace.State.READY, workspace.status_message
    return workspace


def moment(workspace: Workspace, kind: str) -> dt.datetime | None:
    workspace.refresh_from_db()
    at = workspace.activity[kind]["at"]
    return dt.datetime.fromisoformat(at) if at else None


def accessed(lab: Lab, workspace: Workspace) -> int:
    with sqlite3.connect(lab.root / "perforce" / "db.sqlite3", timeout=10) as database:
        [row] = database.execute(
            "SELECT accessed FROM specs WHERE kind='client' AND name=?",
            (workspace.client_name,),
        )
    database.close()
    return int(row[0])


def age_client(lab: Lab, workspace: Workspace) -> None:
    with sqlite3.connect(lab.root / "perforce" / "db.sqlite3", timeout=10) as database:
        database.execute(
            "UPDATE specs SET accessed=? WHERE kind='client' AND name=?",
            (LONG_AGO, workspace.client_name),
        )
    database.close()


def test_signs_are_collected_and_reading_leaves_none(
    lab: Lab, lab_workspace: Workspace
) -> None:
    server_id = lab_workspace.site.perforce_server_id
    age_client(lab, lab_workspace)

    check_clients(server_id=server_id)
    lab_workspace.refresh_from_db()
    seen_at, checked_at = (
        lab_workspace.activity_seen_at,
        lab_workspace.client_checked_at,
    )
    check_clients(server_id=server_id)

    assert moment(lab_workspace, "accessed") == dt.datetime.fromtimestamp(
        LONG_AGO, tz=dt.UTC
    )
    assert moment(lab_workspace, "submitted") is None
    assert moment(lab_workspace, "touched") is not None, "its owner asked for it"
    assert lab_workspace.activity["opened"] == {"count": 0}
    assert lab_workspace.activity_seen_at is not None
    assert seen_at is not None
    assert lab_workspace.activity_seen_at > seen_at
    assert lab_workspace.client_checked_at == checked_at, "nobody used it since"
    assert accessed(lab, lab_workspace) == LONG_AGO


def test_work_of_its_client_is_seen(lab: Lab, lab_workspace: Workspace) -> None:
    began_at = timezone.now() - dt.timedelta(minutes=1)
    p4 = lab.as_admin(client=lab_workspace.client_name)
    try:
        change = p4.fetch_change()
        change["Description"] = "Work"
        change.pop("Files", None)
        p4.save_change(change)
    finally:
        p4.disconnect()

    check_clients(server_id=lab_workspace.site.perforce_server_id)

    pending_at = moment(lab_workspace, "pending")
    assert pending_at is not None
    assert pending_at > began_at
    accessed_at = moment(lab_workspace, "accessed")
    assert accessed_at is not None
    assert accessed_at > began_at - dt.timedelta(hours=1)


def test_a_tree_that_nobody_changed_has_no_sign(lab_workspace: Workspace) -> None:
    check_trees(site_id=lab_workspace.site_id)

    assert moment(lab_workspace, "files") is None


def test_a_changed_file_is_a_sign(lab_workspace: Workspace) -> None:
    changed_at = timezone.now() + dt.timedelta(seconds=30)
    path = lab_workspace.path / "new.txt"
    path.write_text("mine")
    os.utime(path, (changed_at.timestamp(), changed_at.timestamp()))

    check_trees(site_id=lab_workspace.site_id)

    assert moment(lab_workspace, "files") == changed_at


def test_a_tree_that_is_not_there_is_left_for_the_next_check(
    lab_workspace: Workspace, tmp_path: os.PathLike[str]
) -> None:
    lab_workspace.site.mount_root = str(tmp_path)
    lab_workspace.site.save()

    check_trees(site_id=lab_workspace.site_id)

    lab_workspace.refresh_from_db()
    assert "files" not in lab_workspace.activity


def test_the_sweep_checks_each_server_and_site(
    lab_workspace: Workspace, run_jobs: Callable[[], None]
) -> None:
    sweep_activity(timestamp=0)
    sweep_activity(timestamp=0)
    run_jobs()

    lab_workspace.refresh_from_db()
    assert {"accessed", "touched", "files"} <= set(lab_workspace.activity)


def test_without_workspaces_nobody_looks(
    jobs_emptied: None, run_jobs: Callable[[], None], alice: User
) -> None:
    sweep_activity(timestamp=0)
    run_jobs()
