"""Retire a workspace: save its work first, then move the clone to the trash."""

from __future__ import annotations

from provisioner.audit_log.actions import record_event
from provisioner.catalog.steps.volumes import (
    ensure_export_policy,
    ensure_frozen_policy,
    ensure_policies,
)
from provisioner.engine import states as engine_states
from provisioner.gateways.errors import Busy, InUse
from provisioner.gateways.hosts import mounts
from provisioner.gateways.perforce.specs import render_client_spec
from provisioner.gateways.perforce.types import ClientSpec
from provisioner.lib.refusals import StepRefused
from provisioner.workspaces.models import Rescue, Unsubmitted, WorkspaceClient
from provisioner.workspaces.states import (
    client_of,
    give_back_client,
    make_client_whole,
    move_client,
)
from provisioner.workspaces.steps import locks
from provisioner.workspaces.steps.clients import find_own_client, forget_mark
from provisioner.workspaces.steps.rescue import keep_have_list, rescue_work
from provisioner.workspaces.steps.run import WorkspaceRun
from provisioner.workspaces.steps.unsubmitted import (
    CheckResult,
    check_everything,
    check_for_unsubmitted_work,
    choice_of,
    our_volume,
    refusal,
)

C = WorkspaceClient.State
GONE_WITHIN_SECONDS = 30.0


def ensure_nothing_unsubmitted(run: WorkspaceRun) -> None:
    """Stop with the list of unsubmitted work, unless somebody decided about it.

    Nothing has changed yet, and people in the workspace can continue.
    """
    check = check_for_unsubmitted_work(run)
    if check.findings:
        raise refusal(check)


def ensure_frozen(run: WorkspaceRun) -> None:
    """Close the clone to everyone but the workers' hosts."""
    volume = our_volume(run)
    if volume is None:
        return
    policy = ensure_frozen_policy(run)
    if volume.export_policy != policy:
        run.ontap.set_volume_policies(
            volume.uuid,
            export_policy=policy,
        )


def ensure_work_settled(run: WorkspaceRun) -> None:
    """Check again, now that the clone is frozen, and treat the work as chosen.

    An event records what was discarded, and who chose that.
    """
    locks.unlock(run)
    check = check_for_unsubmitted_work(run)
    if check.findings:
        engine_states.note_findings(run.step, check.first_findings)
    choice = choice_of(run)
    if choice == Unsubmitted.DISCARD:
        if check.findings:
            _record_discarded(run, check)
        keep_have_list(run, check)
    elif check.why_unchecked or (check.findings and choice == Unsubmitted.REFUSE):
        _thaw(run)
        raise refusal(check)
    else:
        _rescue(run, check)
        _know_again(run, check)


def _know_again(run: WorkspaceRun, check: CheckResult) -> None:
    """If it was given back half-way, all opened files are rescued."""
    settled = client_of(run.workspace)
    if check.files is not None and settled.state == C.REVERTED:
        move_client(settled, C.SETTLING, by=run.step)


def _rescue(run: WorkspaceRun, check: CheckResult) -> None:
    """Rescue what was found; if that fails, leave it to its owner."""
    try:
        rescue_work(run, check)
    except StepRefused:
        _thaw(run)
        raise


def _record_discarded(run: WorkspaceRun, check: CheckResult) -> None:
    with run.writing():
        record_event(
            run.workspace,
            kind="work_discarded",
            message=f"Chose to discard {check.count:,} things that were not submitted.",
            actor=run.operation.requested_by,
            data=check.findings,
        )


def _thaw(run: WorkspaceRun) -> None:
    """Restore access for its owner's hosts, and the client's lock."""
    give_back_client(client_of(run.workspace), by=run.step)
    volume = our_volume(run)
    if volume is not None:
        policy = ensure_export_policy(run)
        ensure_policies(run, volume_uuid=volume.uuid, export_policy=policy)
    locks.give_back(run)


