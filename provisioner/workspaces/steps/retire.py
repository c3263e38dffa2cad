"""Taking a workspace back: first what somebody may miss, storage last."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

from provisioner.gateways.errors import Busy, InUse
from provisioner.gateways.hosts import client_files, mounts, removal
from provisioner.gateways.ontap.types import Volume
from provisioner.gateways.perforce.types import ClientSpec
from provisioner.workspaces.errors import StepRefused, UnsavedWork
from provisioner.workspaces.models import Operation, Step, Workspace
from provisioner.workspaces.states import record_event
from provisioner.workspaces.steps.provision import FINDINGS_SHOWN, ignored_in
from provisioner.workspaces.steps.run import StepRun

GONE_WITHIN_SECONDS = 30.0

Findings = dict[str, list[dict[str, Any]]]


def ensure_quiet(run: StepRun) -> dict[str, Any]:
    """Have no step of an earlier operation still at work on this workspace."""
    at_work = Step.objects.filter(
        operation__workspace=run.workspace, state=Step.State.RUNNING
    ).exclude(operation=run.operation)
    names = ", ".join(at_work.values_list("name", flat=True))
    if names:
        raise Busy(
            f"Still at work on it: {names}.", system="cloneyard", operation="retire"
        )
    return {}


def ensure_nothing_unsaved(run: StepRun) -> dict[str, Any]:
    """Find work that retiring would lose; refuse with the list unless told to discard.

    What was found and discarded is kept in an event, with who asked for it.
    """
    workspace = run.workspace
    if not workspace.client_name or _client_was_deleted_by_us(workspace):
        return {"findings": {}}
    findings = _unsaved_work(run)
    if not findings:
        return {"findings": {}}
    if not run.operation.parameters.get("discard"):
        raise _refusal(findings)
    count = sum(len(found) for found in findings.values())
    record_event(
        workspace,
        kind="unsaved_work_discarded",
        message=f"Chose to discard {count:,} things that were not submitted.",
        actor=run.operation.requested_by,
        data=findings,
    )
    return {"findings": _first(findings)}


def _refusal(findings: Findings) -> UnsavedWork:
    """Return the refusal that says why nothing was deleted."""
    if unchecked := findings.get("unchecked"):
        sentence = (
            f"The files in this workspace cannot be compared with Perforce: "
            f"{unchecked[0]['reason']}. Have that put right, or retire again and "
            "choose to discard what is there."
        )
    else:
        count = sum(len(found) for found in findings.values())
        sentence = (
            f"{count:,} things in this workspace are not submitted. Submit or shelve "
            "them elsewhere, or retire again and choose to discard them."
        )
    return UnsavedWork(sentence, findings=_first(findings))


def _first(findings: Findings) -> dict[str, Any]:
    """Return as many of each kind as a page shows."""
    return {kind: found[:FINDINGS_SHOWN] for kind, found in findings.items()}


def _client_was_deleted_by_us(workspace: Workspace) -> bool:
    """Say whether a retirement came that far before: its work was settled then."""
    return Step.objects.filter(
        operation__workspace=workspace,
        operation__kind=Operation.Kind.RETIRE,
        name="client",
        state=Step.State.DONE,
    ).exists()


def _unsaved_work(run: StepRun) -> Findings:
    """Return what is unsaved, by kind; kinds with nothing in them are absent."""
    workspace = run.workspace
    client = run.perforce.find_client(workspace.client_name)
    findings: Findings = {}
    if client is not None:
        findings = _work_the_server_knows(run)
    # Nobody has worked in a workspace that never was ready, and before the flush
    # every file would look untracked.
    if workspace.ready_at is not None:
        findings |= _work_in_files(run, client)
    return {kind: found for kind, found in findings.items() if found}


def _work_the_server_knows(run: StepRun) -> Findings:
    client = run.workspace.client_name
    changes = run.perforce.list_pending_changes(client)
    return {
        "opened": [dataclasses.asdict(f) for f in run.perforce.list_opened(client)],
        "shelved": [dataclasses.asdict(c) for c in changes if c.is_shelved],
    }


def _work_in_files(run: StepRun, client: ClientSpec | None) -> Findings:
    """Compare files with the have list; where that cannot be done, that is found."""
    workspace = run.workspace
    volume = _our_volume(run)
    if volume is None and not os.path.lexists(workspace.path):
        return {}
    reason = _why_not_comparable(workspace, client=client, volume=volume)
    if reason:
        return {"unchecked": [{"path": str(workspace.path), "reason": reason}]}
    run.visible_root(workspace.junction_path)
    found = client_files.reconcile_as(
        run.perforce_account,
        client=workspace.client_name,
        untracked=True,
        ignore=ignored_in(workspace),
        uid=workspace.uid,
        gid=workspace.gid,
    )
    return {
        kind: [dataclasses.asdict(f) for f in found if f.action == action]
        for kind, action in (
            ("changed", "edit"),
            ("missing", "delete"),
            ("untracked", "add"),
        )
    }


def _why_not_comparable(
    workspace: Workspace, *, client: ClientSpec | None, volume: Volume | None
) -> str:
    """Return why a look at the client would not be one at the clone; "" if it is."""
    if client is None:
        return f"the client {workspace.client_name} is gone from Perforce"
    if client.root.rstrip("/") != str(workspace.path):
        return f"its client's root is {client.root}, not {workspace.path}"
    if volume is None:
        return f"{workspace.volume_name} is not on the SVM {workspace.site.svm}"
    if volume.junction_path != workspace.junction_path:
        return f"its clone is not mounted at {workspace.junction_path}"
    return ""


def ensure_client_deleted(run: StepRun) -> dict[str, Any]:
    """Have no client of this workspace on the server; never by force."""
    workspace = run.workspace
    if not workspace.client_name:
        return {}
    client = run.perforce.find_client(workspace.client_name)
    if client is None:
        return {}
    if str(workspace.tag) not in client.description:
        raise StepRefused(
            f"The client {client.name} exists in Perforce and is not ours; nothing was "
            "deleted.",
            code="client_is_not_ours",
        )
    if run.operation.parameters.get("discard"):
        _discard_opened(run)
    try:
        run.perforce.delete_client(workspace.client_name)
    except InUse as error:
        raise UnsavedWork(
            error.sentence, findings=_first(_unsaved_work(run))
        ) from error
    return {}


def _discard_opened(run: StepRun) -> None:
    """Revert on the server alone and drop pending changes: then the client can go."""
    client = run.workspace.client_name
    if run.perforce.list_opened(client):
        run.perforce.revert_server_side(client)
    for change in run.perforce.list_pending_changes(client):
        run.perforce.delete_pending_change(
            change.change, delete_shelf=change.is_shelved
        )


def ensure_contents_removed(run: StepRun) -> dict[str, Any]:
    """Remove the files one by one, where the site asks for it."""
    volume = _our_volume(run)
    is_at_its_place = (
        volume is not None and volume.junction_path == run.workspace.junction_path
    )
    if not run.site.remove_contents or not is_at_its_place:
        return {}  # what is not seen there goes away with its volume
    root = run.visible_root(run.workspace.junction_path)

    def show(progress: removal.RemovalProgress) -> None:
        run.progress("removing", done=progress.entries, unit="entries")

    report = removal.remove_contents(root, progress=show)
    if report.failed_count:
        named = run.keep_failures(report.failures, all_of_them=report.failures_file)
        raise StepRefused(
            f"{report.failed_count:,} entries could not be removed: {named}",
            code="removal_incomplete",
        )
    return {"removed": report.removed}


def ensure_unmounted(run: StepRun) -> dict[str, Any]:
    """Have the clone out of the SVM's namespace."""
    volume = _our_volume(run)
    if volume is not None:
        run.ontap.unmount_volume(volume.uuid, ontap_job_started=run.remember_ontap_job)
    return {}


