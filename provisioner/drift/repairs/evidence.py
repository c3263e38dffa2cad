"""What a repair is based on: the current row and the current remote state."""

from __future__ import annotations

from dataclasses import replace

from provisioner.catalog.models import Template
from provisioner.copies.models import WorkspaceCopy
from provisioner.drift.comparison.facts import tag_of_client, tag_of_volume
from provisioner.drift.models import Finding
from provisioner.engine.models import Operation
from provisioner.gateways import registry
from provisioner.gateways.errors import NotFound
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.gateways.ontap.types import Volume
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.types import ClientSpec
from provisioner.mirrors.models import Mirror
from provisioner.sites.queries import server_with_id
from provisioner.workspaces.models import Workspace

GONE = "The difference was gone."


class CannotRepair(Exception):
    """The situation has changed since the finding. The text says how."""


def resting_row(finding: Finding) -> Workspace | Template | None:
    """Return the current workspace or template of a finding, None if it has none.

    Raises: CannotRepair while an operation is under way.
    """
    row = resting_row_or_mirror(finding)
    assert not isinstance(row, Mirror | WorkspaceCopy)
    return row


def resting_row_or_mirror(
    finding: Finding,
) -> Workspace | Template | Mirror | WorkspaceCopy | None:
    """Return the finding's current row, None if it has none.

    Raises: CannotRepair while an operation is under way.
    """
    row: Workspace | Template | Mirror | WorkspaceCopy | None = None
    if finding.workspace_id is not None:
        row = Workspace.objects.select_related(
            "site__perforce_server", "template", "snapshot__template"
        ).get(pk=finding.workspace_id)
    elif finding.template_id is not None:
        row = Template.with_deleted.select_related("site__perforce_server").get(
            pk=finding.template_id
        )
    elif finding.mirror_id is not None:
        row = Mirror.with_deleted.select_related("template__site", "site").get(
            pk=finding.mirror_id
        )
    elif finding.copy_id is not None:
        row = WorkspaceCopy.with_deleted.select_related(
            "workspace__site", "workspace__snapshot__template", "site"
        ).get(pk=finding.copy_id)
    if row and row.operations.filter(state=Operation.State.RUNNING).exists():
        raise CannotRepair("An operation is running on it. Try again later.")
    return row


def workspace_in(finding: Finding, *allowed: Workspace.State) -> Workspace:
    """Return the finding's workspace.

    Raises: CannotRepair if its state has changed.
    """
    row = resting_row(finding)
    assert isinstance(row, Workspace)
    if row.state not in allowed:
        raise CannotRepair(f"The workspace is {row.get_state_display().lower()} now.")
    return row


def find_volume(finding: Finding) -> Volume | None:
    """Return the finding's volume, whatever its tag is; None if it is gone."""
    try:
        return registry.ontap(finding.site).get_volume(finding.external_id)
    except NotFound:
        return None


def without_hidden_parent(ontap: OntapGateway, volume: Volume) -> Volume:
    """Return a clone without its parent where ONTAP has hidden that.

    Once its parent's volume was moved, it names a temporary volume that no list has.
    Source: https://docs.netapp.com/us-en/ontap/volumes/recommendations-moving-concept.html
    """
    parent = volume.clone_parent
    if parent is None or ontap.find_volume(parent.volume_name) is not None:
        return volume
    return replace(volume, clone_parent=None)


def volume_now(finding: Finding) -> Volume | None:
    """Return the finding's volume if it still exists with our tag.

    Raises: CannotRepair if it has another tag now.
    """
    volume = find_volume(finding)
    if volume is None:
        return None
    row = finding.row
    tag = tag_of_volume(volume)
    if row is None:
        has_its_tag = tag == (finding.tag_kind, str(finding.tag))
    else:
        has_its_tag = tag is not None and row.is_tagged(volume.comment)
    if not has_its_tag:
        raise CannotRepair(f"The volume {volume.name} no longer has our tag.")
    return volume


def perforce_of(finding: Finding, client: ClientSpec) -> PerforceGateway:
    """Return the gateway to the server that a client is bound to, or the site's."""
    near = finding.site.perforce_server
    return registry.perforce(server_with_id(client.server_id, near=near))


def client_now(finding: Finding) -> ClientSpec | None:
    """Return the finding's client if it still exists and is described as ours.

    Found by a list: naming it would refresh its Access date.

    Raises: CannotRepair if it has another tag now.
    """
    perforce = registry.perforce(finding.site.perforce_server)
    for client in perforce.clients.find_all(name_filter=finding.subject):
        if client.name == finding.subject:
            if tag_of_client(client) is None:
                raise CannotRepair(f"The client {client.name} is not ours any more.")
            return client
    return None
