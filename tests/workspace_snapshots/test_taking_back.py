"""A workspace is compared with its snapshots, and its files are taken back."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable

import pytest

from provisioner.audit_log.models import Event
from provisioner.gateways import registry
from provisioner.lib import clocks
from provisioner.lib.refusals import ActionRefused, InvalidRequest
from provisioner.workspace_snapshots.actions import (
    snapshot_compare,
    snapshot_take_back,
)
from provisioner.workspace_snapshots.models import WorkspaceSnapshot
from provisioner.workspaces.models import Workspace
from tests.support.api_clients import api_of
from tests.support.browsers import browser_of
from tests.support.jobs import perform_again, settle
from tests.support.work import AtWork

pytestmark = pytest.mark.django_db(transaction=True)
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")


@pytest.fixture
def taken(at_work: AtWork) -> WorkspaceSnapshot:
    """A snapshot of a workspace with an opened file."""
    source = at_work.workspace
    at_work.open_for_edit()
    at_work.file.write_text("mine\n")
    at_work.give_to_owner()
    ontap = registry.ontap(source.site)
    kept = ontap.create_snapshot(source.volume_uuid, name="cloneyard-ws-1", comment="")
    return WorkspaceSnapshot.objects.create(
        workspace=source,
        name=kept.name,
        ontap_uuid=kept.uuid,
        taken_at=clocks.database_now(),
    )


@needs_root
def test_an_opened_file_comes_back_and_stays_opened(
    at_work: AtWork, taken: WorkspaceSnapshot, run_jobs: Callable[[], None]
) -> None:
    source, by = at_work.workspace, at_work.workspace.owner
    at_work.file.write_text("ruined\n")
    at_work.leave_an_untracked_file()
    (at_work.root / "src" / "file7.txt").unlink()
    at_work.give_to_owner()

    operation = snapshot_compare(by=by, snapshot=taken)
    assert snapshot_compare(by=by, snapshot=taken) == operation  # a second click
    with pytest.raises(ActionRefused) as refused:
        snapshot_take_back(by=by, snapshot=taken, path="src")
    assert refused.value.code == "workspace_busy"
    settle(source)

    operation.refresh_from_db()
    assert operation.state == "succeeded", operation.status_message
    assert operation.findings == {
        "added": ["src/notes.txt"],
        "changed": ["src/file3.txt"],
        "removed": ["src/file7.txt"],
        "counts": {"added": 1, "changed": 1, "removed": 1},
        "is_complete": True,
    }
    page = f"/workspaces/{source.pk}/snapshots/{taken.pk}/"
    assert "src/notes.txt" in browser_of(by).get(page).text

    answer = browser_of(by).post(page, {"path": "src/file3.txt"})
    assert answer.status_code == 302, answer.text
    settle(source)

    back = source.operations.get(kind="take_back")
    assert back.findings is not None, back.status_message
    [[path, kept]] = back.findings["kept"]
    assert (path, at_work.file.read_text()) == ("src/file3.txt", "mine\n")
    assert (at_work.root / kept).read_text() == "ruined\n"
    assert (at_work.root / kept).stat().st_uid == source.uid
    assert at_work.file.stat().st_uid == source.uid
    assert kept in browser_of(by).get(page).text
    perform_again(back.steps.get())
    back.refresh_from_db()
    assert back.findings["kept"] == [[path, kept]]
    [opened] = at_work.p4.run("opened")
    assert opened["action"] == "edit"
    assert "newer ones kept: 1" in Event.objects.get(kind="taken_back").message
    assert source.state == Workspace.State.READY


@needs_root
def test_a_directory_comes_back_through_the_api(
    at_work: AtWork, taken: WorkspaceSnapshot
) -> None:
    source = at_work.workspace
    count = len(list((at_work.root / "src").iterdir()))
    shutil.rmtree(at_work.root / "src")
    api = api_of(source.owner)
    asked = {"snapshot": taken.pk, "path": "src/"}

    answer = api.post(f"/api/v1/workspaces/{source.pk}/snapshots/take-back", asked)
    assert answer.status_code == 202, answer.content
    settle(source)

    done = api.get(answer.headers["Location"]).json()
    assert done["findings"]["files"] == count, done
    assert done["findings"]["kept"] == []
    assert at_work.file.read_text() == "mine\n"

    registry.ontap(source.site).delete_snapshot(
        source.volume_uuid, snapshot_uuid=taken.ontap_uuid
    )
    answer = api.post(f"/api/v1/workspaces/{source.pk}/snapshots/compare", asked)
    settle(source)
    assert "is not seen" in api.get(answer.headers["Location"]).json()["status_message"]
    source.refresh_from_db()
    assert source.state == Workspace.State.READY
    page = f"/workspaces/{source.pk}/snapshots/{taken.pk}/"
    assert "is not seen" in browser_of(source.owner).get(page).text


def test_what_cannot_be_is_refused(ready: Workspace) -> None:
    by, site = ready.owner, ready.site
    site.shows_snapshots = True
    site.save()
    snapshot = WorkspaceSnapshot.objects.create(
        workspace=ready, name="s", ontap_uuid="u", taken_at=clocks.database_now()
    )
    with pytest.raises(InvalidRequest, match="contain"):
        snapshot_take_back(by=by, snapshot=snapshot, path="../etc")
    page = f"/workspaces/{ready.pk}/snapshots/{snapshot.pk}/"
    refused = browser_of(by).post(page, {"path": "../etc"})
    assert refused.status_code == 409
    assert "../etc" in refused.text
    asked = {"snapshot": snapshot.pk + 1, "path": "a"}
    url = f"/api/v1/workspaces/{ready.pk}/snapshots/take-back"
    assert api_of(by).post(url, asked).status_code == 400

    site.shows_snapshots = False
    site.save()
    with pytest.raises(ActionRefused) as hidden:
        snapshot_compare(by=by, snapshot=snapshot)
    assert hidden.value.code == "snapshots_hidden"
