"""How a mirror becomes a template's home, and what becomes of the former one.

Each step is safe to repeat. Promotion asks nothing of the former home, which may be
lost.
"""

from __future__ import annotations

import contextlib
import copy
from dataclasses import dataclass

from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.pins import goes_in_batches, parts_of, pinned_have
from provisioner.catalog.steps.volume import define_client
from provisioner.catalog.steps.volumes import (
    ensure_junction,
    ensure_policies,
    ensure_templates_policy,
)
from provisioner.engine.results import StepResult
from provisioner.gateways import registry
from provisioner.gateways.errors import AlreadyExists, Busy, NotFound, Refused
from provisioner.gateways.ontap.polling import wait_until
from provisioner.gateways.ontap.types import Relationship, Volume
from provisioner.lib.refusals import StepRefused
from provisioner.mirrors.models import Mirror
from provisioner.mirrors.queries import AVAILABLE, next_client_number
from provisioner.mirrors.steps import filling
from provisioner.mirrors.steps.filling import MirrorRun
from provisioner.mirrors.steps.relationships import follow_transfer
from provisioner.sites.models import OpenTo
from provisioner.sites.queries import server_with_id
from provisioner.sites.replicas import server_with

RESYNC_SEEN_WITHIN_SECONDS = 10.0
NAMED = 5


@dataclass(frozen=True)
class Copied(StepResult):
    """The newest verified snapshot of the mirror, by the id of its `Snapshot`."""

    step = "copy"
    snapshot: int


@dataclass(frozen=True)
class Writable(StepResult):
    """The snapshot whose contents the volume showed when it became writable."""

    step = "break"
    exported_snapshot: str


@dataclass(frozen=True)
class Reversed(StepResult):
    """The relationship from the new home to the former one."""

    step = "relationship"
    relationship_uuid: str


@dataclass(frozen=True)
class Returned(StepResult):
    """The UUIDs of the snapshots in the former home's volume after the resync."""

    step = "rename"
    there: list[str]


# --- promotion, at the mirror's site


def ensure_copy(run: MirrorRun) -> Copied:
    """Ensure that a published snapshot is in the mirror's volume, as it arrived.

    Raises: StepRefused.
    """
    volume = _volume(run)
    there = {each.uuid for each in run.ontap.list_snapshots(volume.uuid)}
    arrived = run.mirror.snapshots.filter(
        state=AVAILABLE, ontap_uuid__in=there, snapshot__deleted_at=None
    )
    newest = arrived.order_by("-snapshot__created_at", "-snapshot__pk").first()
    if newest is None:
        raise StepRefused(
            f"The volume {volume.name} at {run.site.name} has none of the template's "
            "published snapshots. There is nothing to promote.",
            code="mirror_is_empty",
        )
    return Copied(newest.snapshot_id)


def ensure_writable(run: MirrorRun) -> Writable:
    """Break the relationship off, so that its destination becomes writable.

    What a running transfer has brought so far is dropped.

    Raises: StepRefused if ONTAP refuses; the mirror then goes on as before.
    Source: promoteMirror in NetApp Trident. "snapmirror break" of the ONTAP command
    reference describes it for mirrors, and for vaults only before a revert.
    """
    volume = _volume(run)
    relationship = run.ontap.find_relationship(volume.name)
    if relationship is None:
        if volume.is_destination:
            raise StepRefused(
                f"No relationship leads to {volume.name} at {run.site.name} any more, "
                "so it cannot be broken off. Retry the mirror, then promote it.",
                code="mirror_relationship_gone",
            )
        return Writable("")  # an earlier promotion came this far
    if relationship.transfer_uuid:
        with contextlib.suppress(NotFound, Refused):  # it has ended meanwhile
            run.ontap.abort_transfer(
                relationship.uuid, transfer_uuid=relationship.transfer_uuid
            )
    try:
        run.ontap.break_relationship(relationship.uuid)
    except Refused as error:
        run.ontap.resume_relationship(relationship.uuid)
        raise StepRefused(
            f"{error} The relationship to {volume.name} was not broken off. Nothing "
            "was changed.",
            code="mirror_not_broken_off",
        ) from error
    return Writable(relationship.exported_snapshot)


def ensure_unlinked(run: MirrorRun) -> None:
    """Delete the relationship at its destination; the former home is not asked."""
    relationship = run.ontap.find_relationship(_volume(run).name)
    if relationship is not None:
        run.ontap.end_relationship(relationship)
    with run.writing():
        # No sweep creates it again while the promotion is retried.
        Mirror.objects.filter(pk=run.mirror.pk).update(relationship_uuid="")


