"""Runs that request workspaces: batch after batch, timed and removed.

Nothing here waits, and nothing is asked of a remote system. A sweep calls `go_on` until
the last workspace is gone, and takes up what another one left half done.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from provisioner.engine.models import Operation
from provisioner.engine.starting import start_operation
from provisioner.lib.refusals import ActionRefused
from provisioner.qualification.models import (
    PhaseTime,
    QualificationOperation,
    QualificationRun,
)
from provisioner.qualification.profiles import PHASES, READY
from provisioner.qualification.queries import batches_left, key_of_batch, workspaces_of
from provisioner.qualification.states import set_run_state
from provisioner.workspace_requests.actions import workspace_create
from provisioner.workspace_requests.requests import WorkspaceRequest
from provisioner.workspaces.actions.retiring import workspace_retire
from provisioner.workspaces.models import Unsubmitted, Workspace, WorkspaceOperation
from provisioner.workspaces.queries import last_operation

S = Workspace.State
STAYING = (S.READY, S.FAILED, S.PROVISIONING)
NAMED = 3


def go_on(run: QualificationRun) -> None:
    """Do what can be done now for a run that waits for its workspaces."""
    batch = next(batches_left(run), None)
    if batch is not None:
        _go_on_with(run, *batch)
    elif _are_gone(run, workspaces_of(run)):
        with transaction.atomic():
            set_run_state(
                run,
                QualificationRun.State.RUNNING,
                message="Every workspace was timed, and is removed.",
            )
            start_operation(QualificationOperation.PROVE, about=run, by=run.owner)


def _go_on_with(run: QualificationRun, at_once: int, repeat: int) -> None:
    key = key_of_batch(run, at_once=at_once, repeat=repeat)
    of_run = workspaces_of(run)
    batch = list(of_run.filter(request_key__startswith=key).order_by("pk"))
    if len(batch) < at_once:
        if _are_gone(run, of_run.exclude(request_key__startswith=key)):
            _request(run, key, at_once)
        return
    if any(each.state == S.PROVISIONING for each in batch):
        return
    failed = [each for each in batch if each.state != S.READY]
    if failed:
        named = " ".join(
            f"{each.name}: {each.status_message or each.get_state_display()}"
            for each in failed[:NAMED]
        )
        _end(
            run,
            code="workspaces_failed",
            message=f"{len(failed)} of {at_once} workspaces failed. {named}",
        )
        return
    with transaction.atomic():
        PhaseTime.objects.bulk_create(
            (
                PhaseTime(
                    run=run, at_once=at_once, repeat=repeat, number=number, **took
                )
                for number, workspace in enumerate(batch, start=1)
                for took in _phases_of(workspace)
            ),
            ignore_conflicts=True,
        )
        remove(run, batch)


def _request(run: QualificationRun, key: str, at_once: int) -> None:
    """Request a batch. What an earlier attempt requested already is not made twice."""
    assert run.template is not None
    for number in range(1, at_once + 1):
        request = WorkspaceRequest(
            by=run.owner,
            template=run.template,
            site=run.site,
            wants_reconcile=True,
            request_key=f"{key}{number}",
        )
        try:
            workspace_create(request)
        except ActionRefused as refusal:
            _end(run, code=refusal.code, message=refusal.sentence)
            return


def _phases_of(workspace: Workspace) -> Iterator[dict[str, Any]]:
    """Yield how long each step of a workspace took, and all of it."""
    made = workspace.operations.filter(
        kind=WorkspaceOperation.PROVISION, state=Operation.State.SUCCEEDED
    ).latest("pk")
    for step in made.steps.all():
        if step.name in PHASES and step.seconds is not None:
            yield {"phase": step.name, "seconds": step.seconds}
    yield {"phase": READY, "seconds": made.seconds}


def _are_gone(run: QualificationRun, workspaces: QuerySet[Workspace]) -> bool:
    """Return whether these are retired; begin to remove those that are not.

    The run ends if one of them could not be removed.
    """
    staying = list(workspaces.exclude(state=S.RETIRED))
    stuck = [each for each in staying if _is_stuck(each)]
    if stuck:
        names = ", ".join(each.name for each in stuck[:NAMED])
        set_run_state(
            run,
            QualificationRun.State.FAILED,
            code="workspaces_left",
            message=f"{len(stuck)} workspaces could not be removed: {names}. "
            f"{stuck[0].status_message} Retry, or retire them by hand.",
        )
        return False
    remove(run, staying)
    return not staying


def _is_stuck(workspace: Workspace) -> bool:
    last = last_operation(workspace)
    return (
        last is not None
        and last.kind in (WorkspaceOperation.RETIRE, WorkspaceOperation.PURGE)
        and last.state in (Operation.State.FAILED, Operation.State.REFUSED)
    )


def remove(run: QualificationRun, workspaces: Iterable[Workspace]) -> None:
    """Begin to remove workspaces of a run past the trash, whatever is in them."""
    for workspace in workspaces:
        if workspace.state in STAYING:
            workspace_retire(
                by=run.owner,
                workspace=workspace,
                unsubmitted=Unsubmitted.DISCARD,
                purge=True,
                reason=f"Run {run.pk} has measured it.",
            )


def _end(run: QualificationRun, *, code: str, message: str) -> None:
    """End a run that failed, and begin to remove its workspaces."""
    with transaction.atomic():
        set_run_state(run, QualificationRun.State.FAILED, code=code, message=message)
        remove(run, workspaces_of(run))
