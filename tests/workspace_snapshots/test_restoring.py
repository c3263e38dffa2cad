"""A workspace is restored to a snapshot in place, with its client, and back again."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path

import pytest
from django.db.models import F
from pytest_django import Settings

from provisioner.accounts.models import User
from provisioner.engine.models import Operation
from provisioner.gateways import registry
from provisioner.lib import clocks
from provisioner.lib.refusals import ActionRefused
from provisioner.notify.sweeps.mails import send_due
from provisioner.workspace_snapshots import steps
from provisioner.workspace_snapshots.actions import snapshot_restore, snapshot_retry
from provisioner.workspace_snapshots.models import (
    BEFORE_RESTORE,
    ClientReading,
    WorkspaceSnapshot,
)
from provisioner.workspace_snapshots.sweeps import read_clients, record_snapshots
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.steps.recording import read_client
from tests.support.browsers import browser_of
from tests.support.file_trees import as_written
from tests.support.jobs import perform_again, settle
from tests.support.lab import Lab
from tests.support.mail_server import BACKEND, Mailbox
from tests.support.work import AtWork

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root"),
]


def taken_now(workspace: Workspace) -> WorkspaceSnapshot:
    ontap = registry.ontap(workspace.site)
    kept = ontap.create_snapshot(
        workspace.volume_uuid, name="cloneyard-ws-hourly.1", comment=""
    )
    reading = ClientReading.objects.create(
        workspace=workspace, **read_client(workspace, before=None)
    )
    return WorkspaceSnapshot.objects.create(
        workspace=workspace,
        name=kept.name,
        ontap_uuid=kept.uuid,
        taken_at=clocks.database_now(),
        reading=reading,
    )


def state_of(at_work: AtWork) -> tuple[dict[str, str], list[str], list[str]]:
    """Return the files, what is synced, and what is opened."""
    at_work.p4.exception_level = 1
    files = {
        str(path.relative_to(at_work.root)): path.read_text()
        for path in sorted((at_work.root / "src").rglob("*"))
        if path.is_file()
    }
    have = [f"{f['depotFile']}#{f['haveRev']}" for f in at_work.p4.run("have")]
    opened = [f"{f['depotFile']} {f['action']}" for f in at_work.p4.run("opened")]
    return files, sorted(have), opened


def test_it_is_restored_with_its_client_and_back(at_work: AtWork, lab: Lab) -> None:
    source, by = at_work.workspace, at_work.workspace.owner
    at_work.open_for_edit()
    at_work.file.write_text("mine\n")
    at_work.p4.run("sync", f"{at_work.root}/src/file7.txt#none")
    at_work.give_to_owner()
    then, config = state_of(at_work), as_written(at_work.root / ".p4config")
    snapshot = taken_now(source)
    at_work.file.write_text("ruined\n")

    refused = snapshot_restore(by=by, snapshot=snapshot)
    assert snapshot_restore(by=by, snapshot=snapshot) == refused  # a second click
    settle(source)
    refused.refresh_from_db()
    assert refused.state == "refused", refused.status_message
    assert refused.findings is not None
    assert refused.findings["opened"][0]["depot_file"].endswith("/src/file3.txt")
    page = f"/workspaces/{source.pk}/snapshots/{snapshot.pk}/"
    assert "Submit or shelve them" in browser_of(by).get(page).text
    assert at_work.file.read_text() == "ruined\n"

    at_work.p4.run("revert", str(at_work.file))
    at_work.p4.run("sync", f"{at_work.root}/src/file7.txt")
    at_work.leave_an_untracked_file()
    at_work.give_to_owner()
    newer = state_of(at_work)
    path = "/api/storage/volumes/*/snapshots"
    lab.break_ontap(
        {"method": "POST", "path": path, "drop": True, "when": "after", "times": 1}
    )
    assert browser_of(by).post(f"{page}restore/").status_code == 302
    settle(source)
    lab.break_ontap()

    operation = source.operations.first()
    assert operation is not None
    assert operation.state == "succeeded", operation.status_message
    assert operation.findings is not None
    assert (operation.findings["removed"], operation.findings["failed"]) == (2, [])
    assert operation.findings["not_restored"] == []
    assert state_of(at_work) == then
    assert as_written(at_work.root / ".p4config") == config
    assert at_work.file.stat().st_uid == source.uid
    assert "1 copied, 2 removed" in browser_of(by).get(page).text
    for step in operation.steps.filter(name__in=["keep", "record", "files", "opened"]):
        perform_again(step)
    assert state_of(at_work) == then

    record_snapshots(source.site, registry.ontap(source.site))
    kept = WorkspaceSnapshot.objects.get(name__startswith=BEFORE_RESTORE)
    at_work.p4.run("revert", "-k", str(at_work.file))
    snapshot_restore(by=by, snapshot=kept)
    settle(source)
    back = source.operations.first()
    assert back is not None
    assert back.state == "succeeded", back.status_message
    assert state_of(at_work) == newer
    assert Path(source.path / ".p4config").exists()
    assert source.state == Workspace.State.READY


def test_a_client_that_was_not_read_is_refused(at_work: AtWork) -> None:
    snapshot = WorkspaceSnapshot.objects.create(
        workspace=at_work.workspace,
        name="s",
        ontap_uuid="u",
        taken_at=clocks.database_now(),
    )
    with pytest.raises(ActionRefused) as refused:
        snapshot_restore(by=at_work.workspace.owner, snapshot=snapshot)
    assert refused.value.code == "client_not_recorded"


def tried(snapshot: WorkspaceSnapshot, *, second: int) -> Operation:
    """Restore to a snapshot, as if so many seconds later."""
    workspace = snapshot.workspace
    operation = snapshot_restore(by=workspace.owner, snapshot=snapshot)
    later = F("created_at") + dt.timedelta(seconds=second)
    Operation.objects.filter(pk=operation.pk).update(created_at=later)
    settle(workspace)
    operation.refresh_from_db()
    return operation


def test_what_was_there_before_failed_attempts_is_kept(
    lab_workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "KEPT_BEFORE_RESTORES", 1)
    there = taken_now(lab_workspace)
    gone = WorkspaceSnapshot.objects.create(
        workspace=lab_workspace,
        name="cloneyard-ws-hourly.0",
        ontap_uuid="deleted-meanwhile",
        taken_at=there.taken_at,
        reading=there.reading,
    )
    ontap = registry.ontap(lab_workspace.site)

    def kept() -> list[str]:
        found = ontap.list_scheduled_snapshots(prefix=BEFORE_RESTORE)
        return sorted(each.name for each in found[lab_workspace.volume_uuid])

    failed = [tried(gone, second=second) for second in range(3)]
    assert {each.state for each in failed} == {"failed"}, failed[0].status_message
    assert kept() == [steps.kept_name(failed[0]), steps.kept_name(failed[2])]

    record_snapshots(lab_workspace.site, ontap)
    succeeded = tried(there, second=3)
    assert succeeded.state == "succeeded", succeeded.status_message
    assert kept() == [steps.kept_name(failed[0]), steps.kept_name(succeeded)]
    record_snapshots(lab_workspace.site, ontap)
    last = tried(there, second=4)
    assert kept() == [steps.kept_name(last)]


def test_clients_are_not_read_while_they_are_restored(
    lab_workspace: Workspace,
) -> None:
    there = taken_now(lab_workspace)
    before = WorkspaceSnapshot.objects.create(
        workspace=lab_workspace,
        name="cloneyard-ws-hourly.2",
        ontap_uuid="taken-before",
        taken_at=there.taken_at,
    )
    unread = WorkspaceSnapshot.objects.filter(reading=None)
    snapshot_restore(by=lab_workspace.owner, snapshot=there)
    read_clients(site_id=lab_workspace.site_id)
    assert unread.get() == before

    settle(lab_workspace)
    read_clients(site_id=lab_workspace.site_id)

    before.refresh_from_db()
    kept = WorkspaceSnapshot.objects.get(name__startswith=BEFORE_RESTORE)
    assert before.reading == kept.reading
    assert not unread.exists()


def test_what_could_not_be_restored_is_said_and_retried(
    at_work: AtWork, settings: Settings
) -> None:
    settings.EMAIL_BACKEND = BACKEND
    Mailbox.empty()
    source, by = at_work.workspace, at_work.workspace.owner
    User.objects.filter(pk=by.pk).update(email="alice@example.com")
    closed = at_work.root / "closed"
    closed.mkdir()
    (closed / "a").write_text("then\n")
    at_work.give_to_owner()
    snapshot = taken_now(source)
    page = f"/workspaces/{source.pk}/snapshots/{snapshot.pk}/"
    with pytest.raises(ActionRefused, match="Nothing is left to retry"):
        snapshot_retry(by=by, snapshot=snapshot)
    (closed / "a").unlink()
    os.chown(closed, 0, 0)  # so its owner may not write there

    snapshot_restore(by=by, snapshot=snapshot)
    settle(source)

    restored = source.operations.first()
    assert restored is not None
    assert restored.state == "succeeded", restored.status_message
    assert restored.findings is not None
    count = restored.findings["failed_count"]
    said = f"Restored, except {count} file{'s' if count > 1 else ''}."
    assert restored.status_message.startswith(said), restored.findings
    assert "Retry what failed" in browser_of(by).get(page).text
    send_due(now=clocks.database_now() + dt.timedelta(days=1))
    assert Mailbox.subjects() == [f"{source.name} was restored, except for some files"]

    os.chown(closed, source.uid, source.gid)
    assert browser_of(by).post(f"{page}retry/").status_code == 302
    settle(source)
    retried = source.operations.first()
    assert retried is not None
    assert (retried.kind, retried.status_message) == ("take_back", "")
    assert (closed / "a").read_text() == "then\n"
    assert "Retry what failed" not in browser_of(by).get(page).text
