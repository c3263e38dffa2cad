"""Build the rows that adoption would write, for its preview and for itself.

ONTAP and Perforce hold enough: the tag identifies the row; the volume shows its parent
snapshot, path, uid and purpose; the client its owner. The rest (shares, lease, token)
starts over. Nothing is written here, and nothing refreshes a client's Access date.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet

from provisioner.accounts.models import User
from provisioner.catalog.models import Quality, Snapshot, Template
from provisioner.catalog.snapshot_comments import build_number_of, mark_of
from provisioner.drift.comparison.facts import (
    CLIENT_FILTER,
    purpose_of_volume,
    tag_of_volume,
)
from provisioner.drift.repairs.evidence import CannotRepair
from provisioner.gateways import registry
from provisioner.gateways.ontap.types import Volume, VolumeSnapshot
from provisioner.gateways.perforce.standins import SUFFIX as STAND_IN_SUFFIX
from provisioner.gateways.perforce.types import ClientSpec
from provisioner.leases import queries as lease_queries
from provisioner.leases.actions.leases import end_of_first_lease
from provisioner.lib import clocks
from provisioner.mirrors.models import Mirror, MirroredSnapshot
from provisioner.sites.models import Site
from provisioner.sites.queries import server_with_id
from provisioner.workspaces.marks import ANOTHER_NAME, mark_in, new_mark
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.purposes import CLIENT_TYPES

NAMES_TRIED = 50


@dataclass(frozen=True, kw_only=True)
class WorkspaceToBe:
    """An unsaved workspace, perhaps with an unsaved snapshot.

    `missing` says what it lacks, or "".
    """

    workspace: Workspace
    client: ClientSpec | None
    missing: str

    @property
    def facts(self) -> dict[str, Any]:
        """Return its sentence for a preview."""
        row = self.workspace
        lease = row.expires_at and (row.expires_at - clocks.database_now())
        return {
            "name": row.name,
            "owner": row.owner.username,
            "purpose": row.get_purpose_display(),
            "template": row.template.name,
            "snapshot": row.snapshot.name,
            "change": row.snapshot.change,
            "state": row.get_state_display(),
            "missing": self.missing,
            "client": row.client_name,
            "path": str(row.path),
            "lease_seconds": round(lease.total_seconds()) if lease else None,
        }


def clients_at(site: Site) -> list[ClientSpec]:
    """Return the clients that may be ours, without naming any."""
    return registry.perforce(site.perforce_server).clients.find_all(
        name_filter=CLIENT_FILTER
    )


def workspace_to_be(
    volume: Volume, *, site: Site, clients: Sequence[ClientSpec]
) -> WorkspaceToBe:
    """Return the workspace that a volume with our tag was.

    Raises: CannotRepair with what is missing, GatewayError.
    """
    tag = tag_of_volume(volume)
    if tag is None or tag[0] != "workspace":
        raise CannotRepair("Only volumes of workspaces can be adopted.")
    workspace = _named_like(volume, site=site, tag=uuid.UUID(tag[1]))
    client = _client_of(workspace, volume, clients=clients)
    _give_to(workspace, volume, client=client)
    workspace.snapshot = _parent_of(volume, workspace)
    _begin(workspace, missing := _what_is_missing(workspace, volume, client=client))
    give_a_free_name(workspace)
    return WorkspaceToBe(workspace=workspace, client=client, missing=missing)


def _named_like(volume: Volume, *, site: Site, tag: uuid.UUID) -> Workspace:
    """Return the workspace that the volume's name and parent imply."""
    name = re.fullmatch(rf"cy_(.+)_w{tag.hex[:6]}", volume.name)
    if name is None:
        raise CannotRepair(
            f"The volume {volume.name} does not have a name of Cloneyard's form. "
            "Rename it as it was, then adopt it."
        )
    if volume.clone_parent is None:
        raise CannotRepair(
            f"The volume {volume.name} was split from its template: nothing says of "
            "which snapshot it is."
        )
    parent = {"site": site, "volume_uuid": volume.clone_parent.volume_uuid}
    mirrored = Mirror.objects.filter(**parent).values("template")
    template = Template.objects.filter(Q(**parent) | Q(pk__in=mirrored)).first()
    if template is None:
        raise CannotRepair(
            f"No template here has the volume {volume.clone_parent.volume_name}, of "
            "which it is a clone: adopt that one first, then this."
        )
    made_as = name[1].replace("_", "-")
    purpose = purpose_of_volume(volume)
    if purpose not in Workspace.Purpose.values:
        purpose = Workspace.Purpose.DEVELOPMENT
    return Workspace(
        site=site,
        template=template,
        tag=tag,
        name=made_as,
        remote_name=made_as,
        volume_uuid=volume.uuid,
        volume_size_bytes=volume.size_bytes,
        purpose=purpose,
        client_type=CLIENT_TYPES.get(purpose, ""),
    )


