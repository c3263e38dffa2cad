"""How a mirror is created, filled and deleted. Each step is safe to repeat."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from provisioner.catalog.models import Template
from provisioner.catalog.steps.run import TemplateRun
from provisioner.catalog.steps.volumes import (
    ensure_junction,
    ensure_ours,
    ensure_templates_policy,
    require_online,
    require_ours,
)
from provisioner.engine.results import StepResult
from provisioner.gateways import registry
from provisioner.gateways.errors import InUse, OutOfSpace
from provisioner.gateways.hosts.file_digests import FileDigest, differing_files
from provisioner.gateways.ontap.errors import refusal
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.gateways.ontap.types import (
    MirrorVolumeSpec,
    Relationship,
    SnapshotVersion,
    Transfer,
    Volume,
)
from provisioner.lib.refusals import StepRefused
from provisioner.mirrors import advice
from provisioner.mirrors.models import Mirror, MirroredSnapshot, TransferParameters
from provisioner.mirrors.queries import has_clones
from provisioner.mirrors.steps import prerequisites, relationships
from provisioner.mirrors.steps.relationships import (
    busy,
    ensure_policy,
    follow_transfer,
)
from provisioner.sites.models import Site


class MirrorRun(TemplateRun):
    """One attempt at one step of a mirror. Its site is the destination."""

    @property
    def mirror(self) -> Mirror:
        mirror: Mirror = self.operation.subject.mirror
        return mirror

    @property
    def template(self) -> Template:
        return self.mirror.template

    @cached_property
    def source_ontap(self) -> OntapGateway:
        """The gateway to the SVM of the template's site."""
        return registry.ontap(self.template.site)

    @cached_property
    def mirrored(self) -> MirroredSnapshot:
        """The snapshot that this operation transfers."""
        pk = TransferParameters.of(self.operation).mirrored
        return self.mirror.snapshots.select_related("snapshot").get(pk=pk)


@dataclass(frozen=True)
class Peered(StepResult):
    """The template's volume as the destination names it: "svm:volume"."""

    step = "peered"
    source_path: str


@dataclass(frozen=True)
class MirrorVolume(StepResult):
    """The volume that SnapMirror fills."""

    step = "volume"
    volume_uuid: str


@dataclass(frozen=True)
class Related(StepResult):
    """The relationship that fills the volume."""

    step = "relationship"
    relationship_uuid: str


@dataclass(frozen=True)
class Transferred(StepResult):
    """A transfer. `bytes` and `seconds` are 0 if the snapshot was already there."""

    step = "transfer"
    bytes: int
    seconds: float


@dataclass(frozen=True)
class Arrived(StepResult):
    """The snapshot at the destination, and the UUIDs of all snapshots there."""

    step = "arrival"
    ontap_uuid: str
    there: list[str]


@dataclass(frozen=True)
class Shown(StepResult):
    """Whether the destination shows the files of the snapshot that was transferred."""

    step = "show"
    is_shown: bool


@dataclass(frozen=True)
class Compared(StepResult):
    """How many files of the copy equal those that were published."""

    step = "compare"
    files: int


def ensure_peered(run: MirrorRun) -> Peered:
    """Ensure that both SVMs are peered for SnapMirror.

    Raises: StepRefused with what a storage administrator has to do, and where.
    """
    svm = peered_svm(run, home=run.template.site)
    return Peered(f"{svm}:{run.template.volume_name}")


def peered_svm(run: MirrorRun, *, home: Site) -> str:
    """Return the SVM of `home` as the destination names it.

    Raises: StepRefused if it is not peered for SnapMirror.
    """
    svms = [svm.uuid for svm in run.source_ontap.list_svms() if svm.name == home.svm]
    return prerequisites.peered_svm(run.ontap, here=run.site, home=home, home_svms=svms)


def ensure_volume(run: MirrorRun) -> MirrorVolume:
    """Ensure the destination volume, as large as the template's.

    Raises: StepRefused (before it is created: no license, no room).
    """
    mirror = run.mirror
    volume = ensure_ours(
        run,
        name=mirror.volume_name,
        comment=mirror.volume_comment,
        create=lambda: _create_volume(run),
    )
    require_online(volume)
    with run.writing():
        Mirror.objects.filter(pk=mirror.pk).update(
            volume_uuid=volume.uuid, aggregate=volume.aggregate
        )
    return MirrorVolume(volume.uuid)


def _create_volume(run: MirrorRun) -> Volume:
    mirror, site = run.mirror, run.site
    prerequisites.require_license(run.ontap, site)
    prerequisites.require_license(run.source_ontap, run.template.site)
    source = run.source_ontap.get_volume(run.template.volume_uuid)
    aggregate = prerequisites.aggregate_with_room(
        run.ontap, site, source, chosen=mirror.chosen_aggregate
    )
    return run.ontap.create_mirror_volume(
        MirrorVolumeSpec(
            name=mirror.volume_name,
            aggregate=aggregate,
            size_bytes=source.size_bytes,
            comment=mirror.volume_comment,
            export_policy=ensure_templates_policy(run),
        )
    )


