"""How a workspace is copied to another site. Each step is safe to repeat.

A SnapMirror of a FlexClone sends all of it. So the destination is a FlexClone of the
template's volume there, of the same snapshot; the relationship between the two is
resynchronized, and continues from the snapshot that both share.

Source: https://docs.netapp.com/us-en/ontap-cli/snapmirror-resync.html (it continues
from the newest common snapshot, and makes a writable destination read-only);
create_snap_mirror_relationship of netapp-dataops-traditional (between clones of both
ends, by POST /api/snapmirror/relationships and PATCH of the state); FlexClone
limitations in data-protection/limitations-mirror-relationships of NetAppDocs/ontap.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from functools import cached_property

from provisioner.catalog.models import Template
from provisioner.catalog.snapshot_comments import MIRROR_LABEL
from provisioner.catalog.steps.volumes import (
    ensure_ours,
    require_online,
    require_ours,
)
from provisioner.copies.models import (
    KEPT_AT_SITE,
    CopiedSnapshot,
    CopyParameters,
    WorkspaceCopy,
)
from provisioner.copies.queries import has_base, last_arrived
from provisioner.engine.results import StepResult
from provisioner.gateways import registry
from provisioner.gateways.errors import AlreadyExists, InUse, NotFound
from provisioner.gateways.ontap.errors import refusal
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.gateways.ontap.polling import wait_until
from provisioner.gateways.ontap.types import (
    CloneSpec,
    Relationship,
    SnapshotVersion,
    Transfer,
)
from provisioner.lib import clocks
from provisioner.lib.refusals import StepRefused
from provisioner.mirrors.models import Mirror
from provisioner.mirrors.queries import parent_volume
from provisioner.mirrors.steps.filling import MirrorRun, peered_svm
from provisioner.mirrors.steps.relationships import (
    busy,
    create_relationship,
    follow_transfer,
)
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.steps.recording import read_client

RESYNC_WITHIN_SECONDS = 60.0
POLICY = f"cloneyard-copy-{KEPT_AT_SITE}"


class CopyRun(MirrorRun):
    """One attempt at one step of a copy. Its site is the destination."""

    @property
    def copy(self) -> WorkspaceCopy:
        copy: WorkspaceCopy = self.operation.subject.workspacecopy
        return copy

    @property
    def workspace(self) -> Workspace:
        return self.copy.workspace

    @property
    def template(self) -> Template:
        return self.workspace.template

    @cached_property
    def throttle_kilobytes(self) -> int:
        """The throttle of the mirror at one of both ends; 0 if there is none."""
        ends = (self.site, self.workspace.site)
        mirrors = Mirror.objects.filter(template=self.template, site__in=ends)
        found = mirrors.values_list("throttle_kilobytes", flat=True).first()
        return found or 0

    @cached_property
    def source_ontap(self) -> OntapGateway:
        """The gateway to the SVM of the workspace's site."""
        return registry.ontap(self.workspace.site)

    @cached_property
    def copied(self) -> CopiedSnapshot:
        """The snapshot that this operation transfers."""
        return self.copy.snapshots.get(pk=CopyParameters.of(self.operation).copied)


@dataclass(frozen=True)
class Paired(StepResult):
    """The workspace's volume as the destination names it: "svm:volume"."""

    step = "peered"
    source_path: str


@dataclass(frozen=True)
class CopyVolume(StepResult):
    """The clone of the template's volume there that SnapMirror continues."""

    step = "volume"
    volume_uuid: str


@dataclass(frozen=True)
class Resynchronized(StepResult):
    """The relationship from the workspace's clone to the copy's."""

    step = "relationship"
    relationship_uuid: str


@dataclass(frozen=True)
class Copied(StepResult):
    """A transfer. `bytes` and `seconds` are 0 if the snapshot was already there."""

    step = "transfer"
    bytes: int
    seconds: float


def ensure_paired(run: CopyRun) -> Paired:
    """Ensure that both SVMs are peered for SnapMirror.

    Raises: StepRefused with what a storage administrator has to do, and where.
    """
    svm = peered_svm(run, home=run.workspace.site)
    return Paired(f"{svm}:{run.workspace.volume_name}")


def ensure_volume(run: CopyRun) -> CopyVolume:
    """Ensure a clone there of the snapshot that the workspace is a clone of.

    Raises: StepRefused.
    """
    copy, snapshot = run.copy, run.workspace.snapshot
    if not copy.volume_uuid and not has_base(copy):
        raise StepRefused(
            f"The snapshot {snapshot.name} is not at {run.site.name}. Transfer it to "
            "the mirror there.",
            code="snapshot_not_at_site",
        )
    volume = ensure_ours(
        run,
        name=copy.volume_name,
        comment=copy.volume_comment,
        create=lambda: run.ontap.create_clone(
            CloneSpec(
                name=copy.volume_name,
                parent_volume=parent_volume(snapshot, run.site),
                parent_snapshot=snapshot.name,
                comment=copy.volume_comment,
                uid=None,
                gid=None,
            )
        ),
    )
    require_online(volume)
    with run.writing():
        WorkspaceCopy.objects.filter(pk=copy.pk).update(volume_uuid=volume.uuid)
    return CopyVolume(volume.uuid)


