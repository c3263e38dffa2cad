"""Checking for work that retiring would lose."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from provisioner.catalog.pins import goes_in_batches, parts_of, pinned_have
from provisioner.gateways.hosts.comparing import compare_files
from provisioner.gateways.hosts.inventory import (
    KINDS,
    UnsubmittedFiles,
    count_unsubmitted,
)
from provisioner.gateways.ontap.types import Volume
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.types import ClientSpec, ReconcileFinding
from provisioner.lib.refusals import StepRefused
from provisioner.workspaces.models import (
    RetireParameters,
    Unsubmitted,
    Workspace,
    WorkspaceClient,
)
from provisioner.workspaces.queries import parent_of
from provisioner.workspaces.refusals import UnsubmittedWorkFound
from provisioner.workspaces.states import client_of
from provisioner.workspaces.steps.clients import find_own_client
from provisioner.workspaces.steps.flushing import flush_to_what_it_had
from provisioner.workspaces.steps.locks import is_locked
from provisioner.workspaces.steps.provision import (
    FINDINGS_SHOWN,
    client_spec_of,
    ignored_in,
)
from provisioner.workspaces.steps.run import WorkspaceRun


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """What was found. `why_unchecked` says why files could not be compared, or "".

    `seen_at` is where this host sees the clone, None if it does not.
    """

    files: UnsubmittedFiles | None = None
    why_unchecked: str = ""
    path: str = ""
    seen_at: Path | None = None

    @cached_property
    def findings(self) -> dict[str, list[dict[str, Any]]]:
        """Everything by kind; kinds without findings are left out."""
        found: dict[str, list[dict[str, Any]]] = {}
        if self.files is not None:
            found["opened"] = [dataclasses.asdict(f) for f in self.files.opened]
            changes = self.files.pending
            found["shelved"] = [dataclasses.asdict(c) for c in changes if c.is_shelved]
            found["pending"] = [
                dataclasses.asdict(c)
                for c in changes
                if not c.is_shelved and not c.files
            ]
            for action, kind in KINDS.items():
                found[kind] = [
                    dataclasses.asdict(f)
                    for f in self.files.findings
                    if f.action == action
                ]
        if self.why_unchecked:
            found["unchecked"] = [{"path": self.path, "reason": self.why_unchecked}]
        return {kind: items for kind, items in found.items() if items}

    @cached_property
    def counts(self) -> dict[str, dict[str, int]]:
        """Return {kind: {"count", "bytes"}}."""
        if self.files is None or self.seen_at is None:
            return {k: {"count": len(v), "bytes": 0} for k, v in self.findings.items()}
        return count_unsubmitted(self.files, seen_at=self.seen_at)

    @property
    def count(self) -> int:
        return sum(len(found) for found in self.findings.values())

    @property
    def first_findings(self) -> dict[str, Any]:
        """The first few findings of each kind, with the kind's count."""
        shown: dict[str, Any] = {
            kind: found[:FINDINGS_SHOWN] for kind, found in self.findings.items()
        }
        return {**shown, "counts": self.counts} if shown else {}


NOTHING = CheckResult()


def choice_of(run: WorkspaceRun) -> Unsubmitted:
    """Return what this retirement does with unsubmitted work.

    A workspace without a client to submit from has no work; its files are discarded.
    """
    if not run.workspace.holds_work:
        return Unsubmitted.DISCARD
    return Unsubmitted(RetireParameters.of(run.operation).unsubmitted)


def check_for_unsubmitted_work(run: WorkspaceRun) -> CheckResult:
    """Return the work that would be lost if client and clone were deleted now.

    A partly restored workspace is checked like any other once its client is flushed:
    somebody may work there, and the end of a lease cannot wait for the full restore.
    """
    workspace, settled = run.workspace, client_of(run.workspace)
    if settled.is_whole:
        return check_everything(run)
    client = find_own_client(run)
    if client is None or settled.given_back_at is None:
        return NOTHING  # What there was is settled: see WorkspaceClient.
    if settled.state == WorkspaceClient.State.DEFINED:
        flush_to_what_it_had(run)
    volume = our_volume(run)
    if volume is None or volume.junction_path != workspace.junction_path:
        # Its files are as the retirement left them.
        return CheckResult(
            files=_known_to_the_server(run, client), path=str(workspace.path)
        )
    return check_everything(run)


