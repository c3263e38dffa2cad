"""The judge of `make chaos` sees what is lost, orphaned or stuck."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.utils import timezone

from provisioner.accounts.system import system_user
from provisioner.catalog.models import Snapshot, Template
from provisioner.engine.models import Operation
from provisioner.engine.starting import start_operation
from provisioner.gateways import registry
from provisioner.workspaces.actions.retiring import workspace_purge, workspace_retire
from provisioner.workspaces.models import Unsubmitted, Workspace, WorkspaceOperation
from tests.chaos.edits import Desk
from tests.chaos.judge import Judge
from tests.chaos.people import Person
from tests.chaos.witness import OntapWitness, Perforce
from tests.support.factories import TemplateFactory
from tests.support.jobs import settle
from tests.support.lab import Lab

pytestmark = [pytest.mark.integration, pytest.mark.django_db(transaction=True)]

OWNER = ("alice", 20001)
KINDS = {"shelved", "opened", "changed", "untracked", "added", "deleted", "moved"}


@pytest.fixture
def desk(lab_workspace: Workspace, lab: Lab) -> Iterator[Desk]:
    """Alice at her desk, with an edit of each kind."""
    person = Person(OWNER[0], number=0)
    person.uid = OWNER[1]
    p4 = Perforce(
        lab.perforce,
        user=person.username,
        password="lab-password",
        scratch=lab.root / "p4-alice",
    )
    desk = Desk(person, lab_workspace, p4=p4, seed=lab_workspace.pk)
    desk.work()
    yield desk
    p4.close()


@pytest.fixture
def judge(lab_workspace: Workspace, lab: Lab) -> Iterator[Judge]:
    p4 = Perforce(
        lab.perforce,
        user=lab.perforce["user"],
        password=lab.perforce["password"],
        scratch=lab.root / "p4-judge",
    )
    ontap = OntapWitness({**lab.ontap, "root": str(lab.root / "ontap")})
    yield Judge(site=lab_workspace.site, ontap=ontap, p4=p4)
    p4.close()


def kinds_of(judge: Judge, workspace: Workspace, desk: Desk | None) -> set[str]:
    return {fault.kind for fault in judge.check_at(workspace, desk)}


def retire(workspace: Workspace, *, unsubmitted: str, purge: bool) -> None:
    workspace_retire(
        by=workspace.owner, workspace=workspace, unsubmitted=unsubmitted, purge=purge
    )
    settle(workspace)


def test_nothing_is_wrong_with_a_workspace_at_work(
    judge: Judge, lab_workspace: Workspace, desk: Desk
) -> None:
    assert {edit.kind for edit in desk.edits} == KINDS
    assert judge.check_at(lab_workspace, desk) == []


@pytest.mark.parametrize("kind", sorted(KINDS - {"shelved", "deleted"}))
def test_a_file_that_is_not_what_it_was_is_lost(
    kind: str, judge: Judge, lab_workspace: Workspace, desk: Desk
) -> None:
    edit = next(edit for edit in desk.edits if edit.kind == kind)
    (desk.root / edit.path).write_text("somebody else's\n")

    assert kinds_of(judge, lab_workspace, desk) == {"lost"}


def test_what_is_not_opened_any_more_is_lost(
    judge: Judge, lab_workspace: Workspace, desk: Desk
) -> None:
    registry.perforce(lab_workspace.site.perforce_server).changes.revert_server_side(
        lab_workspace.client_name
    )

    assert kinds_of(judge, lab_workspace, desk) == {"lost"}


@pytest.mark.parametrize("unsubmitted", [Unsubmitted.RESCUE, Unsubmitted.DISCARD])
def test_what_was_rescued_or_discarded_is_not_lost(
    unsubmitted: str, judge: Judge, lab_workspace: Workspace, desk: Desk
) -> None:
    retire(lab_workspace, unsubmitted=unsubmitted, purge=True)

    assert lab_workspace.state == Workspace.State.RETIRED
    assert judge.check_at(lab_workspace, desk) == []


def test_a_purge_without_a_rescue_is_a_loss_of_everything(
    judge: Judge, lab_workspace: Workspace, desk: Desk
) -> None:
    retire(lab_workspace, unsubmitted=Unsubmitted.DISCARD, purge=True)
    desk.edits = [edit for edit in desk.edits if edit.kind != "shelved"]
    # As if nobody had asked for it: no event tells of a choice.
    other = Workspace.objects.select_related("site").get(pk=lab_workspace.pk)
    other.pk = 0

    faults = judge.check_at(other, desk)
    lost = [f for f in faults if f.kind == "lost" and f.what.endswith("is nowhere")]

    assert len(lost) == len(KINDS) - 1


def test_what_a_sweep_ended_too_early_is_lost(
    judge: Judge, lab_workspace: Workspace, desk: Desk
) -> None:
    """A purge after a rescue leaves nothing else to see."""
    retire(lab_workspace, unsubmitted=Unsubmitted.RESCUE, purge=False)
    assert judge.check_at(lab_workspace, desk) == []
    lab_workspace.state = Workspace.State.TRASHED
    workspace_purge(by=system_user(), workspace=lab_workspace)
    settle(lab_workspace)

    assert lab_workspace.state == Workspace.State.RETIRED
    assert kinds_of(judge, lab_workspace, desk) == {"lost"}
    assert "lost" in {fault.kind for fault in judge.check_everything()}


def test_a_state_that_nobody_asked_for_is_lost(
    judge: Judge, lab_workspace: Workspace
) -> None:
    now = timezone.now()
    Workspace.objects.filter(pk=lab_workspace.pk).update(
        state=Workspace.State.TRASHED, trashed_at=now, purge_at=now
    )
    lab_workspace.refresh_from_db()

    assert "lost" in kinds_of(judge, lab_workspace, None)


def test_a_client_or_a_volume_that_went_behind_our_back_is_an_orphan(
    judge: Judge, lab_workspace: Workspace
) -> None:
    volume = registry.ontap(lab_workspace.site).find_volume(lab_workspace.volume_name)
    assert volume is not None
    registry.ontap(lab_workspace.site).unmount_volume(volume.uuid)
    registry.perforce(lab_workspace.site.perforce_server).clients.delete(
        lab_workspace.client_name, keep_shelves=False
    )

    found = [fault.what for fault in judge.check_at(lab_workspace, None)]

    assert len(found) == 3
    assert {what.split()[1] for what in found} == {"junction", "client", "path"}


def test_a_row_that_was_forgotten_leaves_orphans(
    judge: Judge, lab_workspace: Workspace
) -> None:
    Workspace.objects.filter(pk=lab_workspace.pk).update(
        state=Workspace.State.RETIRED, retired_at=lab_workspace.created_at
    )

    found = " ".join(fault.what for fault in judge.check_everything())

    for thing in (
        f"volume {lab_workspace.volume_comment}",
        f"client {lab_workspace.client_name}",
        f"junction {lab_workspace.junction_path}",
        f"directory below the mount root {lab_workspace.junction_path}",
    ):
        assert f"{thing} without a row" in found


def test_a_template_that_was_never_built_is_no_orphan(
    judge: Judge, lab_workspace: Workspace
) -> None:
    before = judge.check_site()

    TemplateFactory.create(site=lab_workspace.site, state=Template.State.NEW)

    assert judge.check_site() == before


def test_a_snapshot_without_a_row_is_an_orphan(
    judge: Judge, lab_workspace: Workspace
) -> None:
    template = lab_workspace.template
    assert judge.check_template(template) == []
    Snapshot.objects.filter(template=template).update(deleted_at=template.created_at)

    assert [fault.kind for fault in judge.check_template(template)] == ["orphans"]


def test_an_operation_that_nobody_moves_is_stuck(
    judge: Judge, lab_workspace: Workspace
) -> None:
    workspace_retire(by=lab_workspace.owner, workspace=lab_workspace)

    assert "stuck" in {fault.kind for fault in judge.check_everything()}


def test_a_split_that_only_the_row_knows_of_is_an_orphan(
    judge: Judge, lab_workspace: Workspace
) -> None:
    operation = start_operation(
        WorkspaceOperation.SPLIT, by=lab_workspace.owner, about=lab_workspace
    )
    said = [fault.what for fault in judge.check_at(lab_workspace, None)]
    assert said == [f"{operation} runs, and nothing moves"]
    Operation.objects.filter(pk=operation.pk).update(
        state=Operation.State.SUCCEEDED, ended_at=lab_workspace.created_at
    )
    lab_workspace.split_at = lab_workspace.created_at

    [fault] = judge.check_at(lab_workspace, None)
    assert fault.what.endswith("ONTAP says it is a clone: True")


def test_a_workspace_that_is_kept_in_vain_is_lost(
    judge: Judge, lab_workspace: Workspace
) -> None:
    assert judge.check_lease(lab_workspace, "reason", "release") == []
    assert [f.kind for f in judge.check_lease(lab_workspace, "reason", "keep")] == [
        "lost"
    ]
    lab_workspace.keep_reason, lab_workspace.expires_at = "reason", None
    assert judge.check_lease(lab_workspace, "reason", "keep") == []