def ensure_clone_deleted(run: StepRun) -> dict[str, Any]:
    """Have the FlexClone destroyed, past the recovery queue: its work is settled."""
    volume = _our_volume(run)
    if volume is not None:
        run.ontap.delete_volume(
            volume.uuid, force=True, ontap_job_started=run.remember_ontap_job
        )
    return {}


def _our_volume(run: StepRun) -> Volume | None:
    """Return this workspace's clone, None where there is none (any more).

    Only a volume with our tag and a FlexClone of our template is ever touched.
    """
    workspace = run.workspace
    volume = run.ontap.find_volume(workspace.volume_name)
    if volume is None:
        return None
    parent = volume.clone_parent
    if volume.comment != workspace.volume_comment or (
        parent is not None and parent.volume_name != workspace.template.volume_name
    ):
        raise StepRefused(
            f"The volume {volume.name} is not the clone we made (its comment or its "
            "parent differs); nothing was deleted.",
            code="volume_is_not_ours",
        )
    return volume


def ensure_nothing_left(run: StepRun) -> dict[str, Any]:
    """Prove that no client, volume, junction or directory is left."""
    workspace = run.workspace
    if workspace.client_name:
        left = run.perforce.find_client(workspace.client_name)
        _must_be_gone(left is None, f"the client {workspace.client_name}")
    _must_be_gone(
        run.ontap.find_volume(workspace.volume_name) is None,
        f"the volume {workspace.volume_name}",
    )
    mounts.wait_until_gone(workspace.path, timeout_seconds=GONE_WITHIN_SECONDS)
    Workspace.objects.filter(pk=workspace.pk).update(volume_uuid="")
    return {}


def _must_be_gone(is_gone: bool, what: str) -> None:
    if not is_gone:
        raise Busy(f"Still there: {what}.", system="cloneyard", operation="retire")