def ensure_client_deleted(run: WorkspaceRun) -> None:
    """Delete the workspace's client; keep its form for a restore."""
    workspace = run.workspace
    drop_stand_ins(run)
    if not workspace.client_name:
        return
    settled = client_of(workspace)
    if settled.is_whole:
        make_client_whole(settled, by=run.step)
    client = find_own_client(run)
    if client is not None:
        if settled.is_whole:
            # Before anything is reverted: from here on an undo has to bring it back.
            was = locks.locked(client) if settled.is_unlocked else client
            spec = render_client_spec(was)
            move_client(settled, C.SETTLING, by=run.step, spec=spec)
        _delete_client(run, client, settled)
    if settled.state not in (C.WHOLE, C.DELETED):
        move_client(settled, C.DELETED, by=run.step)
    forget_mark(run)


def drop_stand_ins(run: WorkspaceRun) -> None:
    """Delete the temporary clients that replaced this workspace's own."""
    run.workspace.stand_ins.remove_all(run.perforce)


def _delete_client(
    run: WorkspaceRun, client: ClientSpec, settled: WorkspaceClient
) -> None:
    """Delete the client; force that only for work that was rescued or discarded.

    Shelves of an earlier retirement stay, whatever this one does.
    """
    choice = choice_of(run)
    goes_on = settled.since_id != run.operation.pk
    if choice == Unsubmitted.DISCARD:
        _drop_changes(run, delete_shelves=not goes_on)
    elif choice == Unsubmitted.RESCUE or goes_on:
        _rescue_what_came_since(run, settled)
        _drop_changes(run, delete_shelves=False)
        move_client(settled, C.REVERTED, by=run.step)
    is_settled = choice != Unsubmitted.REFUSE or goes_on
    try:
        run.perforce.clients.delete(
            client.name,
            keep_shelves=is_settled,
            server_id=_elsewhere(run, client),
            as_seen=client,
        )
    except InUse as error:
        if is_settled:
            raise Busy(error.sentence, system="perforce", operation="client") from error
        make_client_whole(settled, by=run.step)
        check = check_for_unsubmitted_work(run)
        _thaw(run)
        raise refusal(check) from error


def _elsewhere(run: WorkspaceRun, client: ClientSpec) -> str:
    """Return the ServerID to name when a client is deleted, "" if it is bound here.

    Source: p4 help client: --serverid is for the commit server, about other servers.
    """
    here = run.server.served_by.server_id
    return "" if client.server_id == here else client.server_id


def _rescue_what_came_since(run: WorkspaceRun, settled: WorkspaceClient) -> None:
    """Rescue once more if something was opened after the check."""
    rescue = Rescue.objects.filter(operation=run.operation).first()
    known = set()
    if rescue is not None and settled.state != C.REVERTED:
        known = {file["depot_file"] for file in rescue.reverted}
    opened = run.perforce.changes.list_opened(run.workspace.client_name)
    if any(file.depot_file not in known for file in opened):
        check = check_everything(run)
        if check.why_unchecked:
            _thaw(run)
            # Not READY: some of it may have been reverted already.
            raise StepRefused(refusal(check).sentence, code="unsubmitted_work")
        _rescue(run, check)


def _drop_changes(run: WorkspaceRun, *, delete_shelves: bool) -> None:
    """Revert on the server only and delete pending changes, to free the client."""
    client = run.workspace.client_name
    if run.perforce.changes.list_opened(client):
        run.perforce.changes.revert_server_side(client)
    for change in run.perforce.changes.list_pending(client):
        if delete_shelves or not change.is_shelved:
            run.perforce.changes.delete_pending(
                change.change, delete_shelf=delete_shelves and change.is_shelved
            )


def ensure_unmounted(run: WorkspaceRun) -> None:
    """Ensure that the clone is not mounted in the SVM's namespace."""
    volume = our_volume(run)
    if volume is not None:
        run.ontap.unmount_volume(volume.uuid)


def ensure_left(run: WorkspaceRun) -> None:
    """Unmount the clone on this host, before ONTAP takes it out of the namespace."""
    run.leave_root(run.workspace.junction_path)


def ensure_path_gone(run: WorkspaceRun) -> None:
    """Ensure that nothing is at the workspace's path on this host."""
    mounts.wait_until_gone(run.workspace.path, timeout_seconds=GONE_WITHIN_SECONDS)
