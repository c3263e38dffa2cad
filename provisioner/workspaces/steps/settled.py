"""What retirements have settled of a client, until it is back with all that it knew."""

from __future__ import annotations

from django.db.models import Q

from provisioner.engine import slots
from provisioner.engine import states as engine_states
from provisioner.engine.models import Operation, Step
from provisioner.gateways.perforce.types import HaveList
from provisioner.workspaces.models import Rescue, WorkspaceOperation
from provisioner.workspaces.queries import operations_since_whole
from provisioner.workspaces.steps.flushing import flush_towards_pin
from provisioner.workspaces.steps.run import WorkspaceRun

GIVEN_BACK = "was_given_back"
IS_FLUSHED = "is_flushed"


def note_given_back(run: WorkspaceRun) -> None:
    """Remember that a retirement stopped, and its owner can go on there."""
    engine_states.remember_remote(run.step, {GIVEN_BACK: True})


def was_given_back(run: WorkspaceRun) -> bool:
    """Say whether somebody may have worked there since.

    A restoration has begun, or a retirement stopped and gave it back.
    """
    is_undone = Q(kind=WorkspaceOperation.RESTORE) & ~Q(state=Operation.State.SUCCEEDED)
    has_stopped = Q(steps__remote__has_key=GIVEN_BACK)
    since_whole = operations_since_whole(run.workspace)
    return since_whole.filter(is_undone | has_stopped).exists()


def last_rescue(run: WorkspaceRun) -> Rescue | None:
    """Return what was kept of the client since it was whole, None where nothing was."""
    since_whole = operations_since_whole(run.workspace)
    return Rescue.objects.filter(operation__in=since_whole, is_complete=True).first()


def note_flushed(run: WorkspaceRun, *, knows: bool) -> None:
    """Remember whether the client, which we make anew, knows by now what it has."""
    engine_states.remember_remote(run.step, {IS_FLUSHED: knows})


def is_flushed(run: WorkspaceRun) -> bool | None:
    """Say whether the client knows what it has; None: it was never made anew."""
    steps = Step.objects.filter(
        operation__subject__workspace=run.workspace, remote__has_key=IS_FLUSHED
    )
    last = steps.order_by("operation_id", "position").last()
    return None if last is None else bool(last.remote[IS_FLUSHED])


def flush_to_what_it_had(run: WorkspaceRun) -> HaveList:
    """Have the server believe what the workspace has: the pin, and what came later."""
    workspace = run.workspace
    total = workspace.snapshot.have_count
    run.progress("flushing", done=0, total=total, unit="files")
    perforce = run.perforce_for(workspace.client_name)
    have = flush_towards_pin(
        perforce, workspace, on_command=lambda use: slots.observe(run.step, use)
    )
    rescue = last_rescue(run)
    if rescue is not None and rescue.have_differences:
        perforce.files.flush_to(
            workspace.client_name,
            [(path, revision) for path, revision in rescue.have_differences],
        )
        have = perforce.files.have_list(workspace.client_name)
    note_flushed(run, knows=True)
    return have
