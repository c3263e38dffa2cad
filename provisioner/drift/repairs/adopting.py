"""Adoption: write rows for objects that a restored database does not know.

`rows_to_be` decides which row, for the preview and here alike. Nothing is changed at
ONTAP or in Perforce. To remove the workspace, retire it, with its check and rescue.
"""

from __future__ import annotations

from django.db import IntegrityError, transaction

from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.snapshot_comments import go_on_after
from provisioner.drift.comparison.facts import tag_of_volume
from provisioner.drift.models import Finding
from provisioner.drift.repairs.evidence import (
    GONE,
    CannotRepair,
    resting_row,
    volume_now,
)
from provisioner.drift.repairs.mirrors_to_be import mirror_to_be, write_mirror
from provisioner.drift.repairs.rows_to_be import (
    WorkspaceToBe,
    clients_at,
    give_a_free_name,
    snapshot_to_be,
    workspace_to_be,
)
from provisioner.drift.repairs.templates_to_be import (
    template_to_be,
    write_template,
)
from provisioner.gateways import registry
from provisioner.gateways.ontap.types import Volume
from provisioner.gateways.perforce.specs import render_client_spec
from provisioner.lib.refusals import ActionRefused
from provisioner.mirrors.models import Mirror
from provisioner.workspaces.actions.retiring import workspace_restore
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.queries import was_purged
from provisioner.workspaces.states import set_workspace_state

KNOWN = "Its workspace has a row now."


def adopt_workspace(finding: Finding) -> str:
    """Write the row of an unknown workspace from its tagged volume.

    Safe to repeat, and safe against a second click: the tag is unique.

    Raises: CannotRepair with what is missing, GatewayError.
    """
    volume = volume_now(finding)
    if volume is None:
        return GONE
    tag = tag_of_volume(volume)
    if tag is not None and Workspace.objects.filter(tag=tag[1]).exists():
        return KNOWN
    to_be = workspace_to_be(volume, site=finding.site, clients=clients_at(finding.site))
    workspace, client = to_be.workspace, to_be.client
    if client is not None:
        # A list says no types.
        found = registry.perforce(finding.site.perforce_server).clients.find(
            client.name
        )
        if found is not None and found.type not in ("", "writeable"):
            workspace.client_type = found.type
    _pin(workspace.snapshot, client=client.name if client else "")
    return _adopted(to_be, volume=volume.name, by=finding.asked_by)


def adopt_template(finding: Finding) -> str:
    """Write the row of an unknown template from its tagged volume.

    Raises: CannotRepair with what is missing, GatewayError.
    """
    volume = volume_now(finding)
    if volume is None:
        return GONE
    tag = tag_of_volume(volume)
    known = Template.with_deleted.filter(tag=tag[1]).first() if tag else None
    if known is not None and known.state == Template.State.DELETED:
        raise CannotRepair(
            f"The template {known.name} was deleted here. Deal with the clones of "
            f"{volume.name} in ONTAP, then remove it."
        )
    if known is not None:
        return "It has a row now."
    clients = clients_at(finding.site)
    template = template_to_be(volume, site=finding.site, clients=clients)
    return write_template(template, by=finding.asked_by)


def adopt_mirror(finding: Finding) -> str:
    """Write the row of an unknown mirror from its tagged volume and relationship.

    Raises: CannotRepair with what is missing, GatewayError.
    """
    volume = volume_now(finding)
    if volume is None:
        return GONE
    assert finding.tag is not None
    known = Mirror.with_deleted.filter(tag=finding.tag).first()
    if known is not None and known.state == Mirror.State.DELETED:
        raise CannotRepair(f"The mirror {known.name} was deleted here. Check again.")
    if known is not None:
        return "It has a row now."
    return write_mirror(mirror_to_be(volume, site=finding.site), by=finding.asked_by)


def adopt_snapshot(finding: Finding) -> str:
    """Write the row of an unknown published snapshot. Safe to repeat.

    Raises: CannotRepair with what is missing, GatewayError.
    """
    template = resting_row(finding)
    assert isinstance(template, Template)
    seen = registry.ontap(finding.site).find_snapshot(
        finding.volume_uuid, name=finding.snapshot
    )
    if seen is None or seen.uuid != finding.external_id:
        return GONE
    snapshot = snapshot_to_be(template, seen)
    if not snapshot._state.adding:
        return "It has a row now."
    _pin(snapshot, client="")
    try:
        with transaction.atomic():
            snapshot.save()
            go_on_after([snapshot.name])
    except IntegrityError:
        raise _snapshot_taken(snapshot) from None
    said = f"The snapshot {snapshot.name} of {template.name}"
    if not snapshot.is_there:
        return f"{said} is kept for its clones, and not offered."
    return f"{said} can be chosen again."


