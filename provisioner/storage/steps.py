"""How a clone becomes independent of its snapshot. Each step is safe to repeat."""

from __future__ import annotations

import time
from dataclasses import dataclass

from provisioner.catalog.steps.volumes import limits_in_our_words
from provisioner.engine.results import StepResult
from provisioner.gateways.errors import Busy, PermanentGatewayError
from provisioner.gateways.ontap.polling import pauses
from provisioner.gateways.ontap.types import CloneSplit
from provisioner.lib import clocks
from provisioner.lib.names import same_tag
from provisioner.lib.refusals import StepRefused
from provisioner.lib.sizes import size_text
from provisioner.storage.models import Split
from provisioner.storage.obstacles import room_of
from provisioner.workspaces.steps.run import WorkspaceRun

STALLED_AFTER_SECONDS = 600.0


@dataclass(frozen=True)
class SplitPlan(StepResult):
    """What ONTAP says that the split copies at most."""

    step = "room"
    estimate_bytes: int


@dataclass(frozen=True)
class Copied(StepResult):
    """How long the split took, from its first attempt on."""

    step = "split"
    seconds: float


@dataclass(frozen=True)
class Stopped(StepResult):
    """What the volume is after a split was stopped: it may have ended before."""

    step = "stop"
    is_clone: bool


def ensure_room(run: WorkspaceRun) -> SplitPlan:
    """Check the clone, and that the aggregate has room for what a split copies.

    Raises: StepRefused.
    """
    split = our_split(run)
    if split.is_clone is False:
        return SplitPlan(0)
    if split.state != "online":
        raise StepRefused(
            f"The volume {split.name} is {split.state or 'not online'}. ONTAP splits "
            "only volumes that are online. Bring it online, then split it again.",
            code="clone_offline",
        )
    if split.is_mirrored:
        raise StepRefused(
            f"The volume {split.name} is the source of a SnapMirror relationship, "
            "which ONTAP does not split. A storage administrator deletes and releases "
            "that relationship first.",
            code="clone_mirrored",
        )
    estimate = split.estimate_bytes or 0
    aggregate = run.ontap.get_volume(run.workspace.volume_uuid).aggregate
    room = room_of(run.workspace, available_bytes=_available(run, aggregate))
    if room is not None and estimate >= room:
        raise StepRefused(
            f"The split would copy up to {size_text(estimate)}, but the aggregate "
            f"{aggregate} has room for {size_text(room)}. Free space there, "
            "or ask a storage administrator for more. Then split it again.",
            code="no_room_to_split",
        )
    with run.writing():
        Split.objects.filter(operation=run.operation).update(estimate_bytes=estimate)
    return SplitPlan(estimate)


def _available(run: WorkspaceRun, aggregate: str) -> int | None:
    """Return the free bytes of the aggregate; None if our account may not ask."""
    try:
        return run.ontap.get_aggregate(aggregate).available_bytes
    except PermanentGatewayError:
        return None


def ensure_split(run: WorkspaceRun) -> Copied:
    """Split the clone, and follow it to its end.

    A split that is under way, as after a worker was killed, is followed.

    Raises: StepRefused (stopped in ONTAP, no space), Busy after ten minutes without
    progress. It goes on, and is followed again.
    """
    estimate = run.result_of(SplitPlan).estimate_bytes
    our_split(run)
    with limits_in_our_words():
        split = run.ontap.start_clone_split(run.workspace.volume_uuid)
    moved_at, moved = time.monotonic(), -1
    for pause in pauses():
        if split.is_clone is False:
            break
        if split.is_clone and not split.is_running:
            raise StepRefused(
                f"The split of {split.name} was stopped in ONTAP. What was copied "
                f"stays copied. Split it again to continue.",
                code="split_stopped",
            )
        percent = split.percent or 0
        if percent != moved:
            moved_at, moved = time.monotonic(), percent
        elif time.monotonic() - moved_at > STALLED_AFTER_SECONDS:
            raise Busy(
                f"The split of {split.name} has stood still at {percent} %. The volume "
                f"is {split.state or 'not online'}.",
                system="ontap",
                operation="volume clone split",
            )
        done = estimate * percent // 100
        run.progress(
            f"{percent} %, {size_text(done)} of {size_text(estimate)}",
            done=done,
            total=estimate,
            unit="bytes",
            figures={"percent": percent},
        )
        time.sleep(pause)
        split = our_split(run)
    began_at = run.step.first_started_at
    assert began_at is not None
    return Copied((clocks.database_now() - began_at).total_seconds())


def ensure_independent(run: WorkspaceRun) -> None:
    """Verify that the volume is ours, and no clone any more.

    Raises: StepRefused.
    """
    split = our_split(run)
    if split.is_clone is not False:
        raise StepRefused(
            f"ONTAP does not say that {split.name} is independent. It still counts as "
            "a clone of its snapshot. Split it again.",
            code="split_unproven",
        )


def ensure_stopped(run: WorkspaceRun) -> Stopped:
    """Stop the split in ONTAP."""
    our_split(run)
    split = run.ontap.stop_clone_split(run.workspace.volume_uuid)
    return Stopped(split.is_clone is not False)


def our_split(run: WorkspaceRun) -> CloneSplit:
    """Return how far the split of the workspace's volume is.

    Raises: StepRefused if the volume does not have our tag.
    """
    workspace = run.workspace
    split = run.ontap.get_clone_split(workspace.volume_uuid)
    if not same_tag(split.comment, workspace.volume_comment):
        raise StepRefused(
            f"The volume {split.name} is not the clone we made (its comment differs); "
            "nothing was changed.",
            code="volume_is_not_ours",
        )
    return split
