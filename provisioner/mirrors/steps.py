"""How a mirror is made, and how a snapshot gets there. Each step is safe to repeat."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property

from provisioner.catalog.models import Template
from provisioner.catalog.steps.run import TemplateRun
from provisioner.catalog.steps.volumes import ensure_ours, require_online
from provisioner.engine.results import StepResult
from provisioner.gateways import registry
from provisioner.gateways.errors import AlreadyExists, Busy, OutOfSpace
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.gateways.ontap.polling import pauses
from provisioner.gateways.ontap.types import (
    MirrorVolumeSpec,
    Relationship,
    SvmPeer,
)
from provisioner.lib.refusals import StepRefused
from provisioner.lib.sizes import size_text
from provisioner.mirrors.models import Mirror, SnapshotCopy, TransferParameters

POLICY = "cloneyard"
LABEL = "cloneyard"
KEPT_AT_DESTINATION = 50


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
        return registry.ontap(self.template.site)

    @cached_property
    def copy(self) -> SnapshotCopy:
        """The copy that this operation makes."""
        parameters = TransferParameters.of(self.operation)
        return self.mirror.copies.select_related("snapshot").get(pk=parameters.copy)


@dataclass(frozen=True)
class Peered(StepResult):
    """What the destination calls the source's volume."""

    step = "peered"
    source_path: str


@dataclass(frozen=True)
class MirrorVolume(StepResult):
    """The volume that SnapMirror fills."""

    step = "volume"
    volume_uuid: str


@dataclass(frozen=True)
class Related(StepResult):
    """The relationship that fills it."""

    step = "relationship"
    relationship_uuid: str


@dataclass(frozen=True)
class Transferred(StepResult):
    """What was transferred, and how long this step was at it; 0 where it was there."""

    step = "transfer"
    bytes: int
    seconds: float


@dataclass(frozen=True)
class CopySeen(StepResult):
    """The snapshot at the destination."""

    step = "copy"
    ontap_uuid: str


def ensure_peered(run: MirrorRun) -> Peered:
    """Ensure that both SVMs are peered for SnapMirror, which administrators arrange."""
    home = run.template.site
    source_uuid = next(
        (svm.uuid for svm in run.source_ontap.list_svms() if svm.name == home.svm), ""
    )
    peer = next(
        (
            peer
            for peer in run.ontap.list_svm_peers()
            if source_uuid and peer.svm_uuid == source_uuid
        ),
        None,
    )
    if peer is None or peer.state != "peered" or not peer.has_snapmirror:
        raise StepRefused(_peering_advice(run, peer), code="mirror_not_peered")
    return Peered(f"{peer.name}:{run.template.volume_name}")


def _peering_advice(run: MirrorRun, peer: SvmPeer | None) -> str:
    """Return what is missing, and the command by which an administrator adds it."""
    here, home = run.site, run.template.site
    if peer is None:
        return (
            f"The SVM {here.svm} of {here} is not peered with {home.svm} of {home}. A "
            "storage administrator peers the clusters, then enters on the cluster of "
            f"{here}: vserver peer create -vserver {here.svm} -peer-vserver {home.svm} "
            "-peer-cluster CLUSTER -applications snapmirror. Then retry."
        )
    if not peer.has_snapmirror:
        return (
            f"The peering of {here.svm} with {peer.name} is not for SnapMirror. A "
            f"storage administrator enters on the cluster of {here}: vserver peer "
            f"modify -vserver {here.svm} -peer-vserver {peer.name} -applications "
            "snapmirror. Then retry."
        )
    verb, where = ("resume", here) if peer.state == "suspended" else ("accept", home)
    vserver, other = (here.svm, peer.name)
    if where == home:
        vserver, other = home.svm, here.svm
    return (
        f"The peering of {here.svm} with {peer.name} is {peer.state}. A storage "
        f"administrator enters on the cluster of {where}: vserver peer {verb} -vserver "
        f"{vserver} -peer-vserver {other}. Then retry."
    )


def ensure_volume(run: MirrorRun) -> MirrorVolume:
    """Ensure that the destination has the volume to fill, as large as the source."""
    mirror = run.mirror
    volume = ensure_ours(
        run,
        name=mirror.volume_name,
        comment=mirror.volume_comment,
        create=lambda: run.ontap.create_mirror_volume(
            MirrorVolumeSpec(
                name=mirror.volume_name,
                aggregate=run.site.aggregate,
                size_bytes=run.template.clone_size_bytes,
                comment=mirror.volume_comment,
            ),
            ontap_job_started=run.remember_ontap_job,
        ),
    )
    require_online(volume)
    with run.writing():
        Mirror.objects.filter(pk=mirror.pk).update(volume_uuid=volume.uuid)
    return MirrorVolume(volume.uuid)


def ensure_relationship(run: MirrorRun) -> Related:
    """Ensure that a relationship leads from the template's volume to the mirror's."""
    mirror = run.mirror
    relationship = run.ontap.find_relationship(mirror.volume_name)
    if relationship is None:
        relationship = _create_relationship(run)
    _require_usable(run, relationship)
    with run.writing():
        Mirror.objects.filter(pk=mirror.pk).update(relationship_uuid=relationship.uuid)
    return Related(relationship.uuid)


