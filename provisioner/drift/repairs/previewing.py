"""What adoption would write, saved with the finding: pages make no remote calls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from provisioner.catalog.models import Template
from provisioner.drift.comparison.facts import SeenStorage, tag_of_volume
from provisioner.drift.models import Finding
from provisioner.drift.repairs.evidence import CannotRepair
from provisioner.drift.repairs.mirrors_to_be import facts_of_mirror, mirror_to_be
from provisioner.drift.repairs.rows_to_be import (
    clients_at,
    facts_of_snapshot,
    snapshot_to_be,
    workspace_to_be,
)
from provisioner.drift.repairs.templates_to_be import (
    facts_of_template,
    template_to_be,
)
from provisioner.gateways.errors import GatewayError
from provisioner.gateways.perforce.types import ClientSpec
from provisioner.sites.models import Site

Kind = Finding.Kind


def note_rows_to_be(
    findings: Iterable[Finding], *, site: Site, seen: SeenStorage
) -> None:
    """Add the row that adoption would write to each finding, or why it would not.

    A Perforce server that does not answer proves nothing; mirrors need none.
    """
    adoptable = [finding for finding in findings if _is_adoptable(finding)]
    if not adoptable:
        return
    clients, unreachable = list[ClientSpec](), ""
    if not all(finding.is_of_mirror for finding in adoptable):
        clients, unreachable = _clients_there(site)
    for finding in adoptable:
        noted: dict[str, Any] = {"obstacle": unreachable}
        if finding.is_of_mirror or not unreachable:
            try:
                row = _row_to_be(finding, site=site, seen=seen, clients=clients)
                noted = {"row": row}
            except (CannotRepair, GatewayError) as error:
                noted = {"obstacle": str(error)}
        finding.details |= noted


def _clients_there(site: Site) -> tuple[list[ClientSpec], str]:
    """Return the clients that may be ours, or why that is unknown."""
    try:
        return clients_at(site), ""
    except GatewayError as error:
        return [], error.sentence


def _is_adoptable(finding: Finding) -> bool:
    """Return whether adoption would write a new row."""
    return finding.action == Finding.Action.ADOPT and (
        finding.kind == Kind.SNAPSHOT_WITHOUT_ROW
        or (
            finding.workspace_id is None
            and finding.template_id is None
            and finding.mirror_id is None
            and finding.copy_id is None
        )
    )


def _row_to_be(
    finding: Finding,
    *,
    site: Site,
    seen: SeenStorage,
    clients: Sequence[ClientSpec],
) -> dict[str, Any]:
    if finding.kind == Kind.VOLUME_WITHOUT_ROW:
        [volume] = [v for v in seen.volumes if v.uuid == finding.external_id]
        tag = tag_of_volume(volume)
        if tag is not None and tag[0] == "template":
            template = template_to_be(volume, site=site, clients=clients)
            return facts_of_template(template)
        if tag is not None and tag[0] == "mirror":
            return facts_of_mirror(mirror_to_be(volume, site=site))
        return workspace_to_be(volume, site=site, clients=clients).facts
    assert finding.template_id is not None
    template = Template.with_deleted.get(pk=finding.template_id)
    there = seen.snapshots[finding.volume_uuid]
    [snapshot] = [s for s in there if s.uuid == finding.external_id]
    return facts_of_snapshot(snapshot_to_be(template, snapshot))
