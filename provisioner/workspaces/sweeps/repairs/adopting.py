"""Making a row again of what an older backup of the database does not know.

The far sides say enough: the tag names the row, the volume its parent snapshot, its
path and its uid, the client its owner and its files. What they do not say (shares,
lease, token, purpose) begins anew, and the event says so. Nothing is changed at ONTAP
or in Perforce: whoever wants the workspace gone retires it, with its look and rescue.
"""

from __future__ import annotations

import re
import uuid

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet

from provisioner.accounts.models import User
from provisioner.gateways import registry
from provisioner.gateways.ontap.types import Volume, VolumeSnapshot
from provisioner.gateways.perforce.specs import render_client_spec
from provisioner.gateways.perforce.types import ClientSpec
from provisioner.workspaces import clocks, leases, states
from provisioner.workspaces.actions.leases import end_of_first_lease
from provisioner.workspaces.models import (
    Finding,
    Quality,
    Site,
    Snapshot,
    Template,
    Workspace,
)
from provisioner.workspaces.snapshot_marks import (
    SnapshotMark,
    build_number_of,
    go_on_after,
    mark_of,
)
from provisioner.workspaces.sweeps.repairs.looking import (
    GONE,
    CannotRepair,
    resting_row,
    volume_now,
)

_TAG = re.compile(r"cloneyard:v1:workspace=([0-9a-f-]{36})")
NAMES_TRIED = 50


def adopt_workspace(finding: Finding) -> str:
    """Make a row of a volume that carries the tag of a workspace nobody knows.

    Safe to repeat, and safe against a second click: the tag is unique.

    Raises: CannotRepair with what is missing, GatewayError.
    """
    volume = volume_now(finding)
    if volume is None:
        return GONE
    match = _TAG.fullmatch(volume.comment)
    if match is None:
        raise CannotRepair("Only volumes of workspaces can be adopted.")
    tag = uuid.UUID(match[1])
    if Workspace.objects.filter(tag=tag).exists():
        return "Its workspace is known by now."
    workspace = _row_of(finding.site, volume, tag=tag)
    client = _client_of(workspace)
    _give_to(workspace, volume, client=client)
    workspace.snapshot = _snapshot_of(workspace, volume, client=client)
    return _adopted(workspace, volume, client=client, by=finding.asked_by)


def _row_of(site: Site, volume: Volume, *, tag: uuid.UUID) -> Workspace:
    """Return what name and parent of the volume say of its workspace."""
    name = re.fullmatch(rf"cy_(.+)_w{tag.hex[:6]}", volume.name)
    if name is None:
        raise CannotRepair(
            f"The volume {volume.name} has no name that Cloneyard gives: name it as it "
            "was, then adopt it."
        )
    if volume.clone_parent is None:
        raise CannotRepair(
            f"The volume {volume.name} was split from its template: nothing says of "
            "which snapshot it is."
        )
    template = Template.objects.filter(
        site=site, volume_uuid=volume.clone_parent.volume_uuid
    ).first()
    if template is None:
        raise CannotRepair(
            f"No template here has the volume {volume.clone_parent.volume_name}, of "
            "which it is a clone: that is newer than the database, too. Nothing of it "
            "is removed; copy what is needed from the volume."
        )
    made_as = name[1].replace("_", "-")
    return Workspace(
        site=site,
        template=template,
        tag=tag,
        name=made_as,
        remote_name=made_as,
        volume_uuid=volume.uuid,
        purpose=Workspace.Purpose.DEVELOPMENT,
    )


def _client_of(workspace: Workspace) -> ClientSpec | None:
    """Return its client, where that still is there and described as its."""
    perforce = registry.perforce(workspace.site.perforce_server)
    client = perforce.find_client(workspace.client_name)
    if client is None or str(workspace.tag) not in client.description:
        return None
    return client


def _give_to(
    workspace: Workspace, volume: Volume, *, client: ClientSpec | None
) -> None:
    """Find whose it is: the owner of the client, else of the files."""
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
    if client is not None and client.type not in ("", "writeable"):
        workspace.client_type = client.type


def _one_of(people: QuerySet[User], *, of: str) -> User | None:
    """Return the one account, None where there is none."""
    found = list(people.order_by("username")[:2])
    if len(found) > 1:
        raise CannotRepair(
            f"{found[0]} and {found[1]} both have {of}: it has to be one account's, "
            "then adopt the workspace."
        )
    return found[0] if found else None


def _snapshot_of(
    workspace: Workspace, volume: Volume, *, client: ClientSpec | None
) -> Snapshot:
    """Return the row of its parent snapshot; one that nobody knows is adopted, too.

    Nobody gets that one without choosing it: whether its test had passed is not known.
    """
    parent = volume.clone_parent
    assert parent is not None
    seen = registry.ontap(workspace.site).find_snapshot(
        parent.volume_uuid, name=parent.snapshot_name
    )
    if seen is None:
        raise CannotRepair(f"The snapshot {parent.snapshot_name} is not one of ours.")
    return _row_of_snapshot(workspace.template, seen, client=client)


