"""What is done about a finding: look again, act, look again.

Nothing is concluded from an older look: each repair reads the far side and the row
anew, and does nothing where they do not say any more what the finding says. Nothing is
forced: ONTAP keeps what has clones, Perforce what has work.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import structlog
from django.db import transaction
from django.utils import timezone

from provisioner.accounts.models import User
from provisioner.gateways import registry
from provisioner.gateways.errors import GatewayError, NotFound
from provisioner.gateways.ontap.types import Volume
from provisioner.gateways.perforce.types import ClientSpec
from provisioner.workspaces import governor, states
from provisioner.workspaces.audit import tag_of_client, tag_of_volume
from provisioner.workspaces.errors import StateChanged, StepRefused
from provisioner.workspaces.models import (
    Finding,
    Operation,
    Site,
    Snapshot,
    Template,
    Workspace,
)
from provisioner.workspaces.steps.provision import client_spec_of, flush_to_pin
from provisioner.workspaces.trail import record_event

log = structlog.get_logger(__name__)

GONE = "The difference was gone."

Kind = Finding.Kind
Action = Finding.Action


class CannotRepair(Exception):
    """What is there now is not what the finding was about; its text says why."""


def repair(finding: Finding, *, by: User | None) -> None:
    """Do what a finding's action says, and settle it; say on it why that failed."""
    act = _REPAIRS.get((finding.kind, finding.action))
    if act is None:
        return
    try:
        resolution = act(finding)
    except (GatewayError, StepRefused, CannotRepair, StateChanged) as error:
        sentence = str(error)
        log.warning("finding_not_repaired", finding_id=finding.pk, error=sentence)
        with transaction.atomic():
            Finding.objects.filter(pk=finding.pk).update(
                asked_at=None, status_message=sentence
            )
            if by is not None or finding.status_message != sentence:
                record_event(
                    _subject(finding),
                    kind="audit_repair_failed",
                    message=f"{finding.subject}: {sentence}",
                    actor=by,
                )
        return
    with transaction.atomic():
        settle(finding, resolution=resolution, by=by)


def settle(finding: Finding, *, resolution: str, by: User | None) -> None:
    """Close a finding, once, with its event."""
    closed = Finding.objects.filter(pk=finding.pk, resolved_at=None).update(
        resolved_at=timezone.now(),
        resolution=resolution,
        resolved_by=by,
        asked_at=None,
        status_message="",
    )
    if closed:
        record_event(
            _subject(finding),
            kind="audit_resolved",
            message=f"{finding.get_kind_display()}, {finding.subject}: {resolution}",
            actor=by,
            data={"kind": finding.kind, "subject": finding.subject},
        )


def _subject(finding: Finding) -> Workspace | Template | Site:
    return finding.workspace or finding.template or finding.site


# --- what a repair may rely on


def _resting_row(finding: Finding) -> Workspace | Template | None:
    """Return the finding's row as it is now, None for what no row is about.

    Raises: CannotRepair where an operation is under way.
    """
    row: Workspace | Template | None = None
    if finding.workspace_id is not None:
        row = Workspace.objects.select_related(
            "site__perforce_server", "template", "snapshot"
        ).get(pk=finding.workspace_id)
    elif finding.template_id is not None:
        row = Template.objects.select_related("site__perforce_server").get(
            pk=finding.template_id
        )
    if row and row.operations.filter(state=Operation.State.RUNNING).exists():
        raise CannotRepair("An operation is under way on it; look again later.")
    return row


def _workspace_in(finding: Finding, *allowed: Workspace.State) -> Workspace:
    """Return the finding's workspace.

    Raises: CannotRepair where it is in another state by now.
    """
    row = _resting_row(finding)
    assert isinstance(row, Workspace)
    if row.state not in allowed:
        raise CannotRepair(
            f"The workspace is {row.get_state_display().lower()} by now."
        )
    return row


def _volume_now(finding: Finding) -> Volume | None:
    """Return the finding's volume if it still is there and carries a tag of ours.

    Raises: CannotRepair where it is somebody else's by now.
    """
    try:
        volume = registry.ontap(finding.site).get_volume(finding.external_id)
    except NotFound:
        return None
    row = finding.workspace or finding.template
    wanted = finding.details.get("comment") if row is None else row.volume_comment
    if tag_of_volume(volume) is None or volume.comment != wanted:
        raise CannotRepair(f"The volume {volume.name} does not carry our tag any more.")
    return volume


