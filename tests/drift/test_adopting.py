"""An older backup was restored: what it does not know is adopted, and not lost."""

from __future__ import annotations

import dataclasses
import html
import os
import uuid
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.catalog.actions.templates import template_build
from provisioner.catalog.models import Quality, Snapshot, Template
from provisioner.catalog.snapshot_comments import SnapshotMark, build_number_of
from provisioner.drift.actions import finding_resolve, findings_adopt
from provisioner.drift.comparison.previews import preview
from provisioner.drift.models import Finding
from provisioner.drift.repairs import adopting, rows_to_be
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.lib.refusals import NotAllowed
from provisioner.sites.export_policies import ensure_policy_rules, policies_of
from provisioner.sites.models import Site
from provisioner.workspaces.actions.retiring import workspace_retire, workspace_retry
from provisioner.workspaces.models import Rescue, Unsubmitted, Workspace
from tests.support.api_clients import api_of
from tests.support.drift_scene import (
    A,
    K,
    check_drift,
    long_ago,
    resolve,
)
from tests.support.factories import UserFactory
from tests.support.jobs import run_jobs_once, settle
from tests.support.lab import Lab
from tests.support.requests import workspace_create
from tests.support.work import AtWork

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("foreign"),
]


def forgotten(workspace: Workspace) -> None:
    """Take the database back to before the workspace was requested."""
    Workspace.objects.filter(pk=workspace.pk).update(
        tag=uuid.uuid4(),
        state=Workspace.State.RETIRED,
        retired_at=timezone.now(),
        volume_uuid="",
    )


def adopted(site: Site, by: User) -> tuple[Finding, Workspace | None]:
    """Click Adopt at the one volume without a row; return what came of it."""
    [found] = [f for f in check_drift(site) if f.kind == K.VOLUME_WITHOUT_ROW]
    assert (found.action, found.is_automatic) == (A.ADOPT, False)
    found = resolve(found, by)
    newest = Workspace.objects.order_by("-pk").first()
    return found, newest if found.resolved_at else None


@pytest.fixture
def alice_works(lab_workspace: Workspace, lab: Lab) -> Iterator[AtWork]:
    session = AtWork(lab_workspace, lab)
    yield session
    session.end()