def adopt_snapshot(finding: Finding) -> str:
    """Make a row of a published snapshot that nobody knows. Safe to repeat.

    Raises: CannotRepair with what is missing, GatewayError.
    """
    template = resting_row(finding)
    assert isinstance(template, Template)
    seen = registry.ontap(finding.site).find_snapshot(
        finding.details["volume_uuid"], name=finding.details["snapshot"]
    )
    if seen is None or seen.uuid != finding.external_id:
        return GONE
    snapshot = _row_of_snapshot(template, seen, client=None)
    if not snapshot._state.adding:
        return "It is known by now."
    snapshot.save()
    go_on_after([snapshot.name])
    return f"The snapshot {snapshot.name} of {template.name} can be chosen again."


def _row_of_snapshot(
    template: Template, seen: VolumeSnapshot, *, client: ClientSpec | None
) -> Snapshot:
    """Return the row of a snapshot, or one to be saved.

    What a snapshot without a mark of ours holds, nobody knows: the client of its clone
    says it, while its owner synced nothing else. So that one is never handed out.
    """
    known = template.snapshots.filter(name=seen.name).first()
    if known is not None and known.ontap_uuid == seen.uuid:
        return known
    number = build_number_of(seen.name)
    if known is not None or number is None:
        raise CannotRepair(
            f"The snapshot {seen.name} is not the one that the database has by that "
            "name."
            if known is not None
            else f"The snapshot {seen.name} has no name that Cloneyard gives."
        )
    perforce = registry.perforce(template.site.perforce_server)
    made_by = perforce.find_client(template.client_name)
    if made_by is None:
        raise CannotRepair(
            f"The client {template.client_name} of the template is gone: build the "
            "template, then adopt it."
        )
    mark = mark_of(seen.comment)
    if mark is None or mark.tree != template.volume_comment:
        have = perforce.have_list(client.name if client else made_by.name)
        mark = SnapshotMark(
            tree="",
            change=int(seen.name[1:].partition(".")[0]),
            have_count=have.count,
            have_digest=have.digest,
            asked="",
        )
    return Snapshot(
        template=template,
        name=seen.name,
        ontap_uuid=seen.uuid,
        change=mark.change,
        client_spec=render_client_spec(made_by),
        have_count=mark.have_count,
        have_digest=mark.have_digest,
        quality=Quality.FAILED,
        lint=["It was adopted: whether its test had passed is not known."],
        deleted_at=None if mark.asked else clocks.database_now(),
    )


def _adopted(
    workspace: Workspace,
    volume: Volume,
    *,
    client: ClientSpec | None,
    by: User | None,
) -> str:
    """Write the rows with their event; say what is there and what is not."""
    now = clocks.database_now()
    policy = leases.policy_for(workspace.template, workspace.purpose)
    workspace.expires_at = end_of_first_lease(
        by=workspace.owner, policy=policy, lease_seconds=None, now=now
    )
    missing = _what_is_missing(workspace, volume, client=client)
    workspace.state = Workspace.State.READY
    workspace.ready_at = now
    if missing:
        workspace.state, workspace.failed_at = Workspace.State.FAILED, now
        workspace.status_code = "adopted_in_part"
        workspace.status_message = (
            f"It was adopted, but {missing}. “Try again” makes that; retiring rescues "
            "what can be found."
        )
    try:
        with transaction.atomic():
            if workspace.snapshot._state.adding:
                workspace.snapshot.save()
                go_on_after([workspace.snapshot.name])
                workspace.snapshot_id = workspace.snapshot.pk
            _name(workspace)
            workspace.save(force_insert=True)
            states.record_event(
                workspace,
                kind="workspace_adopted",
                message=f"Adopted for {workspace.owner} from the volume {volume.name}: "
                "the database did not know it. Its shares, notes and token are not "
                "known either, and its lease begins now.",
                actor=by,
                data={"volume": volume.name, "missing": missing},
            )
    except IntegrityError:
        if Workspace.objects.filter(tag=workspace.tag).exists():
            return "Its workspace is known by now."
        raise CannotRepair(
            f"Another workspace was called {workspace.name} at that moment. Adopt it "
            "once more."
        ) from None
    said = f"It is the workspace {workspace.name} of {workspace.owner} again"
    return f"{said}, but {missing}." if missing else f"{said}."


def _what_is_missing(
    workspace: Workspace, volume: Volume, *, client: ClientSpec | None
) -> str:
    missing = []
    if volume.junction_path != workspace.junction_path:
        missing.append(f"it is not mounted at {workspace.junction_path}")
    if client is None:
        missing.append(f"its client {workspace.client_name} is gone")
    return " and ".join(missing)


def _name(workspace: Workspace) -> None:
    """Give it its name back, or the next like it that is free."""
    there = Workspace.objects.filter(site=workspace.site).exclude(
        state=Workspace.State.RETIRED
    )
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