def ensure_client(run: MirrorRun) -> None:
    """Ensure the template's client at this site's Perforce server, with a have list.

    It is flushed to what is in the volume. Should that be something else, the next
    build finds out when it verifies the files.
    """
    template = _at_new_home(run)
    pin = _contents(run)
    define_client(run, template)
    began_at = run.step.first_started_at
    assert began_at is not None
    server = server_with(run.site.perforce_server, change=pin.change, since=began_at)
    registry.perforce(server).files.flush_towards(
        template.client_name,
        change=pin.change,
        parts=parts_of(pin),
        wanted=pinned_have(pin),
        in_batches=goes_in_batches(pin.have_count),
        watch=run.flush_watch(),
    )


def _at_new_home(run: MirrorRun) -> Template:
    """Return the template as it is once this site is its home; not to be saved."""
    template = copy.copy(run.template)
    template.client_number = next_client_number(template, run.site)
    template.site, template.routed_to = run.site, None
    return template


def _contents(run: MirrorRun) -> Snapshot:
    """Return the snapshot whose contents are in the volume."""
    exported = run.result_of(Writable).exported_snapshot
    found = run.template.snapshots.filter(name=exported).first()
    return found or Snapshot.objects.get(pk=run.result_of(Copied).snapshot)


def ensure_exported(run: MirrorRun) -> None:
    """Export the volume to workers only, as every template's."""
    ensure_policies(
        run,
        volume_uuid=run.mirror.volume_uuid,
        export_policy=ensure_templates_policy(run),
        root_mode=OpenTo.OWNER.mode,
    )


def ensure_mounted(run: MirrorRun) -> None:
    """Mount the volume where builds expect it."""
    ensure_junction(
        run,
        volume_uuid=run.mirror.volume_uuid,
        junction_path=run.template.junction_path,
    )


def ensure_named_as_home(run: MirrorRun) -> None:
    """Give the volume the name and the tag of the template's volume."""
    template = run.template
    _rename(run, name=template.volume_name, comment=template.volume_comment)


# --- the way back, at the former home


def ensure_released(run: MirrorRun) -> None:
    """Release what the former home knows of its destinations; snapshots stay."""
    run.ontap.release_all(_volume(run).name)


def ensure_common(run: MirrorRun) -> None:
    """Ensure that a resync is possible, before anything is changed.

    Raises: StepRefused without a common snapshot, or if a clone needs a later one.
    Source: "snapmirror resync" of the ONTAP command reference: it removes snapshots on
    the destination that are newer than the most recent common one.
    """
    volume = _volume(run)
    common = _newest_common(run, volume)
    if common is None:
        raise StepRefused(
            f"The volume {volume.name} at {run.site.name} has no snapshot in common "
            f"with the one at {run.template.site.name}. Give the former home up, "
            "delete it, then create the mirror again.",
            code="mirror_nothing_common",
        )
    there = run.ontap.list_snapshots(volume.uuid)
    [at] = [each.created_at for each in there if each.name == common]
    needed = [
        each.name
        for each in there
        if each.owners and at and each.created_at and each.created_at > at
    ]
    if needed:
        raise StepRefused(
            f"Clones at {run.site.name} need {', '.join(needed[:NAMED])}, which a "
            f"resync to {common} would delete. Retire and purge those workspaces, or "
            "give the former home up.",
            code="mirror_in_use",
        )


def _newest_common(run: MirrorRun, volume: Volume) -> str | None:
    """Return the name of the newest snapshot that both volumes have."""
    home = run.template.volume_uuid
    for name in run.mirror.snapshots.filter(state=AVAILABLE).values_list(
        "snapshot__name", flat=True
    ):
        here = run.ontap.find_snapshot_version(volume.uuid, name=name)
        there = run.source_ontap.find_snapshot_version(home, name=name)
        if here and there and here.version_uuid == there.version_uuid != "":
            return str(name)
    return None


def ensure_client_deleted(run: MirrorRun) -> None:
    """Delete the client with which the template was built here."""
    name = run.mirror.former_client
    client = run.perforce.clients.find(name) if name else None
    if client is not None and str(run.template.tag) in client.description:
        there = server_with_id(client.server_id, near=run.server)
        registry.perforce(there).clients.delete(
            client.name, server_id=client.server_id, as_seen=client
        )