def _client_now(finding: Finding) -> ClientSpec | None:
    """Return the finding's client if it still is there and is described as ours.

    Asked for by list: naming it would refresh its Access date.

    Raises: CannotRepair where it is somebody else's by now.
    """
    perforce = registry.perforce(finding.site.perforce_server)
    for client in perforce.list_clients(name_filter=finding.subject):
        if client.name == finding.subject:
            if tag_of_client(client) is None:
                raise CannotRepair(f"The client {client.name} is not ours any more.")
            return client
    return None


# --- the repairs: each returns how it was resolved


def _remove_volume(finding: Finding) -> str:
    row = _resting_row(finding)
    if isinstance(row, Workspace) and row.state != Workspace.State.RETIRED:
        raise CannotRepair(f"The workspace is {row.get_state_display().lower()}.")
    if isinstance(row, Template):
        raise CannotRepair("It is a template's volume.")
    if row is None and _tag_is_known(finding):
        raise CannotRepair("Its tag belongs to a row by now.")
    volume = _volume_now(finding)
    if volume is None:
        return GONE
    ontap = registry.ontap(finding.site)
    if volume.junction_path:
        if finding.is_automatic:
            raise CannotRepair(f"It is mounted at {volume.junction_path} by now.")
        ontap.unmount_volume(volume.uuid)
    ontap.delete_volume(volume.uuid, force=False)
    return f"The volume {volume.name} was deleted."


def _tag_is_known(finding: Finding) -> bool:
    tag = str(finding.details.get("comment", "")).rpartition("=")[2]
    return (
        Workspace.objects.filter(tag=tag).exists()
        or Template.objects.filter(tag=tag).exists()
    )


def _adopt_volume(finding: Finding) -> str:
    row = _resting_row(finding)
    assert row is not None
    volume = _volume_now(finding)
    if volume is None:
        return GONE
    if volume.name != row.volume_name:
        raise CannotRepair(f"The volume is named {volume.name} by now.")
    type(row)._default_manager.filter(pk=row.pk).update(volume_uuid=volume.uuid)
    return f"The volume {volume.name} was adopted."


def _finish_lost_volume(finding: Finding) -> str:
    workspace = _workspace_in(finding, Workspace.State.READY, Workspace.State.TRASHED)
    ontap = registry.ontap(finding.site)
    if ontap.find_volume(workspace.volume_name) is not None:
        return "The volume is there."
    if workspace.volume_uuid:
        try:
            ontap.get_volume(workspace.volume_uuid)
        except NotFound:
            pass
        else:
            return "The volume is there, under another name."
    states.set_workspace_state(
        workspace,
        Workspace.State.FAILED,
        code="volume_lost",
        message=f"Its volume {workspace.volume_name} is gone from ONTAP, and nobody "
        "asked Cloneyard for that. Retire the workspace to remove what is left of it.",
    )
    return "The workspace was marked as failed."


def _finish_junction(finding: Finding) -> str:
    row = _resting_row(finding)
    volume = _volume_now(finding)
    if row is None or volume is None:
        return GONE
    is_trashed = isinstance(row, Workspace) and row.state == Workspace.State.TRASHED
    if not is_trashed and row.state not in (
        Workspace.State.READY,
        Template.State.READY,
    ):
        raise CannotRepair(f"It is {row.get_state_display().lower()} by now.")
    wanted = "" if is_trashed else row.junction_path
    if volume.junction_path == wanted:
        return GONE
    ontap = registry.ontap(finding.site)
    if volume.junction_path:
        ontap.unmount_volume(volume.uuid)
    if wanted:
        ontap.mount_volume(volume.uuid, junction_path=wanted)
        return f"The volume was mounted at {wanted}."
    return "The volume was unmounted."


def _remove_snapshot(finding: Finding) -> str:
    row = _resting_row(finding)
    assert isinstance(row, Template)
    name = finding.details["snapshot"]
    rows = Snapshot.objects.filter(template=row, name=name)
    needed = Workspace.objects.filter(snapshot__in=rows).exclude(
        state=Workspace.State.RETIRED
    )
    if rows.filter(deleted_at=None).exists() or needed.exists():
        raise CannotRepair(f"The snapshot {name} is needed by now.")
    ontap = registry.ontap(finding.site)
    volume_uuid = finding.details["volume_uuid"]
    found = ontap.find_snapshot(volume_uuid, name=name)
    if found is None or found.uuid != finding.external_id:
        return GONE
    if found.owners:
        raise CannotRepair(f"The snapshot {name} is in use: {', '.join(found.owners)}.")
    ontap.delete_snapshot(volume_uuid, snapshot_uuid=found.uuid)
    return f"The snapshot {name} was deleted."