def ensure_relationship(run: CopyRun) -> Resynchronized:
    """Ensure a relationship that continues from the snapshot both clones share.

    Until the row knows the relationship nobody has worked in the destination, so it may
    be resynchronized; afterwards a broken one is left to people.

    Raises: StepRefused, Busy while it is being resynchronized.
    """
    copy = run.copy
    found = run.ontap.find_relationship(copy.volume_name) or _create(run)
    if found.state == "broken_off" and not copy.relationship_uuid:
        _require_common_snapshot(run)
        if not found.transfer_uuid:
            run.ontap.resync_relationship(found.uuid)
        found = _until_resynchronized(run, found.uuid)
    _require_usable(run, found)
    with run.writing():
        WorkspaceCopy.objects.filter(pk=copy.pk).update(relationship_uuid=found.uuid)
    return Resynchronized(found.uuid)


def _create(run: CopyRun) -> Relationship:
    name = run.copy.volume_name
    if run.copy.relationship_uuid:
        # Without it nothing is known of the volume: it may be made again.
        raise StepRefused(
            f"No SnapMirror relationship leads to {run.copy.volume_path} any more. "
            "Delete the copy: another one is made.",
            code="copy_relationship_gone",
        )
    return create_relationship(
        run,
        name,
        source_path=run.result_of(Paired).source_path,
        policy=POLICY,
        keep=KEPT_AT_SITE,
    )


def _require_common_snapshot(run: CopyRun) -> None:
    """Refuse to resynchronize clones of different snapshots.

    Raises: StepRefused.
    """
    name, volume = run.workspace.snapshot.name, run.result_of(CopyVolume)
    there = run.ontap.find_snapshot_version(volume.volume_uuid, name=name)
    here = _version_here(run, name)
    if there is None or here is None or there.version_uuid != here.version_uuid:
        raise StepRefused(
            f"The workspace and its copy at {run.site.name} do not share the snapshot "
            f"{name}, so all of it would be sent. Delete the copy, or transfer the "
            "snapshot to the mirror again.",
            code="copy_without_common_snapshot",
        )


def _until_resynchronized(run: CopyRun, uuid: str) -> Relationship:
    """Return the relationship once it is resynchronized; no data is sent for that.

    Raises: Busy.
    """

    def look() -> Relationship | None:
        found = run.ontap.get_relationship(uuid)
        return None if found.transfer_uuid else found

    found = wait_until(look, limit_seconds=RESYNC_WITHIN_SECONDS)
    if found is None:
        raise busy("The relationship is still being resynchronized.")
    if found.state == "broken_off":
        raise busy(f"The relationship was not resynchronized. {found.unhealthy_reason}")
    return found


def _require_usable(run: CopyRun, relationship: Relationship) -> None:
    """Refuse a relationship that somebody changed, broke off or paused.

    Raises: StepRefused.
    """
    path, site = run.copy.volume_path, run.site.name
    if relationship.source_path.partition(":")[2] != run.workspace.volume_name:
        raise StepRefused(
            f"SnapMirror fills {path} from {relationship.source_path}, not from the "
            "workspace's clone. Nothing was changed. Ask a storage administrator what "
            "that relationship is for.",
            code="copy_of_another_volume",
        )
    remedy = {"broken_off": "resync", "paused": "resume"}.get(relationship.state)
    if remedy is not None:
        raise StepRefused(
            f"The relationship to {path} is {relationship.state.replace('_', ' ')}. A "
            f"storage administrator enters on the cluster of {site}: snapmirror "
            f"{remedy} -destination-path {path}.",
            code=f"copy_{relationship.state}",
        )


def ensure_snapshot(run: CopyRun) -> None:
    """Ensure the snapshot of the workspace's clone; earlier ones of ours go.

    The one that arrived last stays, since SnapMirror continues from it.
    """
    copied, volume_uuid = run.copied, run.workspace.volume_uuid
    if copied.taken_at is None:
        with contextlib.suppress(AlreadyExists):  # our own, before a lost reply
            run.source_ontap.create_snapshot(
                volume_uuid,
                name=copied.name,
                comment=run.copy.volume_comment,
                label=MIRROR_LABEL,
            )
        with run.writing():
            CopiedSnapshot.objects.filter(pk=copied.pk).update(
                taken_at=clocks.database_now()
            )
    last = last_arrived(run.copy)
    _prune(run, keep={copied.name, last.name if last else copied.name})