def ensure_unmounted(run: MirrorRun) -> None:
    """Ensure that the volume has no junction path."""
    volume = _volume(run)
    if volume.junction_path:
        run.ontap.unmount_volume(volume.uuid)


def ensure_reversed(run: MirrorRun) -> Reversed:
    """Ensure a relationship from the new home to the former one.

    ONTAP reverses none whose policy takes no snapshots at the source (13304086), so it
    is another one, over a volume that is read-write.

    Raises: StepRefused if something else fills the volume.
    Source: the error table of PATCH /snapmirror/relationships; reestablishMirror in
    NetApp Trident.
    """
    volume, path = _volume(run), run.result_of(filling.Peered).source_path
    relationship = run.ontap.find_relationship(volume.name)
    if relationship is None:
        relationship = filling.create_relationship(run, volume.name)
    if relationship.source_path != path:
        raise StepRefused(
            f"SnapMirror fills {volume.name} at {run.site.name} from "
            f"{relationship.source_path}, not from {path}. Nothing was changed. Ask a "
            "storage administrator what that relationship is for.",
            code="mirror_of_another_volume",
        )
    with run.writing():
        Mirror.objects.filter(pk=run.mirror.pk).update(
            relationship_uuid=relationship.uuid
        )
    return Reversed(relationship.uuid)


def ensure_resynced(run: MirrorRun) -> None:
    """Resync the former home's volume, which makes it a destination.

    Raises: StepRefused with ONTAP's reason.
    """
    uuid = run.result_of(Reversed).relationship_uuid
    relationship = run.ontap.get_relationship(uuid)
    if relationship.state == "broken_off" and not relationship.transfer_uuid:
        run.ontap.resync_relationship(uuid)
        relationship = _begun(run, uuid)
    if relationship.transfer_uuid:
        follow_transfer(run, uuid, relationship.transfer_uuid)
        relationship = run.ontap.get_relationship(uuid)
    if relationship.state != "snapmirrored":
        raise StepRefused(
            f"The resync to {run.site.name} failed. {relationship.unhealthy_reason} "
            "The volume there was not changed.",
            code="mirror_not_resynced",
        )


def _begun(run: MirrorRun, uuid: str) -> Relationship:
    """Return the relationship once it shows its resync."""

    def look() -> Relationship | None:
        found = run.ontap.get_relationship(uuid)
        is_over = found.state == "snapmirrored" or not found.is_healthy
        return found if found.transfer_uuid or is_over else None

    found = wait_until(look, limit_seconds=RESYNC_SEEN_WITHIN_SECONDS)
    if found is None:
        raise Busy(
            "ONTAP does not show the resync yet.", system="ontap", operation="resync"
        )
    return found


def ensure_named_as_mirror(run: MirrorRun) -> Returned:
    """Give the volume the name and the tag of the mirror."""
    mirror = run.mirror
    _rename(run, name=mirror.name_as_mirror, comment=mirror.comment_as_mirror)
    there = run.ontap.list_snapshots(mirror.volume_uuid)
    return Returned([snapshot.uuid for snapshot in there])


# --- shared


def _volume(run: MirrorRun) -> Volume:
    """Return the mirror's volume, by its UUID: the steps change its name.

    Raises: StepRefused if it is gone, or is neither the mirror's nor the template's.
    """
    mirror = run.mirror
    try:
        volume = run.ontap.get_volume(mirror.volume_uuid)
    except NotFound as error:
        raise StepRefused(
            f"The volume {mirror.volume_name} at {run.site.name} is gone.",
            code="volume_lost",
        ) from error
    is_ours = mirror.is_tagged(volume.comment) or run.template.is_tagged(volume.comment)
    if not is_ours and volume.comment != mirror.comment_as_mirror:
        raise StepRefused(
            f"The volume {volume.name} at {run.site.name} does not have our tag. It "
            "was not changed.",
            code="volume_name_taken",
        )
    return volume


def _rename(run: MirrorRun, *, name: str, comment: str) -> None:
    """Rename the mirror's volume.

    Raises: StepRefused if another volume has the name.
    """
    volume = _volume(run)
    if (volume.name, volume.comment) == (name, comment):
        return
    try:
        run.ontap.rename_volume(volume.uuid, name=name, comment=comment)
    except AlreadyExists as error:
        raise StepRefused(
            f"A volume named {name} exists at {run.site.name}. Rename or delete it, "
            "then try again.",
            code="volume_name_taken",
        ) from error
