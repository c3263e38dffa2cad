"""Taking a workspace back: what stops it, what it removes, what it proves."""

from __future__ import annotations

import dataclasses
import os

import pytest
from pytest_django import Settings

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.catalog.models import Snapshot, Template
from provisioner.demo.checks import left_behind
from provisioner.engine.models import Operation, Step
from provisioner.gateways import registry
from provisioner.gateways.ontap.types import CloneSpec
from provisioner.lib.refusals import NotAllowed
from provisioner.sites.models import Site
from provisioner.workspaces.actions.retiring import workspace_retire, workspace_retry
from provisioner.workspaces.models import (
    Rescue,
    Unsubmitted,
    Workspace,
    WorkspaceOperation,
)
from provisioner.workspaces.refusals import WorkspaceRetired
from provisioner.workspaces.steps.provision import FINDINGS_SHOWN
from provisioner.workspaces.workflows import PURGE, RETIRE
from tests.support.factories import UserFactory
from tests.support.jobs import perform_again, settle
from tests.support.lab import Lab
from tests.support.requests import workspace_create
from tests.support.retiring import retire_and_purge
from tests.support.work import KINDS_OF_WORK, AtWork

pytestmark = pytest.mark.django_db(transaction=True)


def test_retiring_leaves_nothing_behind(lab_workspace: Workspace) -> None:
    operation = retire_and_purge(lab_workspace)

    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
    assert lab_workspace.state == Workspace.State.RETIRED
    assert left_behind(lab_workspace) == []


def test_what_the_build_made_is_not_unsubmitted_work(lab_workspace: Workspace) -> None:
    assert (lab_workspace.path / "out" / "all").exists()

    assert retire_and_purge(lab_workspace).state == Operation.State.SUCCEEDED


@pytest.mark.parametrize("kind", KINDS_OF_WORK)
def test_unsubmitted_work_stops_a_retirement_unless_discarding_it_is_chosen(
    kind: str, lab_workspace: Workspace, at_work: AtWork
) -> None:
    KINDS_OF_WORK[kind](at_work)

    refused = retire_and_purge(lab_workspace)

    assert refused.state == Operation.State.REFUSED
    assert refused.findings is not None
    assert set(refused.findings) == {kind, "counts"}
    assert refused.findings["counts"][kind]["count"] == 1
    assert len(refused.findings[kind]) == 1
    assert lab_workspace.state == Workspace.State.READY
    assert lab_workspace.status_code == "unsubmitted_work"
    assert lab_workspace.path.is_dir()

    operation = retire_and_purge(lab_workspace, unsubmitted=Unsubmitted.DISCARD)

    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
    assert operation.findings is not None
    assert operation.findings["counts"][kind]["count"] == 1
    assert left_behind(lab_workspace) == []
    record = Event.objects.get(workspace=lab_workspace, kind="work_discarded")
    assert record.actor == lab_workspace.owner
    assert list(record.data) == [kind]


def test_a_step_that_was_done_already_changes_nothing(
    lab_workspace: Workspace, lab_site: Site
) -> None:
    Site.objects.filter(pk=lab_site.pk).update(remove_contents=True)
    retire_and_purge(lab_workspace)
    assert lab_workspace.state == Workspace.State.RETIRED
    kinds = (WorkspaceOperation.RETIRE, WorkspaceOperation.PURGE)
    steps = Step.objects.filter(operation__subject__workspace=lab_workspace)
    done = list(steps.filter(operation__kind__in=kinds).order_by("pk"))
    specs = {spec.name for spec in (*RETIRE, *PURGE)}
    assert {step.name for step in done} == specs - {"leave"}, "of other sites alone"

    for step in done:
        perform_again(step)
        assert left_behind(lab_workspace) == [], step


@pytest.mark.parametrize(
    "rule",
    [
        {"method": "PATCH", "path": "/api/storage/volumes/*"},
        {"method": "DELETE", "path": "/api/storage/volumes/*"},
    ],
)
def test_a_lost_reply_of_ontap_still_leaves_nothing(
    rule: dict[str, object], lab_workspace: Workspace, lab: Lab
) -> None:
    lab.break_ontap({**rule, "drop": True, "when": "after", "times": 1})

    assert retire_and_purge(lab_workspace).state == Operation.State.SUCCEEDED
    assert left_behind(lab_workspace) == []


def test_a_lost_reply_of_perforce_still_leaves_nothing(
    lab_workspace: Workspace, lab: Lab
) -> None:
    lab.break_perforce({"command": "client", "drop": "after", "times": 2})

    assert retire_and_purge(lab_workspace).state == Operation.State.SUCCEEDED
    assert left_behind(lab_workspace) == []