def _prune(run: CopyRun, *, keep: set[str]) -> None:
    for snapshot in run.source_ontap.list_snapshots(run.workspace.volume_uuid):
        ours = snapshot.comment == run.copy.volume_comment
        if ours and snapshot.name not in keep:
            run.source_ontap.delete_snapshot(
                run.workspace.volume_uuid, snapshot_uuid=snapshot.uuid
            )


def ensure_recorded(run: CopyRun) -> None:
    """Record what is opened and what was synced, unless nobody used the client since.

    Raises: StepRefused.
    """
    known = read_client(run.workspace, before=last_arrived(run.copy))
    with run.writing():
        CopiedSnapshot.objects.filter(pk=run.copied.pk).update(**known)


def ensure_transferred(run: CopyRun) -> Copied:
    """Ensure that exactly this snapshot is transferred, and is the original there.

    Raises: Busy, StepRefused.
    """
    name = run.copied.name
    original = _version_here(run, name)
    if original is None:
        raise StepRefused(
            f"The snapshot {name} of the workspace is gone. The next transfer takes "
            "another one.",
            code="copied_snapshot_gone",
        )
    found, ended = _version_there(run), None
    if found is None:
        uuid = run.result_of(Resynchronized).relationship_uuid
        relationship = run.ontap.get_relationship(uuid)
        _require_usable(run, relationship)
        transfer_uuid = relationship.transfer_uuid or run.ontap.start_transfer(
            uuid,
            snapshot=name,
            throttle_kilobytes=run.throttle_kilobytes,
        )
        ended = follow_transfer(run, uuid, transfer_uuid)
        found = _version_there(run)
    if found is None:
        raise _failure(run, ended)
    if not found.version_uuid or found.version_uuid != original.version_uuid:
        raise StepRefused(
            f"The snapshot {name} at {run.site.name} is not proven to be the "
            "workspace's. Nothing is restored from it.",
            code="copied_snapshot_unproven",
        )
    return Copied(ended.bytes if ended else 0, run.seconds if ended else 0.0)


def _failure(run: CopyRun, ended: Transfer | None) -> Exception:
    """Return why a transfer ended without our snapshot."""
    name, site = run.copied.name, run.site.name
    if ended is None or (ended.snapshot and ended.snapshot != name):
        return busy(f"Another transfer to {site} has ended; {name} is next.")
    if "abort" in ended.state:
        return StepRefused(
            f"The transfer to {site} was aborted in ONTAP.",
            code="copy_transfer_aborted",
        )
    error = refusal("transfer", code=ended.error_code, message=ended.error_message)
    return busy(f"The transfer to {site} failed. {error}")


def _version_here(run: CopyRun, name: str) -> SnapshotVersion | None:
    return run.source_ontap.find_snapshot_version(run.workspace.volume_uuid, name=name)


def _version_there(run: CopyRun) -> SnapshotVersion | None:
    return run.ontap.find_snapshot_version(
        run.result_of(CopyVolume).volume_uuid, name=run.copied.name
    )


def ensure_pruned(run: CopyRun) -> None:
    """Delete the workspace's snapshots of earlier transfers."""
    _prune(run, keep={run.copied.name})


# --- deletion


def ensure_relationship_deleted(run: CopyRun) -> None:
    """Delete the relationship at its destination, and release it at its source."""
    copy = run.copy
    found = run.ontap.find_relationship(copy.volume_name)
    uuid = found.uuid if found is not None else copy.relationship_uuid
    if found is not None:
        run.ontap.end_relationship(found)
    if uuid:
        run.source_ontap.release_relationship(uuid)
    with run.writing():
        WorkspaceCopy.with_deleted.filter(pk=copy.pk).update(
            relationship_uuid="", is_released=True
        )


def ensure_snapshots_deleted(run: CopyRun) -> None:
    """Delete the workspace's snapshots that were taken for the copy."""
    if run.workspace.volume_uuid:
        try:
            _prune(run, keep=set())
        except NotFound:
            return  # the workspace's clone is gone, and they with it


def ensure_volume_deleted(run: CopyRun) -> None:
    """Delete the copy's volume.

    Raises: StepRefused (it has clones, or it is not ours).
    """
    copy = run.copy
    volume = run.ontap.find_volume(copy.volume_name)
    if volume is None:
        return
    require_ours(volume, comment=copy.volume_comment)
    try:
        run.ontap.delete_volume(volume.uuid, force=True)
    except InUse as error:
        raise StepRefused(
            f"{error} It stays until the workspaces that were restored from it are "
            "purged.",
            code="copy_in_use",
        ) from error