def _finish_lost_snapshot(finding: Finding) -> str:
    row = _resting_row(finding)
    assert isinstance(row, Template)
    there = registry.ontap(finding.site).list_snapshots(finding.details["volume_uuid"])
    if finding.external_id in {snapshot.uuid for snapshot in there}:
        return GONE
    Snapshot.objects.filter(
        template=row, ontap_uuid=finding.external_id, deleted_at=None
    ).update(deleted_at=timezone.now())
    return f"The snapshot {finding.details['snapshot']} was taken off the offer."


def _remove_client(finding: Finding) -> str:
    row = _resting_row(finding)
    gone = (Workspace.State.RETIRED, Workspace.State.TRASHED)
    if isinstance(row, Template) or (row is not None and row.state not in gone):
        raise CannotRepair(f"It is {row.get_state_display().lower()} by now.")
    client = _client_now(finding)
    if client is None:
        return GONE
    perforce = registry.perforce(finding.site.perforce_server)
    opened = len(perforce.list_opened(client.name))
    changes = len(perforce.list_pending_changes(client.name))
    if opened or changes:
        raise CannotRepair(
            f"The client {client.name} has {opened} opened files and {changes} pending "
            "changes. It stays until its owner has settled them."
        )
    perforce.delete_client(client.name)
    return f"The client {client.name} was deleted."


def _finish_lost_client(finding: Finding) -> str:
    workspace = _workspace_in(finding, Workspace.State.READY)
    if governor.is_paused(finding.site.perforce_server_id):
        raise CannotRepair("The Perforce server is paused; ask again once it is not.")
    perforce = registry.perforce(finding.site.perforce_server)
    if _client_now(finding) is None:
        perforce.save_client(client_spec_of(workspace))
    elif perforce.have_list(finding.subject).count:
        return GONE
    # What was defined a moment ago, here or by a try that was killed, knows no file.
    flush_to_pin(perforce, workspace)
    return (
        f"The client {finding.subject} was defined again and flushed to change "
        f"{workspace.snapshot.change}, like a new one. p4 reconcile opens again what "
        "was opened; what was synced since then looks changed until it is synced again."
    )


def _finish_client(finding: Finding) -> str:
    workspace = _workspace_in(finding, Workspace.State.READY)
    if _client_now(finding) is None:
        return GONE
    perforce = registry.perforce(finding.site.perforce_server)
    found = perforce.find_client(finding.subject)
    if found is None:
        return GONE
    wanted = client_spec_of(workspace)
    perforce.save_client(
        dataclasses.replace(
            found, root=wanted.root, owner=wanted.owner, host=wanted.host
        )
    )
    return f"Root, Owner and Host of the client {finding.subject} were put right."


def _cancel_job(finding: Finding) -> str:
    _resting_row(finding)
    ontap = registry.ontap(finding.site)
    job = finding.external_id
    if job not in {each.uuid for each in ontap.list_unfinished_jobs()}:
        return "The job had ended."
    ontap.cancel_job(job)
    return f"The job {job} was cancelled."


_REPAIRS: dict[tuple[str, str], Callable[[Finding], str]] = {
    (Kind.VOLUME_WITHOUT_ROW, Action.REMOVE): _remove_volume,
    (Kind.VOLUME_WITHOUT_ROW, Action.ADOPT): _adopt_volume,
    (Kind.ROW_WITHOUT_VOLUME, Action.FINISH): _finish_lost_volume,
    (Kind.JUNCTION_DIFFERS, Action.FINISH): _finish_junction,
    (Kind.SNAPSHOT_WITHOUT_ROW, Action.REMOVE): _remove_snapshot,
    (Kind.ROW_WITHOUT_SNAPSHOT, Action.FINISH): _finish_lost_snapshot,
    (Kind.CLIENT_WITHOUT_ROW, Action.REMOVE): _remove_client,
    (Kind.ROW_WITHOUT_CLIENT, Action.FINISH): _finish_lost_client,
    (Kind.CLIENT_DIFFERS, Action.FINISH): _finish_client,
    (Kind.JOB_UNATTENDED, Action.REMOVE): _cancel_job,
}