def _snapshot_taken(snapshot: Snapshot) -> CannotRepair:
    """Return the error if another row with its name was written just now."""
    return CannotRepair(
        f"A row of the snapshot {snapshot.name} of {snapshot.template.name} was "
        "written at the same time. Nothing was done here. Adopt it again."
    )


def _pin(snapshot: Snapshot, *, client: str) -> None:
    """Fill the pin of an adopted snapshot, from its comment or from its clones.

    A clone's client shows it only as long as its owner has synced nothing else.
    """
    if not snapshot._state.adding:
        return
    template = snapshot.template
    perforce = registry.perforce(template.site.perforce_server)
    made_by = perforce.clients.find(template.client_name)
    if made_by is None:
        raise CannotRepair(
            f"The client {template.client_name} of the template is gone: build the "
            "template, then adopt it."
        )
    snapshot.client_spec = render_client_spec(made_by)
    if not snapshot.have_digest:
        have = perforce.files.have_list(client or made_by.name)
        snapshot.have_count, snapshot.have_digest = have.count, have.digest


def bring_back(workspace: Workspace, volume: Volume, *, by: User | None) -> str:
    """Restore a retired workspace whose volume may still hold work.

    Only a workspace with a client can be checked and rescued.

    Raises: CannotRepair.
    """
    if by is None:
        raise CannotRepair("Somebody has to request that workspace.")
    if was_purged(workspace):
        raise CannotRepair(
            f"A purge has started to delete its contents. Look into {volume.name}: if "
            "nobody needs it, unmount it and delete it in ONTAP."
        )
    workspace.remote_name = workspace.made_as
    give_a_free_name(workspace)
    try:
        with transaction.atomic():
            Workspace.objects.filter(pk=workspace.pk).update(
                volume_uuid=volume.uuid,
                name=workspace.name,
                remote_name=workspace.remote_name,
            )
            set_workspace_state(
                workspace,
                Workspace.State.FAILED,
                code="volume_left",
                message=f"It was retired, but its volume {volume.name} is there, and "
                "may hold work.",
                actor=by,
            )
            workspace_restore(by=by, workspace=workspace)
    except (IntegrityError, ActionRefused) as error:
        raise CannotRepair(
            f"The workspace {workspace.name} cannot be restored now: {error}"
        ) from error
    return (
        f"The workspace {workspace.name} of {workspace.owner} is being restored. To "
        "remove it, retire it when it is ready."
    )


def _adopted(to_be: WorkspaceToBe, *, volume: str, by: User | None) -> str:
    """Write the rows with their event; return what was adopted and what is missing."""
    workspace, missing = to_be.workspace, to_be.missing
    is_new = workspace.snapshot._state.adding
    try:
        with transaction.atomic():
            if is_new:
                workspace.snapshot.save()
                go_on_after([workspace.snapshot.name])
                workspace.snapshot_id = workspace.snapshot.pk
            workspace.save(force_insert=True)
            record_event(
                workspace,
                kind="workspace_adopted",
                message=f"Adopted for {workspace.owner} from the volume {volume}, "
                "which was missing from the "
                "database. Its shares, notes and token are not "
                "known either, and its lease begins now.",
                actor=by,
                data={"volume": volume, "missing": missing},
            )
    except IntegrityError:
        if Workspace.objects.filter(tag=workspace.tag).exists():
            return KNOWN
        same = {"name": workspace.snapshot.name, "template": workspace.template}
        if is_new and Snapshot.objects.filter(**same).exists():
            raise _snapshot_taken(workspace.snapshot) from None
        raise CannotRepair(
            f"Another workspace was called {workspace.name} at that moment. Adopt it "
            "once more."
        ) from None
    said = f"It is the workspace {workspace.name} of {workspace.owner} again"
    return f"{said}, but {missing}." if missing else f"{said}."