def test_the_drill_loses_nothing(
    lab_workspace: Workspace,
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
        os.chown(untracked, lab_workspace.uid, lab_workspace.gid)
    opened = perforce.changes.list_opened(lab_workspace.client_name)
    have = perforce.files.have_list(lab_workspace.client_name)
    forgotten(lab_workspace)

    finding, found = adopted(lab_site, admin)

    assert found is not None, finding.status_message
    assert found.pk != lab_workspace.pk
    assert (found.tag, found.name) == (lab_workspace.tag, lab_workspace.name)
    assert (found.owner, found.uid) == (lab_workspace.owner, lab_workspace.uid)
    assert (found.state, found.snapshot) == (
        Workspace.State.READY,
        lab_workspace.snapshot,
    )
    assert found.client_name == lab_workspace.client_name
    assert found.path == lab_workspace.path
    assert found.expires_at is not None
    assert perforce.changes.list_opened(found.client_name) == opened
    assert perforce.files.have_list(found.client_name) == have
    assert untracked.read_text() == "untracked\n"
    event = Event.objects.get(kind="workspace_adopted", workspace=found)
    assert event.actor == admin
    assert check_drift(lab_site) == []

    workspace_retire(by=found.owner, workspace=found, unsubmitted=Unsubmitted.RESCUE)
    settle(found)

    assert found.state == Workspace.State.TRASHED, found.status_message
    rescue = Rescue.objects.get(operation__subject__workspace=found)
    assert [file["depot_file"] for file in rescue.reverted] == [opened[0].depot_file]
    manifest = Path(rescue.directory) / "manifest.json"
    assert "src/notes.txt" in manifest.read_text()


def test_a_name_that_is_taken_by_now_gets_a_number(
    lab_workspace: Workspace, lab_site: Site, admin: User
) -> None:
    name = lab_workspace.name
    forgotten(lab_workspace)
    other = UserFactory.create(uid=20009, gid=20000)
    workspace_create(by=other, template=lab_workspace.template, name=name)

    _, found = adopted(lab_site, admin)

    assert found is not None
    assert (found.name, found.made_as) == (f"{name}-2", name)
    assert found.volume_name == lab_workspace.volume_name.replace(
        lab_workspace.tag.hex[:6], found.tag.hex[:6]
    )


def test_a_snapshot_that_nobody_knows_comes_along_and_is_not_handed_out(
    lab_workspace: Workspace, lab_site: Site, admin: User
) -> None:
    snapshot = lab_workspace.snapshot
    forgotten(lab_workspace)
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


def test_the_pin_is_what_the_snapshot_holds_whatever_its_owner_synced(
    lab_workspace: Workspace, lab_site: Site, admin: User, perforce: Any, p4: Any
) -> None:
    snapshot = lab_workspace.snapshot
    p4.client = lab_workspace.client_name
    p4.run("sync", "-k", f"//{lab_workspace.client_name}/...#none")
    forgotten(lab_workspace)
    Snapshot.objects.filter(pk=snapshot.pk).update(name="c1.b0", ontap_uuid="gone")

    _, found = adopted(lab_site, admin)

    assert found is not None
    assert perforce.files.have_list(found.client_name).count == 0
    assert (found.snapshot.have_count, found.snapshot.have_digest) == (
        snapshot.have_count,
        snapshot.have_digest,
    )


def test_a_snapshot_without_a_mark_of_ours_is_never_handed_out(
    lab_workspace: Workspace, lab_site: Site, admin: User, monkeypatch: Any
) -> None:
    """As of another release: what it holds is told by the clone's client at best."""
    forgotten(lab_workspace)
    Snapshot.objects.filter(pk=lab_workspace.snapshot_id).update(
        name="c1.b0", ontap_uuid="gone"
    )
    monkeypatch.setattr(rows_to_be, "mark_of", lambda comment: None)

    _, found = adopted(lab_site, admin)

    assert found is not None
    assert found.snapshot.deleted_at is not None
    assert found.snapshot not in Snapshot.objects.available()


def forget_build(snapshot: Snapshot) -> None:
    """Take the database back to before a build, including its sequences."""
    with connection.cursor() as cursor:
        for statement in (
            "UPDATE catalog_template SET last_build_id = NULL WHERE last_build_id = %s",
            "DELETE FROM catalog_snapshot WHERE operation_id = %s",
            "DELETE FROM engine_step WHERE operation_id = %s",
            "DELETE FROM engine_operation WHERE id = %s",
        ):
            cursor.execute(statement, [snapshot.operation_id])


def test_a_published_snapshot_that_nobody_knows_is_kept_and_adopted(
    built_template: Template, lab_site: Site, admin: User, ontap: OntapGateway
) -> None:
    """One that no build of this database made is no crash of ours: it stays."""
    long_ago()
    snapshot = built_template.snapshots.get()
    forget_build(snapshot)

    for _ in range(2):
        [finding] = check_drift(lab_site)
    assert (finding.kind, finding.action) == (K.SNAPSHOT_WITHOUT_ROW, A.ADOPT)
    assert not finding.is_automatic
    assert ontap.find_snapshot(built_template.volume_uuid, name=snapshot.name)

    finding = resolve(finding, admin)

    assert finding.resolved_at is not None, finding.status_message
    found = built_template.snapshots.get()
    assert (found.name, found.ontap_uuid) == (snapshot.name, snapshot.ontap_uuid)
    assert (found.change, found.have_digest) == (snapshot.change, snapshot.have_digest)
    assert (found.quality, found.deleted_at) == (Quality.FAILED, None)
    assert check_drift(lab_site) == []


def test_a_build_takes_no_older_snapshot_for_its_own(
    built_template: Template, lab_site: Site, admin: User, ontap: OntapGateway
) -> None:
    """Numbers that came again: the snapshot stays, and the next build has a new one."""
    snapshot = built_template.snapshots.get()
    number = build_number_of(snapshot.name)
    forget_build(snapshot)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT setval("
            "pg_get_serial_sequence('engine_operation', 'id'), %s, false)",
            [number],
        )

    first = template_build(by=admin, template=built_template)
    settle(built_template)

    first.refresh_from_db()
    assert (first.pk, first.status_code) == (number, "snapshot_of_another_build")
    kept = ontap.find_snapshot(built_template.volume_uuid, name=snapshot.name)
    assert kept is not None
    assert kept.uuid == snapshot.ontap_uuid
    second = template_build(by=admin, template=built_template)
    settle(built_template)
    assert built_template.snapshots.get().operation == second


def test_the_command_adopts_all_and_says_first_what_it_would_do(
    lab_workspace: Workspace, lab_site: Site
) -> None:
    forgotten(lab_workspace)
    said = StringIO()
    call_command("drift", "--adopt", "--dry-run", stdout=said)
    assert lab_workspace.volume_name in said.getvalue()
    assert not Workspace.objects.filter(tag=lab_workspace.tag).exists()

    call_command("drift", "--adopt", stdout=said)

    assert f"It is the workspace {lab_workspace.name} of" in said.getvalue()
    assert Workspace.objects.filter(tag=lab_workspace.tag).exists()


def test_a_script_adopts_all_where_it_is_an_administrators(
    lab_workspace: Workspace, lab_site: Site, admin: User, client: Client
) -> None:
    forgotten(lab_workspace)
    check_drift(lab_site)
    address = reverse("api:finding-adopt")
    assert client.post(address).status_code in (401, 403)
    for who, status in (
        (lab_workspace.owner, 403),
        (UserFactory.create(), 403),
        (admin, 202),
    ):
        client.force_login(who)
        answer = client.post(address)
        assert answer.status_code == status
    assert answer.json() == {"asked_for": 1}
    run_jobs_once()
    assert Workspace.objects.filter(tag=lab_workspace.tag).exists()


def test_an_account_that_is_not_active_is_named(
    lab_workspace: Workspace, lab_site: Site, admin: User
) -> None:
    forgotten(lab_workspace)
    User.objects.filter(pk=lab_workspace.owner_id).update(is_active=False)

    finding, found = adopted(lab_site, admin)

    assert found is None
    assert "is not active: activate it" in finding.status_message


def test_what_is_in_part_there_goes_on_from_there(
    lab_workspace: Workspace, lab_site: Site, admin: User, ontap: OntapGateway
) -> None:
    """Trashed after the backup, its client gone: its files are there all the same."""
    path = lab_workspace.path / "src" / "mine.txt"
    path.write_text("mine")
    workspace_retire(
        by=lab_workspace.owner, workspace=lab_workspace, unsubmitted=Unsubmitted.RESCUE
    )
    settle(lab_workspace)
    assert lab_workspace.state == Workspace.State.TRASHED
    forgotten(lab_workspace)
    _, found = adopted(lab_site, admin)
    assert found is not None
    assert (found.state, found.status_code) == (
        Workspace.State.FAILED,
        "adopted_in_part",
    )

    workspace_retry(by=found.owner, workspace=found)
    settle(found)

    assert found.state == Workspace.State.READY, found.status_message
    assert (found.path / "src" / "mine.txt").read_text() == "mine"
    workspace_retire(by=found.owner, workspace=found, unsubmitted=Unsubmitted.RESCUE)
    settle(found)
    assert found.state == Workspace.State.TRASHED, found.status_message


def test_what_is_in_part_there_is_adopted_as_failed(
    lab_workspace: Workspace, lab_site: Site, admin: User, ontap: OntapGateway
) -> None:
    ontap.unmount_volume(lab_workspace.volume_uuid)
    forgotten(lab_workspace)

    _, found = adopted(lab_site, admin)

    assert found is not None
    assert (found.state, found.status_code) == ("failed", "adopted_in_part")
    assert f"not mounted at {found.junction_path}" in found.status_message


def test_nobodys_account_is_asked_for_first(
    lab_workspace: Workspace, lab_site: Site, admin: User
) -> None:
    forgotten(lab_workspace)
    User.objects.filter(pk=lab_workspace.owner_id).update(
        username="renamed", p4_user="renamed", uid=None, gid=None
    )

    finding, found = adopted(lab_site, admin)

    assert found is None
    assert "Nobody here has the Perforce name alice" in finding.status_message
    assert "make that account, then adopt it" in finding.status_message


def test_a_second_click_makes_no_second_row(
    lab_workspace: Workspace, lab_site: Site, admin: User
) -> None:
    from provisioner.drift.repairs.adopting import adopt_workspace

    forgotten(lab_workspace)
    finding, _ = adopted(lab_site, admin)

    assert adopt_workspace(finding) == "Its workspace has a row now."
    assert Workspace.objects.filter(tag=lab_workspace.tag).count() == 1


def test_its_client_is_not_removed_before_it_is_adopted(
    lab_workspace: Workspace, lab_site: Site, admin: User, perforce: Any
) -> None:
    forgotten(lab_workspace)
    [found] = [f for f in check_drift(lab_site) if f.kind == K.CLIENT_WITHOUT_ROW]

    resolve(found, admin)

    assert "Adopt" in found.status_message
    assert perforce.clients.find(lab_workspace.client_name) is not None


def test_the_api_adopts_what_a_backup_does_not_know(
    lab_workspace: Workspace, alice_works: AtWork, lab_site: Site, admin: User
) -> None:
    alice_works.change_without_opening()
    forgotten(lab_workspace)
    [found] = [f for f in check_drift(lab_site) if f.kind == K.VOLUME_WITHOUT_ROW]
    adopt = f"/api/v1/findings/{found.pk}/resolve"

    assert api_of(lab_workspace.owner).post(adopt).status_code == 403
    assert api_of(admin).post(adopt).status_code == 202
    run_jobs_once()

    rows = api_of(lab_workspace.owner).get("/api/v1/workspaces").json()["results"]
    [told] = [row for row in rows if row["state"] == "ready"]
    assert told["path"] == str(lab_workspace.path)
    assert told["client"] == lab_workspace.client_name
    assert alice_works.file.read_text() == "changed in place\n"
    assert api_of(admin).post(adopt).status_code == 409


@pytest.mark.parametrize("who", ["owner", "stranger"])
def test_administrators_alone_adopt(
    who: str, lab_workspace: Workspace, lab_site: Site
) -> None:
    forgotten(lab_workspace)
    person = lab_workspace.owner if who == "owner" else UserFactory.create()
    [found] = [f for f in check_drift(lab_site) if f.kind == K.VOLUME_WITHOUT_ROW]

    with pytest.raises(NotAllowed):
        finding_resolve(by=person, finding=found)
    with pytest.raises(NotAllowed):
        findings_adopt(by=person)


def test_all_are_adopted_by_one_click(
    lab_workspace: Workspace, lab_site: Site, admin: User, client: Client
) -> None:
    forgotten(lab_workspace)
    check_drift(lab_site)
    client.force_login(admin)
    page = client.get(reverse("drift")).content.decode()
    assert "Adopt all" in page

    answer = client.post(reverse("drift-adopt"))

    assert answer.status_code == 302
    run_jobs_once()
    assert Workspace.objects.filter(tag=lab_workspace.tag).exists()


def test_a_preview_names_the_row_that_is_written(
    lab_workspace: Workspace, lab_site: Site, admin: User, client: Client
) -> None:
    """Page, API and command say the row before it is; what is written is that row."""
    forgotten(lab_workspace)
    said = StringIO()
    call_command("drift", "--adopt", "--dry-run", stdout=said)
    [finding] = [f for f in check_drift(lab_site) if f.kind == K.VOLUME_WITHOUT_ROW]
    client.force_login(admin)
    page = client.get(reverse("finding-detail", args=[finding.pk])).content.decode()
    answer = client.get(reverse("api:finding-detail", args=[finding.pk])).json()
    row = answer["details"]["row"]

    _, found = adopted(lab_site, admin)

    assert found is not None
    assert found.expires_at is not None
    lasts = row.pop("lease_seconds")
    ends_in = (found.expires_at - timezone.now()).total_seconds()
    assert lasts == pytest.approx(ends_in, abs=60)
    assert row == {
        "name": found.name,
        "owner": found.owner.username,
        "purpose": "Development",
        "template": found.template.name,
        "snapshot": found.snapshot.name,
        "change": found.snapshot.change,
        "state": "Ready",
        "missing": "",
        "client": found.client_name,
        "path": str(found.path),
    }
    for text in (said.getvalue(), html.unescape(page), " ".join(answer["preview"])):
        assert f"Make the workspace {found.name} of {found.owner}" in text
        assert f"at change {found.snapshot.change} ({found.snapshot.name})" in text
        assert f"Its client is {found.client_name}." in text
        assert "Its lease begins with that and lasts" in text


def test_a_preview_says_why_there_would_be_no_row(
    lab_workspace: Workspace, lab_site: Site
) -> None:
    forgotten(lab_workspace)
    User.objects.filter(pk=lab_workspace.owner_id).update(is_active=False)
    [finding] = [f for f in check_drift(lab_site) if f.kind == K.VOLUME_WITHOUT_ROW]
    assert "activate it, then adopt the workspace" in preview(finding)[-1]


def test_a_client_of_another_name_is_found_and_not_left_behind(
    lab_workspace: Workspace, lab_site: Site, admin: User, p4: Any, perforce: Any
) -> None:
    spec = perforce.clients.find(lab_workspace.client_name)
    other = lab_workspace.client_name.replace("cy-", "cy-renamed-")
    renamed = dataclasses.replace(
        spec,
        name=other,
        view=tuple(line.replace(spec.name, other) for line in spec.view),
    )
    perforce.clients.save(renamed)
    perforce.clients.delete(spec.name)
    forgotten(lab_workspace)

    finding, found = adopted(lab_site, admin)

    assert found is None
    assert f"named {other}" in finding.status_message
    assert (
        f"name that client {lab_workspace.client_name} again" in finding.status_message
    )
    assert perforce.clients.find(other) is not None


def made(workspace_of: User, template: Template, purpose: str) -> Workspace:
    workspace = workspace_create(by=workspace_of, template=template, purpose=purpose)
    settle(workspace)
    assert workspace.state == Workspace.State.READY, workspace.status_message
    long_ago()
    return workspace


@pytest.mark.parametrize("purpose", ["build", "ci-edit"])
def test_a_workspace_is_adopted_as_what_it_was_for(
    purpose: str,
    owner: User,
    published_template: Template,
    lab_workspace: Workspace,
    lab_site: Site,
    admin: User,
) -> None:
    lost = made(owner, published_template, purpose)
    assert check_drift(lab_site) == []
    forgotten(lost)

    _, found = adopted(lab_site, admin)

    assert found is not None
    assert (found.purpose, found.state) == (purpose, Workspace.State.READY)
    assert (found.client_name, found.client_type) == (
        lost.client_name,
        lost.client_type,
    )
    assert check_drift(lab_site) == []


def test_a_build_only_workspace_of_before_is_still_ours(
    owner: User,
    published_template: Template,
    lab_workspace: Workspace,
    lab_site: Site,
    ontap: OntapGateway,
) -> None:
    """Its volume says no purpose: nothing is found, and it can be retired."""
    older = made(owner, published_template, "build")
    tag, _, purpose = older.volume_comment.partition(" ")
    assert purpose == "purpose=build"
    ontap.set_volume_comment(older.volume_uuid, comment=tag)

    assert check_drift(lab_site) == []

    workspace_retire(
        by=owner, workspace=older, unsubmitted=Unsubmitted.DISCARD, purge=True
    )
    settle(older)
    assert older.state == Workspace.State.RETIRED, older.status_message
    assert ontap.find_volume(older.volume_name) is None


def test_a_build_refreshed_in_part_is_not_taken_for_complete(
    built_template: Template, lab_site: Site, admin: User, ontap: OntapGateway
) -> None:
    long_ago()
    known = built_template.snapshots.get()
    mark = SnapshotMark(
        tree=built_template.volume_comment,
        change=known.change,
        have_count=known.have_count,
        have_digest=known.have_digest,
        asked="20261101T000000000000",
        parts=2,
    )
    name = f"c{known.change}.b999999"
    ontap.create_snapshot(built_template.volume_uuid, name=name, comment=str(mark))
    [finding] = check_drift(lab_site)
    assert "never offered" in preview(finding)[-1]

    finding = resolve(finding, admin)

    assert "not offered" in finding.resolution
    found = built_template.snapshots.get(name=name)
    assert found.have_digest == known.have_digest
    assert found not in Snapshot.objects.available()


def test_two_who_adopt_a_snapshot_at_a_time_write_one_row(
    built_template: Template,
    lab_site: Site,
    admin: User,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The other one is faster by as much as reading the client's spec takes."""
    long_ago()
    forget_build(built_template.snapshots.get())
    [finding] = check_drift(lab_site)
    pin = adopting._pin

    def pin_slowly(snapshot: Snapshot, *, client: str) -> None:
        monkeypatch.setattr(adopting, "_pin", pin)
        adopting.adopt_snapshot(finding)
        pin(snapshot, client=client)

    monkeypatch.setattr(adopting, "_pin", pin_slowly)

    finding = resolve(finding, admin)

    assert "was written at the same time" in finding.status_message
    assert built_template.snapshots.count() == 1
    assert check_drift(lab_site) == []


def test_a_workspace_whose_snapshot_is_adopted_meanwhile_says_so(
    lab_workspace: Workspace,
    lab_site: Site,
    admin: User,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    snapshot = lab_workspace.snapshot
    forgotten(lab_workspace)
    Snapshot.objects.filter(pk=snapshot.pk).update(name="c1.b0", ontap_uuid="gone")
    pin = adopting._pin

    def pin_slowly(to_be: Snapshot, *, client: str) -> None:
        monkeypatch.setattr(adopting, "_pin", pin)
        Snapshot.objects.filter(pk=snapshot.pk).update(
            name=snapshot.name, ontap_uuid=snapshot.ontap_uuid
        )
        pin(to_be, client=client)

    monkeypatch.setattr(adopting, "_pin", pin_slowly)

    finding, found = adopted(lab_site, admin)

    assert found is None
    assert f"snapshot {snapshot.name} of" in finding.status_message
    finding, found = adopted(lab_site, admin)
    assert found is not None
    assert found.snapshot == snapshot


def test_what_a_retirement_had_shut_is_opened_by_trying_again(
    lab_workspace: Workspace, lab_site: Site, admin: User, ontap: OntapGateway
) -> None:
    """The database was lost in the middle of a retirement: nothing else says so."""
    policy = lab_site.frozen_policy
    ensure_policy_rules(ontap, policy, rules=policies_of(lab_site)[policy])
    ontap.set_volume_policies(lab_workspace.volume_uuid, export_policy=policy)
    forgotten(lab_workspace)

    _, found = adopted(lab_site, admin)

    assert found is not None
    assert (found.state, found.status_code) == ("failed", "adopted_in_part")
    assert "closed it to its owner's hosts" in found.status_message
    workspace_retry(by=found.owner, workspace=found)
    settle(found)
    assert found.state == Workspace.State.READY, found.status_message
    volume = ontap.get_volume(found.volume_uuid)
    assert volume.export_policy == lab_site.export_policy


def test_a_client_that_a_stranger_defined_gives_nobody_the_files(
    lab_workspace: Workspace,
    lab_site: Site,
    admin: User,
    perforce: Any,
    ontap: OntapGateway,
) -> None:
    """The client was gone with a retirement: its name and its tag are no secret."""
    uid = ontap.get_volume(lab_workspace.volume_uuid).uid
    User.objects.filter(pk=lab_workspace.owner_id).update(uid=uid)
    UserFactory.create(username="bob", uid=20002, gid=20000)
    spec = perforce.clients.find(lab_workspace.client_name)
    perforce.clients.delete(spec.name)
    perforce.clients.save(dataclasses.replace(spec, owner="bob"))
    forgotten(lab_workspace)

    finding, found = adopted(lab_site, admin)

    assert found is None
    assert "is bob's, but the files are alice's" in finding.status_message
