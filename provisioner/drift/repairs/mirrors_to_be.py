"""The row that adoption would write for a mirror missing from the database.

Its volume has the tag and the copies, its relationship the template's volume and the
policy. When transfers started, and how fast they were, nothing says.
"""

from __future__ import annotations

import uuid
from typing import Any

from django.db import IntegrityError, transaction

from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.catalog.models import Template
from provisioner.drift.comparison.facts import tag_of_volume
from provisioner.drift.repairs.evidence import CannotRepair
from provisioner.gateways import registry
from provisioner.gateways.ontap.types import Volume
from provisioner.lib import clocks
from provisioner.mirrors.models import (
    MOST_KEPT,
    POLICY_PREFIX,
    Mirror,
    MirroredSnapshot,
)
from provisioner.sites.models import Site


def mirror_to_be(volume: Volume, *, site: Site) -> Mirror:
    """Return the mirror that a tagged volume belonged to, as its relationship says.

    Raises: CannotRepair with what is missing, GatewayError.
    """
    tag = tag_of_volume(volume)
    assert tag is not None
    relationship = registry.ontap(site).find_relationship(volume.name)
    if relationship is None:
        raise CannotRepair(
            f"No SnapMirror relationship fills {volume.name}, so nothing says which "
            "template it mirrors. If nobody needs it, unmount it and delete it in "
            "ONTAP."
        )
    template = _template_of(relationship.source_path)
    kept = relationship.policy.removeprefix(POLICY_PREFIX)
    mirror = Mirror(
        template=template,
        site=site,
        name=f"{template.name} at {site.name}",
        tag=uuid.UUID(tag[1]),
        volume_uuid=volume.uuid,
        relationship_uuid=relationship.uuid,
        state=Mirror.State.READY,
    )
    if kept.isdigit() and 1 <= int(kept) <= MOST_KEPT:
        mirror.keep = int(kept)
    if mirror.volume_name != volume.name:
        raise CannotRepair(
            f"The volume {volume.name} is not named {mirror.volume_name}, as the "
            f"mirror of {template.name} was. Rename it, then adopt it."
        )
    if Mirror.objects.filter(template=template, site=site).exists():
        raise CannotRepair(
            f"{template.name} has another mirror at {site.name} by now. Delete that "
            f"one, then adopt {volume.name}."
        )
    return mirror


def _template_of(source_path: str) -> Template:
    """Return the template whose volume is at the source of a relationship."""
    svm, _, name = source_path.partition(":")
    templates = Template.objects.select_related("site")
    found = [each for each in templates if each.volume_name == name]
    # A peer may have another name here than its SVM has at home.
    found.sort(key=lambda template: template.site.svm != svm)
    if not found:
        raise CannotRepair(
            f"It mirrors {source_path}, which is no volume of a template in this "
            "database. Adopt the template first, if it is one of this installation."
        )
    return found[0]


def facts_of_mirror(mirror: Mirror) -> dict[str, Any]:
    """Return the preview of a mirror's adoption."""
    return {
        "mirror": mirror.name,
        "template": mirror.template.name,
        "home": mirror.template.site.name,
        "keep": mirror.keep,
    }


def write_mirror(mirror: Mirror, *, by: User | None) -> str:
    """Write its row, and those of copies that are proven; return the result.

    Raises: CannotRepair, GatewayError.
    """
    copies = _proven_copies(mirror)
    try:
        with transaction.atomic():
            mirror.save(force_insert=True)
            MirroredSnapshot.objects.bulk_create(copies)
            record_event(
                mirror,
                kind="mirror_adopted",
                message=f"Adopted from the volume {mirror.volume_name}, which was "
                "missing from the database. When its transfers started and how fast "
                "they were is not known: check its settings.",
                actor=by,
            )
    except IntegrityError:
        raise CannotRepair(
            f"A mirror of {mirror.template.name} was written at the same time. "
            "Nothing was done here. Check again."
        ) from None
    return (
        f"It is the mirror {mirror.name} again, with {len(copies)} of its snapshots. "
        "Check its settings."
    )


def _proven_copies(mirror: Mirror) -> list[MirroredSnapshot]:
    """Return rows of the snapshots there that have the version of those at home."""
    here, home = registry.ontap(mirror.site), registry.ontap(mirror.template.site)
    rows = []
    for snapshot in mirror.template.snapshots.there():
        copy = here.find_snapshot_version(mirror.volume_uuid, name=snapshot.name)
        original = home.find_snapshot_version(
            mirror.template.volume_uuid, name=snapshot.name
        )
        if copy is None or original is None or not copy.version_uuid:
            continue
        if copy.version_uuid == original.version_uuid:
            rows.append(
                MirroredSnapshot(
                    mirror=mirror,
                    snapshot=snapshot,
                    ontap_uuid=copy.uuid,
                    state=MirroredSnapshot.State.AVAILABLE,
                    arrived_at=clocks.database_now(),
                )
            )
    return rows