def _client_of(
    workspace: Workspace, volume: Volume, *, clients: Sequence[ClientSpec]
) -> ClientSpec | None:
    """Return the client whose description has its tag.

    Raises: CannotRepair if its name differs, since its work would be lost.
    """
    if not workspace.client_name:
        return None
    described = [
        client
        for client in clients
        if str(workspace.tag) in client.description
        and not re.search(rf"{STAND_IN_SUFFIX}\Z", client.name)
    ]
    for client in described:
        suffix = client.name.removeprefix(workspace.client_name)
        if not suffix or re.fullmatch(ANOTHER_NAME, suffix):
            workspace.client_suffix = suffix
            workspace.client_mark = mark_in(client.description) or new_mark()
            near = workspace.site.perforce_server
            bound_to = server_with_id(client.server_id, near=near)
            workspace.routed_to = bound_to if bound_to != near else None
            return client
    if not described:
        return None
    other, wanted = described[0].name, workspace.client_name
    agrees = volume.junction_path == workspace.junction_path
    what_to_do = (
        f"name that client {wanted} again"
        if agrees
        else f"name the client {wanted}, or the volume as it was"
    )
    raise CannotRepair(
        f"The client with its tag is named {other}, which does not match the volume "
        f"{volume.name}: {what_to_do}, then adopt the workspace."
    )


def _give_to(
    workspace: Workspace, volume: Volume, *, client: ClientSpec | None
) -> None:
    """Find the owner: that of the client, else of the files."""
    people = User.objects.filter(is_active=True)
    owner = None
    if client is not None:
        named = Q(p4_user=client.owner) | Q(p4_user="", username=client.owner)
        owner = _one_of(people.filter(named), of=f"the Perforce name {client.owner}")
        if owner is None and User.objects.filter(named).exists():
            raise CannotRepair(
                f"The account of {client.owner} is not active: activate it, then adopt "
                "the workspace."
            )
        _require_their_files(owner, volume, client=client)
    if owner is None and volume.uid:
        owner = _one_of(people.filter(uid=volume.uid), of=f"the uid {volume.uid}")
    if owner is None:
        raise CannotRepair(
            f"Nobody here has the Perforce name {client.owner if client else 'of it'} "
            f"or the uid {volume.uid}: make that account, then adopt it."
        )
    uid, gid = volume.uid or owner.uid, volume.gid or owner.gid
    if not uid or not gid:
        raise CannotRepair(f"Neither its files nor {owner} have a uid and a gid.")
    workspace.owner, workspace.uid, workspace.gid = owner, uid, gid
    workspace.p4_user = client.owner if client else owner.perforce_name


def _require_their_files(
    owner: User | None, volume: Volume, *, client: ClientSpec
) -> None:
    """Refuse if the files are somebody else's: anybody can define a client.

    Raises: CannotRepair.
    """
    if owner is None or not volume.uid or owner.uid == volume.uid:
        return
    others = User.objects.filter(uid=volume.uid).exclude(pk=owner.pk)
    other = others.order_by("username").first()
    if other is not None:
        raise CannotRepair(
            f"The client {client.name} is {owner}'s, but the files are {other}'s (uid "
            f"{volume.uid}). Find out whose it is and set the client's Owner, then "
            f"adopt it."
        )


def _one_of(people: QuerySet[User], *, of: str) -> User | None:
    """Return the account if there is exactly one, else None."""
    found = list(people.order_by("username")[:2])
    if len(found) > 1:
        raise CannotRepair(
            f"{found[0]} and {found[1]} both have {of}: one account must have it "
            "before the workspace can be adopted."
        )
    return found[0] if found else None


def _parent_of(volume: Volume, workspace: Workspace) -> Snapshot:
    """Return the row of its parent snapshot, or one to be saved.

    Such a one is never the default: whether its tests passed is not known.
    """
    parent, template = volume.clone_parent, workspace.template
    assert parent is not None
    if template.site != workspace.site:
        return _mirrored_parent_of(volume, site=workspace.site)
    seen = registry.ontap(template.site).find_snapshot(
        parent.volume_uuid, name=parent.snapshot_name
    )
    if seen is None:
        raise CannotRepair(f"The snapshot {parent.snapshot_name} is not one of ours.")
    return snapshot_to_be(template, seen)


