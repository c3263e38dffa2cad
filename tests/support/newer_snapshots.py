"""A workspace whose template goes on without it."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from provisioner.catalog.actions.templates import template_build
from provisioner.catalog.models import Template
from provisioner.demo import depot
from provisioner.gateways import registry
from provisioner.gateways.perforce.types import OpenedFile
from provisioner.transfer.actions import workspace_transfer
from provisioner.transfer.models import Transfer
from provisioner.workspaces.models import Workspace
from tests.support.factories import UserFactory
from tests.support.jobs import settle
from tests.support.lab import Lab
from tests.support.requests import workspace_create
from tests.support.work import AtWork


class Others:
    """Bob, who submits below a depot path that is this test's own."""

    def __init__(self, lab: Lab, scratch: Path) -> None:
        self.name = f"f{uuid.uuid4().hex[:8]}"
        self.root = scratch
        scratch.mkdir()
        account = depot.DepotAccount(
            port=lab.perforce["port"], user="bob", password="lab-password"
        )
        self.p4: Any = depot.connect(account, client=self.name, scratch=scratch)
        spec = self.p4.fetch_client(self.name)
        spec["Root"] = str(scratch)
        spec["View"] = [f"{self.there}/... //{self.name}/..."]
        self.p4.save_client(spec)

    @property
    def there(self) -> str:
        return f"//depot/{self.name}"

    def write(self, name: str, text: str, *, kind: str = "text") -> None:
        """Write a file with this text for the next submit."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            self.p4.run("edit", str(path))
            path.write_text(text)
        else:
            path.write_text(text)
            self.p4.run("add", "-t", kind, str(path))

    def delete(self, name: str) -> None:
        self.p4.run("delete", str(self.root / name))

    def submit(self) -> None:
        change = self.p4.fetch_change()
        change["Description"] = "by others"
        self.p4.run_submit(change)

    def publish(self, template: Template) -> None:
        """Submit, and have it built."""
        self.submit()
        template_build(by=template.owner, template=template)
        settle(template)
        assert template.state == Template.State.READY, template.status_message


@pytest.fixture
def others(lab: Lab, tmp_path: Path) -> Iterator[Others]:
    session = Others(lab, tmp_path / "others")
    yield session
    session.p4.disconnect()


@pytest.fixture
def alice_at_work(
    others: Others, lab_template: Template, lab: Lab, jobs_emptied: None
) -> Iterator[AtWork]:
    """Alice in a workspace of the first snapshot of a small tree."""
    for number in range(10):
        others.write(f"src/file{number}.txt", f"line of {number}\n")
    others.write("src/only-one.txt", "for one at a time\n", kind="text+l")
    Template.objects.filter(pk=lab_template.pk).update(
        view=f"{others.there}/... //any/..."
    )
    lab_template.refresh_from_db()
    others.publish(lab_template)
    alice = UserFactory.create(username="alice", uid=20001, gid=20000)
    workspace = settle(workspace_create(by=alice, template=lab_template))
    assert workspace.state == Workspace.State.READY, workspace.status_message
    session = AtWork(workspace, lab)
    yield session
    session.p4.disconnect()


def new_change(session: AtWork, description: str) -> str:
    """Make a pending change without files; return its number."""
    change = session.p4.fetch_change()
    change["Description"], change["Files"] = description, []
    return str(session.p4.save_change(change)[0].split()[1])


def edit(session: AtWork, name: str, text: str, *flags: str) -> None:
    """Open a file for edit, and write into it."""
    session.p4.run("edit", *flags, str(session.root / name))
    (session.root / name).write_text(text)


def add(session: AtWork, name: str, text: str, *flags: str) -> None:
    """Write a file, and open it for add."""
    (session.root / name).write_text(text)
    session.p4.run("add", *flags, str(session.root / name))


def bring(workspace: Workspace, **choices: Any) -> Transfer:
    """Transfer a workspace's work, and wait for that and for what follows."""
    made = workspace_transfer(by=workspace.owner, workspace=workspace, **choices)
    settle(made)
    settle(workspace)
    return transfer_into(made)


def transfer_into(made: Workspace) -> Transfer:
    return Transfer.objects.select_related("workspace", "source").get(workspace=made)


def opened_in(workspace: Workspace) -> dict[str, OpenedFile]:
    """Return what is opened in a workspace, by the names of the files."""
    perforce = registry.perforce(workspace.site.perforce_server)
    return {
        Path(file.depot_file).name: file
        for file in perforce.changes.list_opened(workspace.client_name)
    }


def described_in(workspace: Workspace) -> dict[str, str]:
    """Return the descriptions of pending changes by number."""
    perforce = registry.perforce(workspace.site.perforce_server)
    return {
        str(change.change): change.description
        for change in perforce.changes.list_pending(workspace.client_name)
    }


def everything_about(workspace: Workspace) -> dict[str, Any]:
    """Return all that transferring work may not change of where it is from."""
    perforce = registry.perforce(workspace.site.perforce_server)
    pending = perforce.changes.list_pending(workspace.client_name)
    return {
        "opened": perforce.changes.list_opened(workspace.client_name),
        "pending": pending,
        "shelved": {
            change.change: perforce.shelves.list_files(change.change)
            for change in pending
        },
        "have": perforce.files.have_list(workspace.client_name),
        "files": {
            str(path.relative_to(workspace.path)): path.read_bytes()
            for path in sorted(workspace.path.rglob("*"))
            if path.is_file() and not path.is_symlink()
        },
    }


def copies_left(made: Workspace) -> list[object]:
    """Return what is left of a stand-in: the client, its changes and shelves."""
    perforce = registry.perforce(made.site.perforce_server)
    found = made.stand_ins.find_all(perforce)
    changes = (perforce.changes.list_pending(client.name) for client in found)
    return [*found, *itertools.chain.from_iterable(changes)]
