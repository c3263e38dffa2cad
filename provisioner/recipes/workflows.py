"""The workflows of recipes: each ends with the retirement of its sandbox."""

from __future__ import annotations

from provisioner.accounts import permissions
from provisioner.accounts.system import system_user
from provisioner.engine.models import Operation
from provisioner.engine.queues import OWN, PERFORCE, STORAGE
from provisioner.engine.subjects import Failure
from provisioner.engine.workflow import LIGHT, StepSpec, Workflow, register
from provisioner.recipes import actions
from provisioner.recipes.models import Checkpoint
from provisioner.recipes.steps import archives, checkpoints
from provisioner.sandboxes import purposes, workflows
from provisioner.sandboxes.actions.keeping import sandbox_retire
from provisioner.sandboxes.models import Sandbox, SandboxOperation
from provisioner.sandboxes.purposes import Recipe
from provisioner.sandboxes.steps import clones, points
from provisioner.sandboxes.steps.run import SandboxRun

CHECKPOINT = (
    StepSpec(
        "server",
        "Ask the server what it is",
        checkpoints.ensure_same_release,
        PERFORCE,
        perforce=LIGHT,
    ),
    StepSpec(
        "place", "Check the host and the directory", checkpoints.ensure_place_fits, OWN
    ),
    StepSpec(
        "point",
        "Take snapshots of the volumes",
        points.ensure_point,
        STORAGE,
        ("server", "place"),
    ),
    StepSpec(
        "clone",
        "Clone the volumes",
        clones.ensure_clones,
        STORAGE,
        ("point",),
    ),
    StepSpec(
        "mount",
        "Mount the clones",
        clones.ensure_mounted,
        STORAGE,
        ("clone",),
    ),
    StepSpec("owner", "Change the owner", clones.ensure_owned, OWN, ("mount",)),
    StepSpec("dump", "Dump the database", checkpoints.ensure_dumped, OWN, ("owner",)),
    StepSpec(
        "replay", "Replay it elsewhere", checkpoints.ensure_replayed, OWN, ("dump",)
    ),
    StepSpec(
        "compare",
        "Compare every table",
        checkpoints.ensure_compared,
        OWN,
        ("replay",),
    ),
    StepSpec("keep", "Keep the checkpoint", checkpoints.ensure_kept, OWN, ("compare",)),
    StepSpec(
        "prune",
        "Remove what was kept long enough",
        checkpoints.ensure_pruned,
        OWN,
        ("keep",),
    ),
    StepSpec(
        "proof", "Check the comparison", checkpoints.ensure_proven, STORAGE, ("prune",)
    ),
)
VERIFY = (
    *workflows.CREATE,
    StepSpec(
        "verify", "Verify the archives", archives.ensure_verified, OWN, ("answer",)
    ),
)


def _checkpoint_is_made(operation: Operation) -> None:
    sandbox: Sandbox = operation.subject.sandbox
    made = Checkpoint.objects.get(sandbox=sandbox)
    stands = f" It stands at change {made.change}." if made.change is not None else ""
    actions.note_checkpoint(
        sandbox.perforce_server,
        message=f"Made a checkpoint, and proved it by a replay elsewhere.{stands} "
        f"It is kept on {sandbox.host.name} as {made.path}.",
    )
    _retire(sandbox, reason="Its checkpoint is made.")


def _checkpoint_failed(operation: Operation, failure: Failure) -> None:
    workflows.has_failed(operation, failure)
    sandbox: Sandbox = operation.subject.sandbox
    actions.note_checkpoint_failed(
        sandbox.perforce_server,
        message=f"The checkpoint by {sandbox.name} failed. {failure.message}",
    )


def _archives_are_verified(operation: Operation) -> None:
    sandbox: Sandbox = operation.subject.sandbox
    actions.note_verified(sandbox)
    _retire(sandbox, reason="Its archives are verified.")


def _verification_failed(operation: Operation, failure: Failure) -> None:
    workflows.has_failed(operation, failure)
    sandbox: Sandbox = operation.subject.sandbox
    # One that somebody asked for in a sandbox of their own is theirs to look at.
    if not permissions.can_administer(sandbox.owner):
        return
    actions.note_verification_failed(
        sandbox.perforce_server,
        message=f"The verification by {sandbox.name} failed. {failure.message}",
    )


def _retire(sandbox: Sandbox, *, reason: str) -> None:
    sandbox_retire(by=system_user(), sandbox=sandbox, reason=reason)


register(
    SandboxOperation.CHECKPOINT,
    Workflow(
        steps=CHECKPOINT,
        on_success=_checkpoint_is_made,
        on_failure=_checkpoint_failed,
        run=checkpoints.CheckpointRun,
    ),
)
register(
    SandboxOperation.VERIFY,
    Workflow(
        steps=VERIFY,
        on_success=_archives_are_verified,
        on_failure=_verification_failed,
        run=SandboxRun,
    ),
)
purposes.register(
    Sandbox.Purpose.CHECKPOINT,
    Recipe(
        operation=SandboxOperation.CHECKPOINT,
        check=actions.check_checkpoint,
        clear=checkpoints.clear,
        left=checkpoints.left,
    ),
)
purposes.register(Sandbox.Purpose.VERIFY, Recipe(operation=SandboxOperation.VERIFY))
