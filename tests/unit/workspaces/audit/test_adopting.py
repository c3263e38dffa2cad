"""An older backup was restored: what it does not know is adopted, and not lost."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from provisioner.accounts.models import User
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.workspaces import actions
from provisioner.workspaces.errors import NotAllowed
from provisioner.workspaces.models import (
    Event,
    Finding,
    Quality,
    Rescue,
    Site,
    Snapshot,
    Unsaved,
    Workspace,
)
from tests.at_work import AtWork
from tests.factories import UserFactory
from tests.lab import Lab
from tests.unit.workspaces.audit.scene import (
    A,
    K,
    admin,
    audit,
    emptied_lab,
    foreign,
    ontap,
    owner,
    p4,
    perforce,
    resolve,
    workspace,
)
from tests.waiting import run_jobs_once, settle

__all__ = [
    "admin",
    "emptied_lab",
    "foreign",
    "ontap",
    "owner",
    "p4",
    "perforce",
    "workspace",
]

pytestmark = pytest.mark.django_db(transaction=True)


def forgotten(workspace: Workspace) -> None:
    """Have the database be from before this workspace was asked for."""
    Workspace.objects.filter(pk=workspace.pk).update(
        tag=uuid.uuid4(),
        state=Workspace.State.RETIRED,
        retired_at=timezone.now(),
        volume_uuid="",
    )


def adopted(site: Site, by: User) -> tuple[Finding, Workspace | None]:
    """Click Adopt at the one volume without a row; return what came of it."""
    [found] = [f for f in audit(site) if f.kind == K.VOLUME_WITHOUT_ROW]
    assert (found.action, found.is_automatic) == (A.ADOPT, False)
    found = resolve(found, by)
    newest = Workspace.objects.order_by("-pk").first()
    return found, newest if found.resolved_at else None


@pytest.fixture
def alice_works(workspace: Workspace, lab: Lab) -> Iterator[AtWork]:
    session = AtWork(workspace, lab)
    yield session
    session.end()


def test_the_drill_loses_nothing(
    workspace: Workspace,
    alice_works: AtWork,
    lab_site: Site,
    admin: User,
    perforce: Any,
) -> None:
    """Back up, work, restore the backup, adopt, retire: all work is rescued."""
    alice_works.open_for_edit()
    alice_works.file.write_text("opened\n")
    untracked = alice_works.root / "src" / "notes.txt"
    untracked.write_text("untracked\n")
    if os.geteuid() == 0:
        os.chown(untracked, workspace.uid, workspace.gid)
    opened = perforce.list_opened(workspace.client_name)
    have = perforce.have_list(workspace.client_name)
    forgotten(workspace)

    finding, found = adopted(lab_site, admin)

    assert found is not None, finding.status_message
    assert found.pk != workspace.pk
    assert (found.tag, found.name) == (workspace.tag, workspace.name)
    assert (found.owner, found.uid) == (workspace.owner, workspace.uid)
    assert (found.state, found.snapshot) == (Workspace.State.READY, workspace.snapshot)
    assert found.client_name == workspace.client_name
    assert found.path == workspace.path
    assert found.expires_at is not None
    assert perforce.list_opened(found.client_name) == opened
    assert perforce.have_list(found.client_name) == have
    assert untracked.read_text() == "untracked\n"
    event = Event.objects.get(kind="workspace_adopted", workspace=found)
    assert event.actor == admin
    assert audit(lab_site) == []

    actions.workspace_retire(by=found.owner, workspace=found, unsaved=Unsaved.RESCUE)
    settle(found)

    assert found.state == Workspace.State.TRASHED, found.status_message
    rescue = Rescue.objects.get(operation__workspace=found)
    assert [file["depot_file"] for file in rescue.reverted] == [opened[0].depot_file]
    manifest = Path(rescue.directory) / "manifest.json"
    assert "src/notes.txt" in manifest.read_text()


def test_a_name_that_is_taken_by_now_gets_a_number(
    workspace: Workspace, lab_site: Site, admin: User
) -> None:
    name = workspace.name
    forgotten(workspace)
    other = UserFactory(uid=20009, gid=20000)
    actions.workspace_create(by=other, template=workspace.template, name=name)

    _, found = adopted(lab_site, admin)

    assert found is not None
    assert (found.name, found.made_as) == (f"{name}-2", name)
    assert found.volume_name == workspace.volume_name.replace(
        workspace.tag.hex[:6], found.tag.hex[:6]
    )


def test_a_snapshot_that_nobody_knows_comes_along_and_is_not_handed_out(
    workspace: Workspace, lab_site: Site, admin: User
) -> None:
    snapshot = workspace.snapshot
    forgotten(workspace)
    Snapshot.objects.filter(pk=snapshot.pk).update(name="c1.b0", ontap_uuid="gone")

    _, found = adopted(lab_site, admin)

    assert found is not None
    assert found.snapshot.name == snapshot.name
    assert (found.snapshot.change, found.snapshot.ontap_uuid) == (
        snapshot.change,
        snapshot.ontap_uuid,
    )
    assert found.snapshot.have_digest == snapshot.have_digest
    assert found.snapshot.quality == Quality.FAILED


def test_what_is_in_part_there_is_adopted_as_failed(
    workspace: Workspace, lab_site: Site, admin: User, ontap: OntapGateway
) -> None:
    ontap.unmount_volume(workspace.volume_uuid)
    forgotten(workspace)

    _, found = adopted(lab_site, admin)

    assert found is not None
    assert (found.state, found.status_code) == ("failed", "adopted_in_part")
    assert f"not mounted at {found.junction_path}" in found.status_message


def test_nobodys_account_is_asked_for_first(
    workspace: Workspace, lab_site: Site, admin: User
) -> None:
    forgotten(workspace)
    User.objects.filter(pk=workspace.owner_id).update(is_active=False)

    finding, found = adopted(lab_site, admin)

    assert found is None
    assert "Nobody here has the Perforce name alice" in finding.status_message
    assert "make that account, then adopt it" in finding.status_message


def test_a_second_click_makes_no_second_row(
    workspace: Workspace, lab_site: Site, admin: User
) -> None:
    from provisioner.workspaces.sweeps.repairs.adopting import adopt_workspace

    forgotten(workspace)
    finding, _ = adopted(lab_site, admin)

    assert adopt_workspace(finding) == "Its workspace is known by now."
    assert Workspace.objects.filter(tag=workspace.tag).count() == 1


def test_its_client_is_not_removed_before_it_is_adopted(
    workspace: Workspace, lab_site: Site, admin: User, perforce: Any
) -> None:
    forgotten(workspace)
    [found] = [f for f in audit(lab_site) if f.kind == K.CLIENT_WITHOUT_ROW]

    resolve(found, admin)

    assert "adopt" in found.status_message
    assert perforce.find_client(workspace.client_name) is not None


@pytest.mark.parametrize("who", ["owner", "stranger"])
def test_administrators_alone_adopt(
    who: str, workspace: Workspace, lab_site: Site
) -> None:
    forgotten(workspace)
    person = workspace.owner if who == "owner" else UserFactory()
    [found] = [f for f in audit(lab_site) if f.kind == K.VOLUME_WITHOUT_ROW]

    with pytest.raises(NotAllowed):
        actions.finding_resolve(by=person, finding=found)
    with pytest.raises(NotAllowed):
        actions.findings_adopt(by=person)


def test_all_are_adopted_by_one_click(
    workspace: Workspace, lab_site: Site, admin: User, client: Client
) -> None:
    forgotten(workspace)
    audit(lab_site)
    client.force_login(admin)
    page = client.get(reverse("audit")).content.decode()
    assert "Adopt all" in page

    answer = client.post(reverse("audit-adopt"))

    assert answer.status_code == 302
    run_jobs_once()
    assert Workspace.objects.filter(tag=workspace.tag).exists()