def ensure_relationship(run: MirrorRun) -> Related:
    """Ensure a relationship from the template's volume to the mirror's.

    One with another of our policies gets that of the mirror. A policy that is not ours
    is left alone, and refused.
    """
    mirror = run.mirror
    relationship = run.ontap.find_relationship(mirror.volume_name)
    if relationship is not None and _is_of_former_home(run, relationship):
        run.ontap.end_relationship(relationship)
        relationship = None
    if relationship is None:
        relationship = create_relationship(run, mirror.volume_name)
    trouble = _trouble_of(run, relationship)
    if trouble and trouble.code == advice.ANOTHER_OF_OUR_POLICIES:
        ensure_policy(run, mirror.policy_name, keep=mirror.keep)
        run.ontap.set_policy(relationship.uuid, policy=mirror.policy_name)
        relationship = run.ontap.get_relationship(relationship.uuid)
    _require_usable(run, relationship)
    with run.writing():
        Mirror.objects.filter(pk=mirror.pk).update(relationship_uuid=relationship.uuid)
    return Related(relationship.uuid)


def _is_of_former_home(run: MirrorRun, relationship: Relationship) -> bool:
    """Return whether it is our own, from before another mirror became the home."""
    is_ours = relationship.uuid == run.mirror.relationship_uuid
    has_moved = Mirror.with_deleted.filter(
        template=run.template, state=Mirror.State.PROMOTED
    ).exists()
    from_home = relationship.source_path == run.result_of(Peered).source_path
    return is_ours and has_moved and not from_home


def create_relationship(run: MirrorRun, name: str) -> Relationship:
    """Create the relationship from the template's volume to one of this name here."""
    return relationships.create_relationship(
        run,
        name,
        source_path=run.result_of(Peered).source_path,
        policy=run.mirror.policy_name,
        keep=run.mirror.keep,
    )


def _require_usable(run: MirrorRun, relationship: Relationship) -> None:
    """Refuse a relationship that somebody changed, broke off or paused.

    Raises: StepRefused.
    """
    trouble = _trouble_of(run, relationship)
    if trouble is not None:
        raise StepRefused(trouble.sentence, code=trouble.code)


def _trouble_of(run: MirrorRun, relationship: Relationship) -> advice.Trouble | None:
    return advice.on_relationship(
        run.mirror, relationship, source_path=run.result_of(Peered).source_path
    )


def ensure_transferred(run: MirrorRun) -> Transferred:
    """Ensure that exactly this snapshot is transferred, also as the first one.

    A transfer that is under way, as after a worker was killed, is followed. What comes
    and goes, such as the network between the sites, is tried again.

    Raises: Busy, StepRefused.
    """
    name = run.mirrored.snapshot.name
    original = run.source_ontap.find_snapshot_version(
        run.template.volume_uuid, name=name
    )
    if original is None:
        raise StepRefused(
            f"The template's volume no longer has the snapshot {name}. Transfer a "
            "newer one.",
            code="snapshot_gone",
        )
    if _version_there(run) is not None:
        return Transferred(0, 0.0)
    uuid = run.result_of(Related).relationship_uuid
    relationship = run.ontap.get_relationship(uuid)
    _require_usable(run, relationship)
    transfer_uuid = relationship.transfer_uuid or run.ontap.start_transfer(
        uuid, snapshot=name, throttle_kilobytes=run.mirror.throttle_kilobytes
    )
    ended = follow_transfer(run, uuid, transfer_uuid)
    if _version_there(run) is None:
        raise _failure(run, ended)
    return Transferred(ended.bytes if ended else 0, run.seconds)


def _version_there(run: MirrorRun) -> SnapshotVersion | None:
    return run.ontap.find_snapshot_version(
        run.result_of(MirrorVolume).volume_uuid, name=run.mirrored.snapshot.name
    )


def _failure(run: MirrorRun, ended: Transfer | None) -> Exception:
    """Return why a transfer ended without our snapshot."""
    name, site = run.mirrored.snapshot.name, run.site.name
    if ended is None or (ended.snapshot and ended.snapshot != name):
        return busy(f"Another transfer to {site} has ended; {name} is next.")
    if "abort" in ended.state:
        return StepRefused(
            f"The transfer of {name} to {site} was aborted in ONTAP. Retry: it "
            "continues where it stopped.",
            code="mirror_transfer_aborted",
        )
    error = refusal("transfer", code=ended.error_code, message=ended.error_message)
    if isinstance(error, OutOfSpace):
        return StepRefused(
            f"The volume {run.mirror.volume_path} has no room for {name}. {error} A "
            "storage administrator enlarges it or frees space. Then retry.",
            code="mirror_destination_full",
        )
    return busy(f"The transfer of {name} to {site} failed. {error}")