def _mirrored_parent_of(volume: Volume, *, site: Site) -> Snapshot:
    """Return the row of the mirrored snapshot that a volume is a clone of."""
    parent = volume.clone_parent
    assert parent is not None
    mirrored = MirroredSnapshot.objects.select_related("snapshot").filter(
        mirror__site=site,
        mirror__volume_uuid=parent.volume_uuid,
        snapshot__name=parent.snapshot_name,
    )
    row = mirrored.first()
    if row is None:
        raise CannotRepair(
            f"The database does not know that {parent.snapshot_name} is at "
            f"{site.name}. Transfer it to the mirror there, which records it, then "
            "adopt the workspace."
        )
    return row.snapshot


def snapshot_to_be(template: Template, seen: VolumeSnapshot) -> Snapshot:
    """Return the row of a snapshot.

    An unknown one is unsaved and has no pin. The contents of a snapshot without our
    mark are unknown, so it is never offered.

    Raises: CannotRepair.
    """
    known = template.snapshots.filter(name=seen.name).first()
    if known is not None and known.ontap_uuid == seen.uuid:
        return known
    if known is not None:
        raise CannotRepair(
            f"The snapshot {seen.name} is not the one that the database has by that "
            "name."
        )
    if build_number_of(seen.name) is None:
        raise CannotRepair(
            f"The snapshot {seen.name} does not have a name of Cloneyard's form."
        )
    mark = mark_of(seen.comment)
    if mark is not None and mark.tree != template.volume_comment:
        mark = None
    snapshot = Snapshot(
        template=template,
        name=seen.name,
        ontap_uuid=seen.uuid,
        change=int(seen.name[1:].partition(".")[0]),
        quality=Quality.FAILED,
        remarks=["It was adopted: whether its tests passed is unknown."],
        deleted_at=clocks.database_now(),
    )
    if mark is not None:
        snapshot.change = mark.change
        snapshot.is_complete = mark.parts == 0
        if snapshot.is_complete:
            snapshot.deleted_at = None
        snapshot.have_count, snapshot.have_digest = mark.have_count, mark.have_digest
    return snapshot


def facts_of_snapshot(snapshot: Snapshot) -> dict[str, Any]:
    """Return the preview of a snapshot's adoption."""
    return {
        "template": snapshot.template.name,
        "snapshot": snapshot.name,
        "change": snapshot.change,
        "files": snapshot.have_count,
        "is_offered": snapshot.is_there,
    }


def _what_is_missing(
    workspace: Workspace, volume: Volume, *, client: ClientSpec | None
) -> str:
    missing = []
    if volume.junction_path != workspace.junction_path:
        missing.append(f"it is not mounted at {workspace.junction_path}")
    if volume.export_policy == workspace.site.frozen_policy:
        missing.append("a retirement had closed it to its owner's hosts")
    if client is None and workspace.client_name:
        missing.append(f"its client {workspace.client_name} is gone")
    return " and ".join(missing)


def _begin(workspace: Workspace, missing: str) -> None:
    """Set its state and its first lease."""
    now = clocks.database_now()
    policy = lease_queries.policy_for(workspace.template, workspace.purpose)
    workspace.expires_at = end_of_first_lease(
        by=workspace.owner, policy=policy, lease_seconds=None, now=now
    )
    workspace.state, workspace.ready_at = Workspace.State.READY, now
    if missing:
        workspace.state, workspace.failed_at = Workspace.State.FAILED, now
        workspace.status_code = "adopted_in_part"
        workspace.status_message = (
            f"It was adopted, but {missing}. “Retry” creates it. Retiring rescues "
            "what can be found."
        )


def give_a_free_name(workspace: Workspace) -> None:
    """Restore its name, or the next similar name that is free."""
    there = Workspace.objects.filter(site=workspace.site).there()
    taken = set(
        there.filter(name__startswith=workspace.name).values_list("name", flat=True)
    )
    names = [workspace.name, *(f"{workspace.name}-{n}" for n in range(2, NAMES_TRIED))]
    free = next((name for name in names if name not in taken), None)
    if free is None:
        raise CannotRepair(
            f"{NAMES_TRIED - 1} workspaces are called like {workspace.name}: rename or "
            "retire one, then adopt it."
        )
    workspace.name = free
    if workspace.name == workspace.remote_name:
        workspace.remote_name = ""
