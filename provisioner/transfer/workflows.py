"""The steps of a transfer, and its effects on both workspaces."""

from __future__ import annotations

from provisioner.engine.models import Operation
from provisioner.engine.queues import HOST, PERFORCE
from provisioner.engine.workflow import (
    LIGHT,
    SHORT,
    StepSpec,
    Workflow,
    register,
)
from provisioner.transfer.models import Transfer, TransferOperation
from provisioner.transfer.steps import contents, plan, proof
from provisioner.workspaces.actions.retiring import start_retirement
from provisioner.workspaces.models import (
    RetireParameters,
    Unsubmitted,
    Workspace,
)
from provisioner.workspaces.states import set_workspace_state
from provisioner.workspaces.steps.run import WorkspaceRun
from provisioner.workspaces.workflows import PROVISION, has_failed

# Read access is checked, and the clone made, while the source is checked.
TRANSFER = (
    *(spec for spec in PROVISION if spec.name != "reconcile"),
    StepSpec(
        "check",
        "Check what will be transferred",
        plan.ensure_planned,
        HOST,
        perforce=SHORT,
    ),
    StepSpec(
        "shelve",
        "Shelve copies of what is opened",
        contents.ensure_shelved,
        HOST,
        ("access", "check"),
        perforce=LIGHT,
    ),
    StepSpec(
        "unshelve",
        "Open them here",
        contents.ensure_opened,
        HOST,
        ("shelve", "flush", "p4config"),
        perforce=LIGHT,
    ),
    StepSpec(
        "merge",
        "Merge what others did",
        contents.ensure_merged,
        HOST,
        ("unshelve",),
        perforce=LIGHT,
    ),
    StepSpec(
        "files",
        "Copy what Perforce does not know",
        contents.ensure_files_copied,
        HOST,
        ("merge",),
    ),
    StepSpec(
        "proof",
        "Compare what arrived",
        proof.ensure_proven,
        HOST,
        ("files",),
        perforce=LIGHT,
    ),
    StepSpec(
        "shelves",
        "Remove the shelved copies",
        contents.ensure_shelves_gone,
        PERFORCE,
        ("proof",),
        perforce=LIGHT,
    ),
)


def _has_arrived(operation: Operation) -> None:
    set_workspace_state(operation.subject.workspace, Workspace.State.READY)
    _put_source_away(operation)


def _put_source_away(operation: Operation) -> None:
    """Retire the source workspace if there are no conflicts.

    Its other and later work is rescued.
    """
    transfer = Transfer.objects.select_related("workspace").get(
        workspace=operation.subject.workspace
    )
    source = (
        Workspace.objects.select_for_update(of=("self",))
        .select_related("site__perforce_server", "template")
        .get(pk=transfer.source_id)
    )
    left = transfer.conflicts_left
    is_busy = source.operations.filter(state=Operation.State.RUNNING).exists()
    if not transfer.retires_source:
        transfer.outcome = f"{source.name} stays, as you chose."
    elif left:
        transfer.outcome = (
            f"{source.name} stays until you retire it: {left:,} of its files are "
            "left for you to resolve."
        )
    elif source.state != Workspace.State.READY or is_busy:
        transfer.outcome = f"{source.name} stays: something else is in progress there."
    else:
        start_retirement(
            by=operation.requested_by,
            workspace=source,
            parameters=RetireParameters(unsubmitted=Unsubmitted.RESCUE),
            reason=f"Its work was transferred into {transfer.workspace.name}.",
        )
        transfer.outcome = f"{source.name} goes to the trash and can be restored."
    transfer.save(update_fields=["outcome"])


register(
    TransferOperation.TRANSFER,
    Workflow(
        steps=TRANSFER, on_success=_has_arrived, on_failure=has_failed, run=WorkspaceRun
    ),
)