def ensure_arrived(run: MirrorRun) -> Arrived:
    """Ensure that the snapshot at the destination has the contents of the original.

    Raises: StepRefused.
    """
    name, volume_uuid = run.mirrored.snapshot.name, run.result_of(MirrorVolume)
    found = _version_there(run)
    if found is None:
        raise StepRefused(
            f"The snapshot {name} was transferred to {run.site.name}, and is gone "
            "there. Retry.",
            code="mirrored_snapshot_gone",
        )
    original = run.source_ontap.find_snapshot_version(
        run.template.volume_uuid, name=name
    )
    if original is None or "" in (found.version_uuid, original.version_uuid):
        raise StepRefused(
            f"ONTAP does not say whether {name} at {run.site.name} has the contents of "
            f"the one at {run.template.site.name}. Nothing is cloned from it.",
            code="mirrored_snapshot_unproven",
        )
    if found.version_uuid != original.version_uuid:
        raise StepRefused(
            f"The snapshot {name} at {run.site.name} is not the one at "
            f"{run.template.site.name}. Nothing is cloned from it. Ask a storage "
            "administrator where it came from.",
            code="mirrored_snapshot_differs",
        )
    there = run.ontap.list_snapshots(volume_uuid.volume_uuid)
    return Arrived(found.uuid, [snapshot.uuid for snapshot in there])


def ensure_shown(run: MirrorRun) -> Shown:
    """Mount the mirror's volume only for the workers of its site.

    It shows one snapshot. That is not ours where that arrived before a newer one.
    """
    found = run.ontap.get_relationship(run.result_of(Related).relationship_uuid)
    if found.exported_snapshot != run.mirrored.snapshot.name:
        return Shown(False)
    ensure_junction(
        run,
        volume_uuid=run.result_of(MirrorVolume).volume_uuid,
        junction_path=run.mirror.junction_path,
    )
    return Shown(True)


def ensure_equal(run: MirrorRun) -> Compared:
    """Compare a sample of the copy's files with what was published.

    Raises: StepRefused with the files that differ.
    """
    if not run.result_of(Shown).is_shown:
        return Compared(0)
    snapshot, junction_path = run.mirrored.snapshot, run.mirror.junction_path
    expected = [FileDigest(**each) for each in snapshot.sample]
    differing = differing_files(run.visible_root(junction_path), expected)
    run.leave_root(junction_path)
    if differing:
        shown = ", ".join(differing[:10])
        raise StepRefused(
            f"{len(differing)} of {len(expected)} files of {snapshot.name} at "
            f"{run.site.name} differ from what was published: {shown}. Nothing is "
            "cloned from it. Compare them with the template's snapshot. If the copy is "
            "wrong, delete the mirror and create it again.",
            code="mirrored_snapshot_altered",
        )
    return Compared(len(expected))


def ensure_hidden(run: MirrorRun) -> None:
    """Unmount the mirror's volume again."""
    run.ontap.unmount_volume(run.result_of(MirrorVolume).volume_uuid)


# --- deletion


def ensure_no_clones(run: MirrorRun) -> None:
    """Ensure that no workspace at the site is a clone of the mirror.

    Raises: StepRefused.
    """
    if has_clones(run.mirror):
        raise StepRefused(
            f"Workspaces at {run.site.name} are clones of this mirror. Retire and "
            "purge them, then delete it again.",
            code="mirror_in_use",
        )


def ensure_relationship_deleted(run: MirrorRun) -> None:
    """Delete the relationship at its destination, and release it at its source.

    A running transfer is aborted first.
    """
    mirror = run.mirror
    found = run.ontap.find_relationship(mirror.volume_name)
    uuid = found.uuid if found is not None else mirror.relationship_uuid
    if found is not None:
        run.ontap.end_relationship(found)
    if uuid:
        run.source_ontap.release_relationship(uuid)
    with run.writing():
        # From here on no sweep transfers to it, whatever becomes of the volume.
        Mirror.with_deleted.filter(pk=mirror.pk).update(relationship_uuid="")


def ensure_volume_deleted(run: MirrorRun) -> None:
    """Delete the mirror's volume.

    Raises: StepRefused (others cloned it, or it is not ours).
    """
    mirror = run.mirror
    volume = run.ontap.find_volume(mirror.volume_name)
    if volume is None:
        return
    require_ours(volume, comment=mirror.volume_comment)
    if volume.junction_path:
        run.ontap.unmount_volume(volume.uuid)
    try:
        run.ontap.delete_volume(volume.uuid, force=True)
    except InUse as error:
        raise StepRefused(
            f"{error} Somebody cloned the mirror's volume. Delete those clones in "
            "ONTAP, then delete the mirror again.",
            code="mirror_in_use",
        ) from error
