"""Repairs of mirrors: their volumes, relationships and snapshots.

Each returns how it was resolved.
"""

from __future__ import annotations

import contextlib

from django.db import transaction
from django.db.models import Q, QuerySet

from provisioner.copies.actions import begin_deletion
from provisioner.copies.models import WorkspaceCopy
from provisioner.copies.refusals import CopyBusy
from provisioner.drift.models import Finding
from provisioner.drift.repairs.evidence import (
    GONE,
    CannotRepair,
    resting_row_or_mirror,
    volume_now,
)
from provisioner.drift.repairs.storage import require_no_clones
from provisioner.gateways import registry
from provisioner.gateways.errors import GatewayError
from provisioner.gateways.ontap.types import Relationship
from provisioner.mirrors.actions import mirror_retry
from provisioner.mirrors.models import Mirror
from provisioner.mirrors.states import mark_gone, mark_missing, set_mirror_state
from provisioner.sites.models import Site


def remove_volume(finding: Finding) -> str:
    """Delete a volume of no mirror or copy, after the relationship that fills it.

    Raises: CannotRepair (it has clones, or a row owns it now).
    """
    assert finding.tag is not None
    if Mirror.objects.filter(tag=finding.tag).exists():
        raise CannotRepair("Its tag belongs to a mirror now.")
    if WorkspaceCopy.objects.filter(tag=finding.tag).exists():
        raise CannotRepair("Its tag belongs to a copy now.")
    volume = volume_now(finding)
    if volume is None:
        return GONE
    ontap = registry.ontap(finding.site)
    require_no_clones(ontap, volume)
    said = f"The volume {volume.name} was deleted."
    relationship = ontap.find_relationship(volume.name)
    if relationship is not None:
        ontap.end_relationship(relationship)
        homes = Site.objects.filter(
            Q(templates__mirrors__tag=finding.tag)
            | Q(workspaces__copies__tag=finding.tag)
        )
        said += _release(relationship, site=finding.site, homes=homes.distinct())
    if volume.junction_path:
        ontap.unmount_volume(volume.uuid)
    ontap.delete_volume(volume.uuid, force=False)
    return said


def _release(relationship: Relationship, *, site: Site, homes: QuerySet[Site]) -> str:
    """Release a relationship at its source; return what is left to do, or ""."""
    source_svm = relationship.source_path.partition(":")[0]
    # The name of a peer is usually that of its SVM. A wrong one knows no such UUID.
    sources = homes or Site.objects.filter(svm=source_svm).exclude(pk=site.pk)
    is_released = False
    for source in sources:
        with contextlib.suppress(GatewayError):
            registry.ontap(source).release_relationship(relationship.uuid)
            is_released = True
    if is_released:
        return ""
    return (
        f" The relationship could not be released at its source. A storage "
        f"administrator enters on the cluster of {source_svm}: snapmirror release "
        f"-destination-path {relationship.destination_path}."
    )


def create_again(finding: Finding) -> str:
    """Retry a mirror whose volume or relationship is gone: both are created again.

    Raises: CannotRepair, NotAllowed.
    """
    mirror = resting_row_or_mirror(finding)
    assert isinstance(mirror, Mirror)
    assert finding.asked_by is not None
    ontap = registry.ontap(finding.site)
    volume = ontap.find_volume(mirror.volume_name)
    is_there = volume is not None and mirror.is_tagged(volume.comment)
    if is_there and ontap.find_relationship(mirror.volume_name) is not None:
        return GONE
    if volume is not None and not is_there:
        raise CannotRepair(
            f"Another volume is named {volume.name} at {mirror.site.name}. Rename it, "
            "or delete the mirror."
        )
    with transaction.atomic():
        if not is_there:
            mark_gone(mirror)
        if mirror.state == Mirror.State.READY:
            set_mirror_state(
                mirror,
                Mirror.State.FAILED,
                code="mirror_relationship_gone" if is_there else "volume_lost",
                message=finding.sentence,
            )
        mirror_retry(by=finding.asked_by, mirror=mirror)
    return "The mirror is being created again."


def copy_again(finding: Finding) -> str:
    """Delete a copy whose volume or relationship is gone; a sweep makes another one.

    Raises: CannotRepair.
    """
    copy = resting_row_or_mirror(finding)
    assert isinstance(copy, WorkspaceCopy)
    assert finding.asked_by is not None
    ontap = registry.ontap(finding.site)
    volume = ontap.find_volume(copy.volume_name)
    if volume is not None and ontap.find_relationship(copy.volume_name) is not None:
        return GONE
    try:
        begin_deletion(by=finding.asked_by, copy=copy)
    except CopyBusy as refusal:
        raise CannotRepair(refusal.sentence) from refusal
    return "The copy is being deleted. Another one is made within minutes."


def mark_snapshots_gone(finding: Finding) -> str:
    """Mark the snapshots of a mirror as gone that its volume does not have."""
    mirror = resting_row_or_mirror(finding)
    assert isinstance(mirror, Mirror)
    there = registry.ontap(finding.site).list_snapshots(finding.volume_uuid)
    uuids = {snapshot.uuid for snapshot in there}
    if finding.external_id in uuids:
        return GONE
    mark_missing(mirror, there=uuids)
    return f"The snapshot {finding.snapshot} was marked as gone at {mirror.site.name}."
