"""Looking for work that retiring would lose."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

from provisioner.gateways.hosts import client_files
from provisioner.gateways.ontap.types import Volume
from provisioner.gateways.perforce.types import ClientSpec
from provisioner.workspaces.errors import StepRefused, UnsavedWork
from provisioner.workspaces.models import Unsaved, Workspace
from provisioner.workspaces.steps.provision import FINDINGS_SHOWN, ignored_in
from provisioner.workspaces.steps.run import StepRun

Findings = dict[str, list[dict[str, Any]]]
"""What was found, by kind: opened, shelved, pending, changed, missing, untracked; or
unchecked, where the files could not be compared. Kinds with nothing are absent."""


def choice_of(run: StepRun) -> Unsaved:
    """Return what this retirement is to do with unsaved work."""
    return Unsaved(run.operation.parameters.get("unsaved", Unsaved.REFUSE))


def unsaved_work(run: StepRun) -> Findings:
    """Return what is unsaved, by kind; kinds with nothing in them are absent."""
    workspace = run.workspace
    if not workspace.client_name or workspace.client_spec:
        return {}  # What there was is settled: see Workspace.client_spec.
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
        "pending": [dataclasses.asdict(c) for c in changes if not c.is_shelved],
    }


def _work_in_files(run: StepRun, client: ClientSpec | None) -> Findings:
    """Compare files with the have list; where that cannot be done, that is found."""
    workspace = run.workspace
    volume = our_volume(run)
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


def refusal(findings: Findings) -> UnsavedWork:
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
            f"{count:,} things in this workspace are not submitted. Retire it again "
            "and choose whether they are rescued or discarded, or keep it."
        )
    return UnsavedWork(sentence, findings=first_of(findings))


def first_of(findings: Findings) -> dict[str, Any]:
    """Return as many of each kind as a page shows."""
    return {kind: found[:FINDINGS_SHOWN] for kind, found in findings.items()}


def our_volume(run: StepRun) -> Volume | None:
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
