"""The lists of steps: whole, without circles, and right when steps are left out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioner.accounts.models import User
from provisioner.audit_log.actions import kind_of
from provisioner.bisect.models import BisectionOperation
from provisioner.catalog.models import Snapshot, TemplateOperation, VolumeOperation
from provisioner.cloning.models import CloningOperation
from provisioner.copies.models import CopyOperation
from provisioner.engine import states as engine_states
from provisioner.engine import subjects, workflow
from provisioner.engine.models import Operation, PerforceUse, Step
from provisioner.engine.queues import PERFORCE
from provisioner.engine.starting import start_operation
from provisioner.engine.workflow import WORKFLOWS, StepSpec
from provisioner.mirrors.models import MirrorOperation
from provisioner.moves.models import MoveOperation
from provisioner.qualification.models import QualificationOperation
from provisioner.recovery.models import RecoveryOperation
from provisioner.sandboxes.models import SandboxOperation
from provisioner.sites.models import Site
from provisioner.transfer.models import TransferOperation
from provisioner.workspaces.models import WorkspaceOperation
from provisioner.workspaces.workflows import PROVISION, PURGE, RETIRE
from tests.support.requests import workspace_create

KINDS = [
    *WorkspaceOperation,
    TransferOperation.TRANSFER,
    BisectionOperation.STEP,
    *MirrorOperation,
    *CopyOperation,
    *RecoveryOperation,
    *CloningOperation,
    *TemplateOperation,
    *VolumeOperation,
    *MoveOperation,
    *SandboxOperation,
    *QualificationOperation,
]
SETTLED = (Step.State.DONE, Step.State.SKIPPED)


def predecessors(specs: tuple[StepSpec, ...], name: str) -> set[str]:
    """Return all steps that a step comes after, however far."""
    after = {spec.name: spec.after for spec in specs}
    found: set[str] = set()
    check_at = list(after[name])
    while check_at:
        before = check_at.pop()
        if before not in found:
            found.add(before)
            check_at.extend(after[before])
    return found


def test_every_kind_has_its_workflow() -> None:
    assert set(WORKFLOWS) == set(KINDS)


def test_the_audit_log_knows_every_kind_of_subject() -> None:
    """A sweep that heals an operation records it, whatever it is about."""
    rows = [kind.rows().model() for kind in subjects.kinds()]
    assert [kind_of(row) for row in rows]


@pytest.mark.parametrize("kind", KINDS)
def test_steps_come_after_steps_that_exist_and_never_after_themselves(
    kind: str,
) -> None:
    specs = WORKFLOWS[kind].steps
    names = [spec.name for spec in specs]

    assert len(set(names)) == len(names)
    assert {before for spec in specs for before in spec.after} <= set(names)
    for spec in specs:
        assert spec.name not in predecessors(specs, spec.name)


@pytest.mark.parametrize("kind", KINDS)
def test_steps_are_listed_after_those_they_come_after(kind: str) -> None:
    seen: set[str] = set()
    for spec in WORKFLOWS[kind].steps:
        assert set(spec.after) <= seen, spec.name
        seen.add(spec.name)


@pytest.mark.parametrize("kind", KINDS)
def test_steps_run_on_known_queues_and_have_titles(kind: str) -> None:
    site = Site(name="munich")

    queues = {spec.queue_at(site) for spec in WORKFLOWS[kind].steps}

    assert queues <= {"storage", "perforce", "host.munich"} | {
        "commands.munich",
        "bisections.munich",
        "own",
    }
    for spec in WORKFLOWS[kind].steps:
        assert spec.title
        assert len(spec.name) <= 40
        assert spec.ensure.__doc__, spec.name


def test_what_flushes_compares_or_syncs_a_whole_client_counts_against_the_budget() -> (
    None
):
    counted = {
        (kind, spec.name, spec.perforce)
        for kind, workflow in WORKFLOWS.items()
        for spec in workflow.steps
        if spec.perforce in (PerforceUse.SHORT, PerforceUse.LONG)
    }

    assert counted == {
        (WorkspaceOperation.PROVISION, "flush", PerforceUse.SHORT),
        (WorkspaceOperation.PROVISION, "reconcile", PerforceUse.SHORT),
        (TransferOperation.TRANSFER, "flush", PerforceUse.SHORT),
        (RecoveryOperation.RECOVER, "flush", PerforceUse.SHORT),
        (CloningOperation.CLONE, "flush", PerforceUse.SHORT),
        (TransferOperation.TRANSFER, "check", PerforceUse.SHORT),
        (WorkspaceOperation.CHECK, "check", PerforceUse.SHORT),
        (BisectionOperation.STEP, "files", PerforceUse.SHORT),
        (WorkspaceOperation.RETIRE, "unsubmitted", PerforceUse.SHORT),
        (WorkspaceOperation.RETIRE, "work", PerforceUse.SHORT),
        (WorkspaceOperation.RESTORE, "flush", PerforceUse.SHORT),
        (WorkspaceOperation.RESTORE_SNAPSHOT, "flush", PerforceUse.SHORT),
        (TemplateOperation.BUILD, "sync", PerforceUse.LONG),
        (TemplateOperation.BUILD, "verify", PerforceUse.LONG),
        (MirrorOperation.PROMOTE, "client", PerforceUse.LONG),
    }


@pytest.mark.parametrize("kind", KINDS)
def test_each_step_on_the_queue_of_perforce_says_that_it_uses_it(
    kind: str,
) -> None:
    for spec in WORKFLOWS[kind].steps:
        assert spec.perforce or spec.queue != PERFORCE, spec.name


@given(data=st.data(), kind=st.sampled_from(KINDS))
def test_a_step_that_is_left_out_hands_on_what_it_waits_for(
    data: st.DataObject, kind: str
) -> None:
    """Whatever is left out, and in whatever order jobs end: order is kept, all run."""
    specs = WORKFLOWS[kind].steps
    present = [spec.name for spec in specs if data.draw(st.booleans(), spec.name)]
    operation = Operation(kind=kind)
    steps = [
        Step(operation=operation, name=name, position=position)
        for position, name in enumerate(present)
    ]

    while any(step.state not in SETTLED for step in steps):
        ready = workflow.ready_to_start(operation, steps)
        assert ready, "nothing can start, and not all is settled"
        step = data.draw(st.sampled_from(ready))
        settled = {s.name for s in steps if s.state in SETTLED}
        assert predecessors(specs, step.name) & set(present) <= settled
        step.state = data.draw(st.sampled_from(SETTLED))


def test_both_branches_of_a_workspace_may_start_at_once() -> None:
    operation = Operation(kind=WorkspaceOperation.PROVISION)
    steps = [Step(operation=operation, name=spec.name) for spec in PROVISION]

    assert [step.name for step in workflow.ready_to_start(operation, steps)] == [
        "access"
    ]
    steps[0].state = Step.State.DONE
    ready = workflow.ready_to_start(operation, steps)

    assert [step.name for step in ready] == ["clone", "client"]


def test_nothing_is_made_before_read_access_is_known() -> None:
    for spec in PROVISION[1:]:
        assert "access" in predecessors(PROVISION, spec.name)


def test_storage_goes_last() -> None:
    for before in ("unsubmitted", "freeze", "work", "client"):
        assert before in predecessors(RETIRE, "unmount")
    assert "delete" not in {spec.name for spec in RETIRE}
    assert predecessors(PURGE, "proof") == {
        spec.name for spec in PURGE if spec.name != "proof"
    }


@pytest.mark.parametrize(
    ("fields", "left_out"),
    [
        ({}, {"reconcile"}),
        ({"wants_reconcile": True}, set()),
        ({"purpose": "build"}, {"client", "flush", "p4config", "reconcile"}),
        (
            {"purpose": "build", "wants_reconcile": True},
            {"client", "flush", "p4config", "reconcile"},
        ),
    ],
)
def test_steps_that_do_not_apply_are_left_out(
    fields: dict[str, Any], left_out: set[str], alice: User, snapshot: Snapshot
) -> None:
    workspace = workspace_create(by=alice, template=snapshot.template, **fields)

    names = set(workspace.operations.get().steps.values_list("name", flat=True))

    assert {spec.name for spec in PROVISION} - names == left_out


@pytest.mark.parametrize("removes", [True, False])
def test_contents_are_removed_where_the_site_says_so(
    removes: bool, alice: User, snapshot: Snapshot
) -> None:
    Site.objects.update(remove_contents=removes)
    snapshot.refresh_from_db()
    workspace = workspace_create(by=alice, template=snapshot.template)

    engine_states.end_operation(workspace.operations.get(), Operation.State.CANCELED)

    operation = start_operation(WorkspaceOperation.PURGE, by=alice, about=workspace)

    assert operation.steps.filter(name="contents").exists() == removes