def test_a_failed_purge_can_be_retried(lab_workspace: Workspace, lab: Lab) -> None:
    lab.break_ontap(
        {"method": "DELETE", "path": "/api/storage/volumes/*", "status": 403}
    )
    assert retire_and_purge(lab_workspace).state == Operation.State.SUCCEEDED
    assert lab_workspace.state == Workspace.State.FAILED

    lab.break_ontap()
    workspace_retry(by=lab_workspace.owner, workspace=lab_workspace)
    settle(lab_workspace)

    assert lab_workspace.state == Workspace.State.RETIRED
    assert left_behind(lab_workspace) == []


def test_a_retirement_that_fails_before_it_deletes_leaves_the_workspace_ready(
    lab_workspace: Workspace, lab: Lab, settings: Settings
) -> None:
    settings.STEP_GIVE_UP_SECONDS = 0
    lab.break_perforce({"command": "clients", "drop": "before"})

    operation = retire_and_purge(lab_workspace)

    assert operation.state == Operation.State.FAILED
    assert lab_workspace.state == Workspace.State.READY
    assert lab_workspace.status_code == "perforce_unreachable"
    lab.break_perforce()
    assert retire_and_purge(lab_workspace).state == Operation.State.SUCCEEDED


def test_contents_are_removed_first_where_the_site_asks(
    lab_workspace: Workspace, lab_site: Site
) -> None:
    Site.objects.filter(pk=lab_site.pk).update(remove_contents=True)

    retire_and_purge(lab_workspace)

    purge = lab_workspace.operations.get(kind=WorkspaceOperation.PURGE)
    contents = purge.steps.get(name="contents")
    assert contents.progress["done"] > 20
    assert left_behind(lab_workspace) == []


def test_a_volume_whose_comment_is_not_ours_is_never_deleted(
    lab_workspace: Workspace,
) -> None:
    ontap = registry.ontap(lab_workspace.site)
    ours = ontap.find_volume(lab_workspace.volume_name)
    assert ours is not None
    ontap.delete_volume(ours.uuid, force=True)
    stranger = ontap.create_clone(
        CloneSpec(
            name=lab_workspace.volume_name,
            parent_volume=lab_workspace.template.volume_name,
            parent_snapshot=lab_workspace.snapshot.name,
            comment="somebody else's",
            uid=None,
            gid=None,
        )
    )

    operation = retire_and_purge(lab_workspace)

    assert operation.state == Operation.State.FAILED
    assert lab_workspace.status_code == "volume_is_not_ours"
    assert ontap.get_volume(stranger.uuid).comment == "somebody else's"
    ontap.delete_volume(stranger.uuid, force=True)


def test_a_workspace_can_be_retired_before_it_is_ready(
    published_template: Template,
) -> None:
    alice = UserFactory.create(username="alice", uid=20001, gid=20000)
    workspace = workspace_create(by=alice, template=published_template)

    operation = retire_and_purge(workspace)

    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
    assert workspace.state == Workspace.State.RETIRED
    provision = workspace.operations.get(kind=WorkspaceOperation.PROVISION)
    assert provision.state == Operation.State.CANCELED
    assert left_behind(workspace) == []


def test_retiring_twice_is_one_retirement(lab_workspace: Workspace) -> None:
    first = workspace_retire(by=lab_workspace.owner, workspace=lab_workspace)
    second = workspace_retire(by=lab_workspace.owner, workspace=lab_workspace)

    assert first == second


def test_a_retired_workspace_is_not_retired_again(lab_workspace: Workspace) -> None:
    retire_and_purge(lab_workspace)

    with pytest.raises(WorkspaceRetired):
        workspace_retire(by=lab_workspace.owner, workspace=lab_workspace)


def test_a_stranger_may_not_retire(
    alice: User, carol: User, snapshot: Snapshot
) -> None:
    workspace = workspace_create(by=alice, template=snapshot.template)

    with pytest.raises(NotAllowed):
        workspace_retire(by=carol, workspace=workspace)
    with pytest.raises(NotAllowed):
        workspace_retry(by=carol, workspace=workspace)


def test_an_administrator_may_retire(
    alice: User, admin: User, snapshot: Snapshot
) -> None:
    workspace = workspace_create(by=alice, template=snapshot.template)

    operation = workspace_retire(by=admin, workspace=workspace)

    assert operation.requested_by == admin