def _create_relationship(run: MirrorRun) -> Relationship:
    name = run.mirror.volume_name
    _ensure_policy(run)
    try:
        return run.ontap.create_relationship(
            name,
            source_path=run.result_of(Peered).source_path,
            policy=POLICY,
            ontap_job_started=run.remember_ontap_job,
        )
    except AlreadyExists as error:
        found = run.ontap.find_relationship(name)  # our own, before a lost reply
        if found is None:
            raise Busy(
                f"{error.sentence} ONTAP does not list it yet.",
                system=error.system,
                operation=error.operation,
                remote_code=error.remote_code,
            ) from error
        return found


def _ensure_policy(run: MirrorRun) -> None:
    """Have the policy by which the destination keeps what it has.

    Another mirror's first transfer may make it at the same moment.
    """
    if run.ontap.has_mirror_policy(POLICY):
        return
    try:
        run.ontap.create_mirror_policy(
            POLICY,
            label=LABEL,
            keep=KEPT_AT_DESTINATION,
            ontap_job_started=run.remember_ontap_job,
        )
    except AlreadyExists:
        if not run.ontap.has_mirror_policy(POLICY):
            raise


def _require_usable(run: MirrorRun, relationship: Relationship) -> None:
    """Refuse a relationship that somebody pointed elsewhere, broke off or paused.

    Raises: StepRefused.
    """
    path = f"{run.site.svm}:{run.mirror.volume_name}"
    source = relationship.source_path.partition(":")[2]
    if source != run.template.volume_name:
        raise StepRefused(
            f"SnapMirror fills {path} from {relationship.source_path}, which is not "
            "the template's volume. Nothing was changed: a storage administrator has "
            "to say what that relationship is for.",
            code="mirror_of_another_volume",
        )
    if relationship.state == "broken_off":
        raise StepRefused(
            f"The relationship to {path} was broken off. A storage administrator "
            f"enters on the cluster of {run.site}: snapmirror resync "
            f"-destination-path {path}, which throws away what was written there "
            "since. Then retry.",
            code="mirror_broken_off",
        )
    if relationship.state == "paused":
        raise StepRefused(
            f"The relationship to {path} is paused. A storage administrator enters on "
            f"the cluster of {run.site}: snapmirror resume -destination-path {path}. "
            "Then retry.",
            code="mirror_paused",
        )


def ensure_transferred(run: MirrorRun) -> Transferred:
    """Ensure that exactly this snapshot is transferred, by the first transfer too."""
    uuid = run.result_of(Related).relationship_uuid
    name = run.copy.snapshot.name
    began_at = time.monotonic()
    relationship = run.ontap.get_relationship(uuid)
    has_started = False
    for pause in pauses():
        if relationship.is_transferring:
            run.progress(
                f"{size_text(relationship.transferred_bytes)} transferred",
                done=relationship.transferred_bytes,
                unit="bytes",
            )
            time.sleep(pause)
        elif _has_arrived(run):
            break
        elif has_started:
            raise _transfer_failure(run, relationship)
        else:
            _require_usable(run, relationship)
            run.ontap.start_transfer(
                uuid,
                snapshot=name,
                throttle_kilobytes=run.mirror.throttle_kilobytes,
            )
            has_started = True
        relationship = run.ontap.get_relationship(uuid)
    return Transferred(relationship.transferred_bytes, time.monotonic() - began_at)


def _has_arrived(run: MirrorRun) -> bool:
    volume_uuid = run.result_of(MirrorVolume).volume_uuid
    found = run.ontap.find_copy(volume_uuid, name=run.copy.snapshot.name)
    return found is not None


def _transfer_failure(run: MirrorRun, relationship: Relationship) -> StepRefused:
    """Return why a transfer that we began has ended without its snapshot."""
    name, site = run.copy.snapshot.name, run.site
    if "abort" in relationship.transfer_state:
        return StepRefused(
            f"The transfer of {name} to {site} was aborted on ONTAP. Retry: it goes on "
            "from where it was.",
            code="mirror_transfer_aborted",
        )
    error = run.ontap.find_transfer_error(relationship.uuid, snapshot=name)
    cause = str(error or relationship.unhealthy_reason or "ONTAP does not say why.")
    code = "mirror_transfer_failed"
    if isinstance(error, OutOfSpace):
        code = "mirror_destination_full"
    return StepRefused(
        f"{name} could not be transferred to {site}. {cause} Retry when that is "
        "mended.",
        code=code,
    )


def ensure_copy_seen(run: MirrorRun) -> CopySeen:
    """Ensure that the destination's snapshot of that name is the one we mean."""
    name = run.copy.snapshot.name
    volume_uuid = run.result_of(MirrorVolume).volume_uuid
    found = run.ontap.find_copy(volume_uuid, name=name)
    original = run.source_ontap.find_copy(run.template.volume_uuid, name=name)
    if found is None:
        raise StepRefused(
            f"The snapshot {name} was transferred to {run.site}, and is gone there. "
            "Retry.",
            code="copy_gone",
        )
    if original is None or found.version_uuid != original.version_uuid:
        raise StepRefused(
            f"The snapshot {name} at {run.site} is not the one of {run.template.site}. "
            "Nothing is cloned from it: ask a storage administrator where it is from.",
            code="copy_of_another_snapshot",
        )
    return CopySeen(found.uuid)
