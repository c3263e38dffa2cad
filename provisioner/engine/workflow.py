"""The story as lists: what happens to a workspace or a template, and after what.

A step starts when the steps it comes after are done. Each belongs to a queue, served
by the workers of the hosts that can reach what the step needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from provisioner.bisect import steps as bisect_steps
from provisioner.catalog.steps import commands, contents, pruning, publishing, volume
from provisioner.engine.models import Operation, PerforceUse, Step
from provisioner.engine.queues import COMMANDS, HOST, PERFORCE, STORAGE
from provisioner.engine.states import settled_names
from provisioner.engine.step_run import StepRun
from provisioner.engine.steps import ensure_quiet
from provisioner.sites.models import Site
from provisioner.transfer.steps import plan, proof, transfer
from provisioner.workspaces.models import Unsaved
from provisioner.workspaces.steps import provision, purge, restore, retire
from provisioner.workspaces.steps.access import ensure_access

LIGHT, SHORT, LONG = (
    PerforceUse.LIGHT,
    PerforceUse.SHORT,
    PerforceUse.LONG,
)


@dataclass(frozen=True)
class StepSpec:
    """One step of a workflow.

    `ensure` looks, acts if needed, and returns what later steps use. `applies` says
    whether an operation needs the step at all. `perforce` is what it does to the
    Perforce server, where it may have to wait for its turn.
    """

    name: str
    title: str
    ensure: Callable[[StepRun], dict[str, Any]]
    queue: str
    after: tuple[str, ...] = ()
    applies: Callable[[Operation], bool] = lambda operation: True
    perforce: PerforceUse = PerforceUse.NONE

    def queue_at(self, site: Site) -> str:
        if self.queue == HOST:
            return site.host_queue
        return site.commands_queue if self.queue == COMMANDS else self.queue


def _has_client(operation: Operation) -> bool:
    assert operation.workspace is not None
    return bool(operation.workspace.client_name)


def _wants_reconcile(operation: Operation) -> bool:
    assert operation.workspace is not None
    return _has_client(operation) and operation.workspace.wants_reconcile


def _had_client(operation: Operation) -> bool:
    """Trials also have a client, for as long as their files are synced."""
    return _has_client(operation) or hasattr(operation.workspace, "trial")


def _has_command(operation: Operation) -> bool:
    assert operation.workspace is not None
    return bool(operation.workspace.trial.bisection.command)


PROVISION = (
    StepSpec(
        "access",
        "Check read access",
        ensure_access,
        PERFORCE,
        perforce=LIGHT,
    ),
    StepSpec(
        "clone", "Clone the snapshot", provision.ensure_clone, STORAGE, ("access",)
    ),
    StepSpec("export", "Export it", provision.ensure_exported, STORAGE, ("clone",)),
    StepSpec("mount", "Mount it", provision.ensure_mounted, STORAGE, ("export",)),
    StepSpec("owner", "Make it yours", provision.ensure_owner, HOST, ("mount",)),
    StepSpec(
        "client",
        "Define the client",
        provision.ensure_client,
        PERFORCE,
        ("access",),
        applies=_has_client,
        perforce=LIGHT,
    ),
    StepSpec(
        "flush",
        "Flush to the change of the snapshot",
        provision.ensure_flushed,
        PERFORCE,
        ("client",),
        applies=_has_client,
        perforce=SHORT,
    ),
    StepSpec(
        "p4config",
        "Write .p4config",
        provision.ensure_p4config,
        HOST,
        ("owner",),
        applies=_has_client,
    ),
    StepSpec(
        "reconcile",
        "Compare files with the depot",
        provision.ensure_reconciled,
        HOST,
        ("p4config", "flush"),
        applies=_wants_reconcile,
        perforce=SHORT,
    ),
)


# Read access is checked, and the clone made, while the source is looked at.
FORWARD = (
    *(spec for spec in PROVISION if spec.name != "reconcile"),
    StepSpec(
        "look",
        "Look at what is to be taken along",
        plan.ensure_planned,
        HOST,
        perforce=SHORT,
    ),
    StepSpec(
        "shelve",
        "Shelve copies of what is opened",
        transfer.ensure_shelved,
        HOST,
        ("access", "look"),
        perforce=LIGHT,
    ),
    StepSpec(
        "unshelve",
        "Open them here",
        transfer.ensure_opened,
        HOST,
        ("shelve", "flush", "p4config"),
        perforce=LIGHT,
    ),
    StepSpec(
        "merge",
        "Merge what others did",
        transfer.ensure_merged,
        HOST,
        ("unshelve",),
        perforce=LIGHT,
    ),
    StepSpec(
        "files",
        "Copy what Perforce does not know",
        transfer.ensure_files_copied,
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
        transfer.ensure_shelves_gone,
        PERFORCE,
        ("proof",),
        perforce=LIGHT,
    ),
)

# Build only: no client but the one that maps the files, and nothing is flushed.
TRIAL = (
    *(
        spec
        for spec in PROVISION
        if spec.name in ("access", "clone", "export", "mount", "owner")
    ),
    StepSpec(
        "files",
        "Bring it to the change",
        bisect_steps.ensure_at_change,
        HOST,
        ("owner",),
        perforce=SHORT,
    ),
    StepSpec(
        "run",
        "Run the command",
        bisect_steps.ensure_run,
        COMMANDS,
        ("files",),
        applies=_has_command,
    ),
)

LOOK = (
    StepSpec(
        "look",
        "Look for what is not submitted",
        plan.ensure_looked,
        HOST,
        perforce=SHORT,
    ),
)


def _holds_work(operation: Operation) -> bool:
    assert operation.workspace is not None
    return operation.workspace.holds_work


def _stops_at_unsaved_work(operation: Operation) -> bool:
    unsaved = operation.parameters.get("unsaved", Unsaved.REFUSE)
    return _holds_work(operation) and unsaved == Unsaved.REFUSE


RETIRE = (
    StepSpec("quiet", "Wait for work in progress", ensure_quiet, STORAGE),
    StepSpec(
        "unsaved",
        "Look for unsaved work",
        retire.ensure_nothing_unsaved,
        HOST,
        ("quiet",),
        applies=_stops_at_unsaved_work,
        perforce=SHORT,
    ),
    StepSpec("freeze", "Freeze it", retire.ensure_frozen, STORAGE, ("unsaved",)),
    StepSpec(
        "work",
        "Settle what is not submitted",
        retire.ensure_work_settled,
        HOST,
        ("freeze",),
        applies=_holds_work,
        perforce=SHORT,
    ),
    StepSpec(
        "client",
        "Delete the client",
        retire.ensure_client_deleted,
        HOST,
        ("work",),
        applies=_had_client,
        perforce=LIGHT,
    ),
    StepSpec("unmount", "Unmount it", retire.ensure_unmounted, STORAGE, ("client",)),
    StepSpec(
        "gone", "See that it is gone", retire.ensure_path_gone, HOST, ("unmount",)
    ),
)

RESTORE = (
    StepSpec("quiet", "Wait for work in progress", ensure_quiet, STORAGE),
    StepSpec(
        "clone", "Find the clone", restore.ensure_clone_there, STORAGE, ("quiet",)
    ),
    StepSpec("export", "Export it", provision.ensure_exported, STORAGE, ("clone",)),
    StepSpec("mount", "Mount it", provision.ensure_mounted, STORAGE, ("export",)),
    StepSpec("visible", "See it", restore.ensure_visible, HOST, ("mount",)),
    StepSpec(
        "client",
        "Define the client as it was",
        restore.ensure_client,
        PERFORCE,
        ("clone",),
        applies=_has_client,
        perforce=LIGHT,
    ),
    StepSpec(
        "flush",
        "Flush to what it had",
        restore.ensure_flushed,
        HOST,
        ("client",),
        applies=_has_client,
        perforce=SHORT,
    ),
    StepSpec(
        "opened",
        "Open again what was opened",
        restore.ensure_opened,
        HOST,
        ("visible", "flush"),
        applies=_has_client,
        perforce=LIGHT,
    ),
)


def _removes_contents(operation: Operation) -> bool:
    return operation.site.remove_contents


PURGE = (
    StepSpec("quiet", "Wait for work in progress", ensure_quiet, STORAGE),
    StepSpec(
        "mount",
        "Mount it out of sight",
        purge.ensure_reachable,
        STORAGE,
        ("quiet",),
        applies=_removes_contents,
    ),
    StepSpec(
        "contents",
        "Remove the contents",
        purge.ensure_contents_removed,
        HOST,
        ("mount",),
        applies=_removes_contents,
    ),
    StepSpec(
        "unmount", "Unmount it", purge.ensure_unmounted, STORAGE, ("quiet", "contents")
    ),
    StepSpec(
        "destroy",
        "Destroy the clone",
        purge.ensure_clone_deleted,
        STORAGE,
        ("unmount",),
    ),
    StepSpec(
        "proof",
        "Prove that nothing is left",
        purge.ensure_nothing_left,
        HOST,
        ("destroy",),
    ),
)


def _is_clean_build(operation: Operation) -> bool:
    return bool(operation.parameters.get("clean"))


def _has_test(operation: Operation) -> bool:
    assert operation.template is not None
    return bool(operation.template.test_command.strip())


TEMPLATE_BUILD = (
    StepSpec("volume", "Create the volume", volume.ensure_volume, STORAGE),
    StepSpec("export", "Export it", volume.ensure_exported, STORAGE, ("volume",)),
    StepSpec("mount", "Mount it", volume.ensure_mounted, STORAGE, ("export",)),
    StepSpec("visible", "Check the mount", volume.ensure_visible, HOST, ("mount",)),
    StepSpec(
        "client",
        "Define the client",
        volume.ensure_client,
        PERFORCE,
        perforce=LIGHT,
    ),
    StepSpec(
        "clean",
        "Remove what is not versioned",
        contents.ensure_clean,
        HOST,
        ("visible", "client"),
        applies=_is_clean_build,
        perforce=LIGHT,
    ),
    StepSpec(
        "sync",
        "Sync the files",
        contents.ensure_synced,
        HOST,
        ("visible", "client", "clean"),
        perforce=LONG,
    ),
    StepSpec("build", "Build", commands.ensure_built, COMMANDS, ("sync",)),
    StepSpec(
        "test", "Test", commands.ensure_tested, COMMANDS, ("build",), applies=_has_test
    ),
    StepSpec(
        "verify",
        "Verify",
        publishing.ensure_verified,
        HOST,
        ("test",),
        perforce=LONG,
    ),
    StepSpec(
        "snapshot",
        "Take and publish the snapshot",
        publishing.ensure_snapshot,
        STORAGE,
        ("verify",),
    ),
    StepSpec(
        "prune",
        "Delete snapshots that nothing needs",
        pruning.ensure_pruned,
        STORAGE,
        ("snapshot",),
    ),
    StepSpec(
        "outcome",
        "Say what the test found",
        commands.ensure_outcome,
        STORAGE,
        ("prune",),
        applies=_has_test,
    ),
)

WORKFLOWS: dict[str, tuple[StepSpec, ...]] = {
    Operation.Kind.PROVISION: PROVISION,
    Operation.Kind.LOOK: LOOK,
    Operation.Kind.FORWARD: FORWARD,
    Operation.Kind.TRIAL: TRIAL,
    Operation.Kind.RETIRE: RETIRE,
    Operation.Kind.RESTORE: RESTORE,
    Operation.Kind.PURGE: PURGE,
    Operation.Kind.TEMPLATE_BUILD: TEMPLATE_BUILD,
}


def specs_of(operation: Operation) -> tuple[StepSpec, ...]:
    """Return the steps that this operation needs, in reading order."""
    return tuple(s for s in WORKFLOWS[operation.kind] if s.applies(operation))


def spec_of(step: Step) -> StepSpec:
    """Return the spec that a step's row was made from."""
    return next(s for s in WORKFLOWS[step.operation.kind] if s.name == step.name)


def ready_to_start(operation: Operation, steps: list[Step]) -> list[Step]:
    """Return waiting steps whose predecessors are done; one left out never blocks."""
    present = {step.name for step in steps}
    settled = settled_names(steps)
    return [
        step
        for step in steps
        if step.state == Step.State.WAITING
        and all(
            before in settled or before not in present
            for before in _predecessors(operation, step.name, present)
        )
    ]


def _predecessors(operation: Operation, name: str, present: set[str]) -> set[str]:
    """Return the steps to wait for; one that does not apply hands on its own."""
    specs = {spec.name: spec for spec in WORKFLOWS[operation.kind]}
    wanted: set[str] = set()
    look_at = list(specs[name].after)
    while look_at:
        before = look_at.pop()
        if before in present:
            wanted.add(before)
        else:
            look_at.extend(specs[before].after)
    return wanted


def perform(step: Step) -> dict[str, Any]:
    """Run one attempt at a step; safe to repeat."""
    return spec_of(step).ensure(StepRun(step))