def test_files_are_kept_where_somebody_else_deleted_the_client(
    lab_workspace: Workspace, at_work: AtWork
) -> None:
    at_work.change_without_opening()
    registry.perforce(lab_workspace.site.perforce_server).clients.delete(
        lab_workspace.client_name
    )

    operation = retire_and_purge(lab_workspace)

    assert operation.state == Operation.State.REFUSED
    assert "is gone from Perforce" in operation.status_message
    assert at_work.file.read_text() == "changed in place\n"
    assert (
        retire_and_purge(lab_workspace, unsubmitted=Unsubmitted.DISCARD).state
        == Operation.State.SUCCEEDED
    )
    record = Event.objects.get(workspace=lab_workspace, kind="work_discarded")
    assert list(record.data) == ["unchecked"]


def test_files_are_kept_where_the_client_looks_elsewhere(
    lab_workspace: Workspace, at_work: AtWork
) -> None:
    at_work.change_without_opening()
    perforce = registry.perforce(lab_workspace.site.perforce_server)
    client = perforce.clients.find(lab_workspace.client_name)
    assert client is not None
    perforce.clients.save(dataclasses.replace(client, root="/somewhere/else"))

    operation = retire_and_purge(lab_workspace)

    assert operation.state == Operation.State.REFUSED
    assert "/somewhere/else" in operation.status_message
    assert at_work.file.read_text() == "changed in place\n"


def test_files_are_kept_where_the_clone_is_not_mounted(
    lab_workspace: Workspace,
) -> None:
    ontap = registry.ontap(lab_workspace.site)
    ontap.unmount_volume(lab_workspace.volume_uuid)

    operation = retire_and_purge(lab_workspace)

    assert operation.state == Operation.State.REFUSED
    assert "is not mounted" in operation.status_message
    assert ontap.find_volume(lab_workspace.volume_name) is not None
    assert lab_workspace.state == Workspace.State.READY


def test_files_are_kept_where_their_clone_is_not_on_the_svm_of_the_site(
    lab_workspace: Workspace,
) -> None:
    registry.ontap(lab_workspace.site).delete_volume(
        lab_workspace.volume_uuid, force=True
    )
    lab_workspace.path.mkdir()

    operation = retire_and_purge(lab_workspace)

    assert operation.state == Operation.State.REFUSED
    assert "is not on the SVM" in operation.status_message
    perforce = registry.perforce(lab_workspace.site.perforce_server)
    assert perforce.clients.find(lab_workspace.client_name) is not None
    lab_workspace.path.rmdir()


def test_all_unsubmitted_work_is_counted_and_recorded_though_a_page_shows_less(
    lab_workspace: Workspace, at_work: AtWork
) -> None:
    for number in range(FINDINGS_SHOWN + 1):
        (at_work.root / "src" / f"note{number}.txt").write_text("mine\n")

    refused = retire_and_purge(lab_workspace)
    retire_and_purge(lab_workspace, unsubmitted=Unsubmitted.DISCARD)

    assert f"{FINDINGS_SHOWN + 1} things" in refused.status_message
    assert refused.findings is not None
    assert len(refused.findings["untracked"]) == FINDINGS_SHOWN
    record = Event.objects.get(workspace=lab_workspace, kind="work_discarded")
    assert len(record.data["untracked"]) == FINDINGS_SHOWN + 1


def test_clones_of_others_survive(lab_workspace: Workspace) -> None:
    bob = UserFactory.create(username="bob", uid=20002, gid=20000)
    other = workspace_create(by=bob, template=lab_workspace.template)
    settle(other)

    retire_and_purge(lab_workspace)

    assert (other.path / "src" / "file3.txt").exists()
    assert os.path.isdir(lab_workspace.template.path)


def test_what_was_never_flushed_has_nothing_to_rescue(
    lab_workspace: Workspace, at_work: AtWork
) -> None:
    """Its client was defined, and then somebody canceled the request."""
    at_work.p4.run("flush", "//...#none")
    Workspace.objects.filter(pk=lab_workspace.pk).update(
        state=Workspace.State.FAILED, status_code="canceled", ready_at=None
    )
    lab_workspace.refresh_from_db()

    operation = retire_and_purge(lab_workspace, unsubmitted=Unsubmitted.RESCUE)

    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
    assert not Rescue.objects.exists()
    assert left_behind(lab_workspace) == []


def test_a_name_that_is_not_utf8_is_listed_and_can_be_discarded(
    lab_workspace: Workspace, at_work: AtWork
) -> None:
    (at_work.root / "src" / os.fsdecode(b"odd\xff.txt")).write_text("odd\n")

    operation = retire_and_purge(lab_workspace)

    assert operation.state == Operation.State.REFUSED, operation.status_message
    assert operation.findings is not None
    assert operation.findings["counts"]["untracked"]["count"] == 1
    operation = retire_and_purge(lab_workspace, unsubmitted=Unsubmitted.DISCARD)
    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
