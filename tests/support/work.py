"""A workspace that is ready, and its owner at work in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from provisioner.catalog.models import Template
from provisioner.demo import depot
from provisioner.workspaces.models import Workspace
from tests.support.factories import UserFactory
from tests.support.lab import Lab
from tests.support.requests import workspace_create


@pytest.fixture
def lab_workspace(
    published_template: Template, run_jobs: Callable[[], None]
) -> Workspace:
    """A workspace of alice that is ready."""
    alice = UserFactory.create(username="alice", uid=20001, gid=20000)
    workspace = workspace_create(by=alice, template=published_template)
    run_jobs()
    workspace.refresh_from_db()
    assert workspace.state == Workspace.State.READY, workspace.status_message
    return workspace


class AtWork:
    """Alice in her workspace: root may write there, p4 speaks as her."""

    def __init__(self, workspace: Workspace, lab: Lab) -> None:
        self.workspace = workspace
        self.root: Path = workspace.path
        account = depot.DepotAccount(
            port=lab.perforce["port"], user="alice", password="lab-password"
        )
        self.p4 = depot.connect(account, client=workspace.client_name, scratch=lab.root)
        self.file = self.root / "src" / "file3.txt"

    def end(self) -> None:
        """Leave nothing opened: the lab is for all, and others open the same files."""
        self.p4.exception_level = 0  # most have no client any more
        self.p4.run("revert", "-k", "//...")
        self.p4.disconnect()

    def open_for_edit(self) -> None:
        self.p4.run("edit", str(self.file))

    def give_to_owner(self) -> None:
        """Let the workspace's owner own what root wrote."""
        for path in (self.root / "src", *(self.root / "src").iterdir()):
            os.chown(path, self.workspace.uid, self.workspace.gid)

    def shelve(self) -> None:
        self.open_for_edit()
        change = self.p4.fetch_change()
        change["Description"] = "shelved"
        number = self.p4.save_change(change)[0].split()[1]
        self.p4.run("shelve", "-c", number)
        self.p4.run("revert", "-c", number, "//...")

    def change_without_opening(self) -> None:
        self.file.chmod(0o644)
        self.file.write_text("changed in place\n")

    def lose_a_file(self) -> None:
        self.file.unlink()

    def leave_an_untracked_file(self) -> None:
        (self.root / "src" / "notes.txt").write_text("do not lose me\n")


# Shelving takes what is opened along, so it comes first where one does all of them.
KINDS_OF_WORK = {
    "shelved": AtWork.shelve,
    "opened": AtWork.open_for_edit,
    "changed": AtWork.change_without_opening,
    "missing": AtWork.lose_a_file,
    "untracked": AtWork.leave_an_untracked_file,
}


@pytest.fixture
def at_work(lab_workspace: Workspace, lab: Lab) -> Iterator[AtWork]:
    session = AtWork(lab_workspace, lab)
    yield session
    session.end()
