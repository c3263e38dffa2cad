"""Purge: delete the clone, and verify that nothing of it is left."""

from __future__ import annotations

from pathlib import Path

from provisioner.catalog.steps.volumes import ensure_junction
from provisioner.gateways.errors import Busy
from provisioner.gateways.hosts import mounts, removal
from provisioner.gateways.hosts.rescue_archive import remove_leftovers
from provisioner.gateways.hosts.trees.run import WalkReport
from provisioner.gateways.ontap.types import Volume
from provisioner.lib.refusals import StepRefused
from provisioner.workspaces.events import clone_goes
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.steps.clients import has_mark
from provisioner.workspaces.steps.retire import GONE_WITHIN_SECONDS
from provisioner.workspaces.steps.run import WorkspaceRun
from provisioner.workspaces.steps.unsubmitted import our_volume


def ensure_reachable(run: WorkspaceRun) -> None:
    """Mount the clone at a path of its own, where a worker can empty it."""
    volume = _volume_out_of_use(run)
    if volume is not None:
        ensure_junction(
            run, volume_uuid=volume.uuid, junction_path=run.workspace.purge_path
        )


def ensure_unmounted(run: WorkspaceRun) -> None:
    """Ensure that the clone is not mounted in the SVM's namespace."""
    volume = _volume_out_of_use(run)
    if volume is not None:
        run.ontap.unmount_volume(volume.uuid)


def _volume_out_of_use(run: WorkspaceRun) -> Volume | None:
    """Return the clone, or None; a retirement has unmounted it.

    A restored older database may list as trash what was restored since.

    Raises: StepRefused if it is mounted where its owner works.
    """
    volume, workspace = our_volume(run), run.workspace
    if volume is not None and volume.junction_path == workspace.junction_path:
        raise StepRefused(
            f"The clone is mounted at {volume.junction_path}: somebody may have worked "
            "in it since it was retired. Nothing was removed. Restore the workspace, "
            "or unmount the clone if nobody needs it.",
            code="in_use_again",
        )
    return volume


def ensure_contents_removed(run: WorkspaceRun) -> None:
    """Remove the files one by one, if the site requires it."""
    workspace = run.workspace
    volume = our_volume(run)
    if volume is None or volume.junction_path != workspace.purge_path:
        return  # what is not seen there goes away with its volume
    root = run.visible_root(workspace.purge_path)

    def show(seen: WalkReport) -> None:
        run.progress("removing", done=seen.entries, unit="entries")

    report = removal.remove_contents(root, progress=show)
    run.leave_root(workspace.purge_path)
    if report.failed_count:
        named = run.keep_failures(report)
        raise StepRefused(
            f"{report.failed_count:,} entries could not be removed: {named}",
            code="removal_incomplete",
        )


def ensure_clone_deleted(run: WorkspaceRun) -> None:
    """Delete the FlexClone past the recovery queue: its work is settled.

    Raises: Busy while another feature still needs the clone.
    """
    volume = our_volume(run)
    if volume is not None:
        clone_goes.send(Workspace, workspace=run.workspace)
        run.ontap.delete_volume(volume.uuid, force=True)


def ensure_nothing_left(run: WorkspaceRun) -> None:
    """Verify that no client, volume, junction or directory is left."""
    workspace = run.workspace
    if workspace.client_name:
        found = run.perforce.clients.find(workspace.client_name)
        is_gone = found is None or not has_mark(found, workspace)
        _must_be_gone(is_gone, f"the client {workspace.client_name}")
    for stand_in in workspace.stand_ins.find_all(run.perforce):
        _must_be_gone(False, f"the client {stand_in.name}")
    _must_be_gone(
        run.ontap.find_volume(workspace.volume_name) is None,
        f"the volume {workspace.volume_name}",
    )
    for path in (workspace.path, workspace.site.path_of(workspace.purge_path)):
        mounts.wait_until_gone(path, timeout_seconds=GONE_WITHIN_SECONDS)
    _remove_half_rescues(workspace)
    with run.writing():
        Workspace.objects.filter(pk=workspace.pk).update(volume_uuid="")


def _remove_half_rescues(workspace: Workspace) -> None:
    """Remove leftovers of killed rescues: no later rescue will."""
    if workspace.site.rescue_root:
        remove_leftovers(
            Path(workspace.site.rescue_root),
            owner=workspace.owner.username,
            workspace=workspace.name,
            tag=workspace.tag.hex[:6],
            uid=workspace.uid,
            gid=workspace.gid,
        )


def _must_be_gone(is_gone: bool, what: str) -> None:
    if not is_gone:
        raise Busy(f"Still there: {what}.", system="cloneyard", operation="purge")