def check_everything(run: WorkspaceRun) -> CheckResult:
    """Return all unsubmitted work, even if a retirement has settled it."""
    workspace = run.workspace
    if not workspace.client_name:
        return NOTHING
    client = find_own_client(run)
    files = None if client is None else _known_to_the_server(run, client)
    volume = our_volume(run)
    # Nobody has worked in a workspace that never was ready, and before the flush
    # every file would look untracked.
    has_files = volume is not None or os.path.lexists(workspace.path)
    if workspace.ready_at is None or not has_files:
        return CheckResult(files=files, path=str(workspace.path))
    reason = _why_not_comparable(workspace, client=client, volume=volume)
    if reason:
        return CheckResult(files=files, why_unchecked=reason, path=str(workspace.path))
    assert client is not None
    seen_at = run.visible_root(workspace.junction_path)

    def compared(perforce: PerforceGateway) -> list[ReconcileFinding]:
        return compare_files(
            run.perforce,
            perforce,
            client=client,
            recorded=client_spec_of(workspace),
            stand_ins=workspace.stand_ins,
            change=workspace.snapshot.change,
            parts=parts_of(workspace.snapshot),
            pinned=pinned_have(workspace.snapshot),
            seen_at=seen_at,
            ignore=ignored_in(workspace),
            owner=workspace,
            in_batches=goes_in_batches(workspace.snapshot.have_count),
            on_command=run.rest_for_others,
        )

    # Nobody but its owner may use a locked client.
    whose = client.owner if is_locked(client) else run.perforce.account.user
    findings = run.as_user(whose, compared)
    if findings is None:
        reason = (
            f"its client is locked by {client.owner}, as whom Cloneyard's account "
            "may not act"
        )
        return CheckResult(files=files, why_unchecked=reason, path=str(workspace.path))
    assert files is not None
    return CheckResult(
        files=dataclasses.replace(files, findings=findings),
        path=str(workspace.path),
        seen_at=seen_at,
    )


def _known_to_the_server(run: WorkspaceRun, client: ClientSpec) -> UnsubmittedFiles:
    pending = run.perforce.changes.list_pending(client.name)
    return UnsubmittedFiles(
        client=client.name,
        root=client.root,
        opened=run.perforce.changes.list_opened(client.name),
        pending=pending,
        shelved={
            change.change: run.perforce.shelves.list_files(change.change)
            for change in pending
            if change.is_shelved
        },
    )


def _why_not_comparable(
    workspace: Workspace, *, client: ClientSpec | None, volume: Volume | None
) -> str:
    """Return why the client cannot be used to check the clone, or ""."""
    if client is None:
        return f"the client {workspace.client_name} is gone from Perforce"
    if client.root.rstrip("/") != str(workspace.path):
        return f"its client's root is {client.root}, not {workspace.path}"
    if volume is None:
        return f"{workspace.volume_name} is not on the SVM {workspace.site.svm}"
    if volume.junction_path != workspace.junction_path:
        return f"its clone is not mounted at {workspace.junction_path}"
    return ""


def refusal(check: CheckResult) -> UnsubmittedWorkFound:
    """Return the refusal that says why nothing was deleted."""
    if check.why_unchecked:
        sentence = (
            "The files in this workspace cannot be compared with Perforce: "
            f"{check.why_unchecked}. Have that fixed, or retire again and discard the "
            "work."
        )
    else:
        is_one = check.count == 1
        sentence = (
            f"{check.count:,} {'thing' if is_one else 'things'} in this workspace "
            f"{'is' if is_one else 'are'} not submitted. Retire it again and choose "
            "whether that is rescued or discarded, or keep it."
        )
    return UnsubmittedWorkFound(sentence, findings=check.first_findings)


def our_volume(run: WorkspaceRun) -> Volume | None:
    """Return this workspace's clone, None if there is none (any more).

    Only a volume with our tag and a FlexClone of our template, of its mirror at the
    workspace's site, or of the copy it was restored from is ever touched.
    """
    workspace = run.workspace
    volume = run.ontap.find_volume(workspace.volume_name)
    if volume is None:
        return None
    parent = volume.clone_parent
    is_elsewhere = parent is not None and parent.volume_name != parent_of(workspace)
    if not workspace.is_tagged(volume.comment) or (
        is_elsewhere and not _has_moved_parent(run, volume)
    ):
        raise StepRefused(
            f"The volume {volume.name} is not the clone we made (its comment or its "
            "parent differs); nothing was deleted.",
            code="volume_is_not_ours",
        )
    return volume


def _has_moved_parent(run: WorkspaceRun, volume: Volume) -> bool:
    """Return whether a clone's parent was moved to another aggregate.

    The parent of its older clones is a hidden volume then, of which ONTAP says only the
    name.

    Source: "Considerations and recommendations when moving volumes",
    https://docs.netapp.com/us-en/ontap/volumes/recommendations-moving-concept.html.
    """
    parent = volume.clone_parent
    assert parent is not None
    return (
        volume.uuid == run.workspace.volume_uuid
        and run.ontap.find_volume(parent.volume_name) is None
    )
