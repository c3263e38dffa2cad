"""Back up, work, restore the older backup, adopt: nothing is lost."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from provisioner.accounts.models import User
from provisioner.catalog.actions.templates import template_build, template_update
from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.queries import default_snapshot
from provisioner.drift.actions import adoptable, findings_adopt
from provisioner.drift.comparison.previews import preview
from provisioner.drift.models import Finding
from provisioner.engine.models import Operation
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.sites.models import Site
from provisioner.workspaces.actions.retiring import (
    workspace_purge,
    workspace_restore,
    workspace_retire,
)
from provisioner.workspaces.models import Unsubmitted, Workspace
from tests.support import database_backup
from tests.support.drift_scene import (
    K,
    check_drift,
    long_ago,
    resolve,
)
from tests.support.factories import UserFactory
from tests.support.jobs import run_jobs_once, settle
from tests.support.lab import BUILD, Lab, build, define_template
from tests.support.requests import workspace_create
from tests.support.work import AtWork

BACKUP = f"backup_of_{os.getpid()}"

pytestmark = [
    pytest.mark.integration,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("foreign"),
]


@pytest.fixture
def backup() -> Iterator[str]:
    yield BACKUP
    database_backup.drop(BACKUP)


@pytest.fixture
def bob(jobs_emptied: None) -> User:
    return UserFactory.create(username="bob", uid=20002, gid=20000)


@dataclass(frozen=True, kw_only=True)
class Held:
    """What a workspace is to its owner, wherever that is written down."""

    identity: dict[str, Any]
    contents: dict[str, bytes]
    have: Any
    opened: Any
    pending: Any
    has_lease: bool


def held_by(workspace: Workspace, perforce: Any) -> Held:
    client, snapshot = workspace.client_name, workspace.snapshot
    names = ("name", "purpose", "state", "uid", "gid", "p4_user", "volume_uuid")
    return Held(
        identity={
            **{name: getattr(workspace, name) for name in names},
            "owner": workspace.owner.username,
            "template": workspace.template.name,
            "client": client,
            "path": workspace.path,
            "snapshot": (snapshot.name, snapshot.ontap_uuid, snapshot.change),
            "pin": (snapshot.have_count, snapshot.have_digest),
        },
        contents=contents_of(workspace.path),
        have=perforce.files.have_list(client) if client else None,
        opened=perforce.changes.list_opened(client) if client else None,
        pending=perforce.changes.list_pending(client) if client else None,
        has_lease=workspace.expires_at is not None,
    )


def contents_of(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".snapshot" not in path.parts
    }


def made(by: User, template: Template, **asked: Any) -> Workspace:
    workspace = settle(workspace_create(by=by, template=template, **asked))
    assert workspace.state == Workspace.State.READY, workspace.status_message
    return workspace


def built(template: Template, by: User) -> Snapshot:
    operation = template_build(by=by, template=template)
    settle(template)
    return Snapshot.objects.get(operation=operation)


def leave_in(workspace: Workspace, text: str) -> None:
    file = workspace.path / "src" / "notes.txt"
    file.write_text(text)
    if os.geteuid() == 0:
        os.chown(file, workspace.uid, workspace.gid)


def adopt_all(site: Site, admin: User) -> None:
    """Click "Adopt all", then at what is left of the workspace that is known."""
    check_drift(site)
    assert findings_adopt(by=admin) > 0
    run_jobs_once()
    for kind in (K.JUNCTION_DIFFERS, K.ROW_WITHOUT_CLIENT):
        [found] = [each for each in check_drift(site) if each.kind == kind]
        assert resolve(found, admin).resolved_at is not None, found.status_message


def test_an_older_backup_loses_nothing(
    built_template: Template,
    owner: User,
    bob: User,
    admin: User,
    backup: str,
    lab: Lab,
    lab_site: Site,
    ontap: OntapGateway,
    perforce: Any,
) -> None:
    template, alice = built_template, owner
    put_away = made(alice, template, name="put-away-since")
    leave_in(put_away, "of before the backup\n")
    before = held_by(put_away, perforce)
    long_ago()
    database_backup.back_up(backup)

    newer = built(template, admin)
    works = made(alice, template, name="works")
    session = AtWork(works, lab)
    session.shelve()
    session.open_for_edit()
    session.file.write_text("opened\n")
    elsewhere = made(bob, template)
    leave_in(elsewhere, "untracked\n")
    only_built = made(bob, template, purpose=Workspace.Purpose.BUILD)
    (only_built.path / "out" / "result").write_text("built\n")
    assert works.snapshot == elsewhere.snapshot == newer
    workspace_retire(by=alice, workspace=put_away, unsubmitted=Unsubmitted.RESCUE)
    assert settle(put_away).state == Workspace.State.TRASHED
    unrelated = made(alice, template, snapshot=newer, name="in-nobodys-way")
    expected = {
        each.tag: held_by(each, perforce)
        for each in (works, elsewhere, only_built, unrelated)
    }
    assert expected[works.tag].opened
    assert any(change.is_shelved for change in expected[works.tag].pending)
    logs = {log: log.read_bytes() for log in (lab.root / "logs").glob("*.log")}
    last_number = Operation.objects.latest("pk").pk

    database_backup.restore(backup)

    assert Operation.objects.latest("pk").pk < last_number
    assert not Snapshot.objects.filter(name=newer.name).exists()
    adopt_all(lab_site, admin)

    open_ones = Finding.objects.filter(resolved_at=None)
    assert check_drift(lab_site) == [], [each.sentence for each in open_ones]
    for tag, held in expected.items():
        assert held_by(Workspace.objects.get(tag=tag), perforce) == held
    put_away = Workspace.objects.get(tag=put_away.tag)
    assert held_by(put_away, perforce) == before
    volume = ontap.get_volume(put_away.volume_uuid)
    assert volume.export_policy == lab_site.export_policy

    # Work goes on: numbers of then come again, and nothing else does.
    template = Template.objects.get(pk=template.pk)
    latest = built(template, admin)
    again = [
        made(alice, template),
        made(bob, template),
        made(bob, template, purpose=Workspace.Purpose.BUILD),
    ]
    assert latest.name not in {newer.name, put_away.snapshot.name}
    assert default_snapshot(template) == latest
    for attribute in ("tag", "name", "volume_name", "volume_uuid", "junction_path"):
        values = [getattr(each, attribute) for each in Workspace.objects.all()]
        assert len(set(values)) == len(values), attribute
    clients = [each.client_name for each in Workspace.objects.all()]
    assert len(set(filter(None, clients))) == len(list(filter(None, clients)))
    assert {log: log.read_bytes() for log in logs} == logs
    for tag, held in expected.items():
        assert held_by(Workspace.objects.get(tag=tag), perforce) == held
    assert len(again) == 3
    session.end()


def test_a_template_newer_than_the_backup_comes_back_with_its_clones(
    owner: User, admin: User, backup: str, lab: Lab, lab_site: Site, perforce: Any
) -> None:
    database_backup.back_up(backup)
    template = build(define_template(lab_site, name="newer"), run_jobs_once)
    works = made(owner, template)
    leave_in(works, "untracked\n")
    held = held_by(works, perforce)
    client = perforce.clients.find(template.client_name)

    database_backup.restore(backup)

    assert not Template.objects.exists()
    check_drift(lab_site)
    said = [line for each in adoptable() for line in preview(each)]
    assert any(line.startswith("Make the template newer, with") for line in said)
    assert findings_adopt(by=admin) == 2
    run_jobs_once()
    assert check_drift(lab_site) == []
    assert held_by(Workspace.objects.get(tag=works.tag), perforce) == held
    found = Template.objects.get()
    assert (found.tag, found.state) == (template.tag, Template.State.FAILED)
    assert found.volume_uuid == template.volume_uuid
    assert "Complete its definition" in found.status_message

    template_update(by=admin, template=found, build_command=BUILD)
    latest = built(found, admin)
    assert default_snapshot(found) == latest
    made(owner, found)
    again = perforce.clients.find(template.client_name)
    assert (again.view, again.root) == (client.view, client.root)


def test_what_was_restored_since_the_backup_is_not_purged(
    built_template: Template,
    owner: User,
    backup: str,
    lab: Lab,
    lab_site: Site,
    perforce: Any,
) -> None:
    """The older database has it in the trash, whose time is over."""
    workspace = made(owner, built_template)
    workspace_retire(by=owner, workspace=workspace, unsubmitted=Unsubmitted.RESCUE)
    assert settle(workspace).state == Workspace.State.TRASHED
    database_backup.back_up(backup)
    workspace_restore(by=owner, workspace=workspace)
    assert settle(workspace).state == Workspace.State.READY
    session = AtWork(workspace, lab)
    session.open_for_edit()
    session.file.write_text("opened\n")
    leave_in(workspace, "untracked\n")
    held = held_by(workspace, perforce)

    database_backup.restore(backup)
    workspace.refresh_from_db()
    assert workspace.state == Workspace.State.TRASHED
    workspace_purge(by=owner, workspace=workspace)
    settle(workspace)

    assert (workspace.state, workspace.status_code) == ("failed", "in_use_again")
    assert contents_of(workspace.path) == held.contents
    workspace_restore(by=owner, workspace=workspace)
    settle(workspace)
    assert workspace.state == Workspace.State.READY, workspace.status_message
    assert held_by(workspace, perforce) == held
    session.end()
