"""Check and plan the work that will be transferred."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from provisioner.gateways.hosts.inventory import KINDS
from provisioner.gateways.hosts.transferred_files import stamp_of
from provisioner.gateways.perforce.paths import local_place
from provisioner.gateways.perforce.types import ClientSpec, OpenedFile
from provisioner.lib import clocks
from provisioner.lib.refusals import StepRefused
from provisioner.lib.typed_json import from_json
from provisioner.transfer.models import Transfer
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.steps.run import WorkspaceRun
from provisioner.workspaces.steps.unsubmitted import CheckResult, check_everything

UNTRACKED_AT_MOST = 100_000
NAMED_AT_MOST = 10


@dataclass(frozen=True, kw_only=True)
class PlannedChange:
    """A pending change of the source whose files are transferred."""

    change: str
    user: str
    description: str


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is transferred, as found in the source; `Transfer.plan` keeps it as JSON.

    `changed` are files changed without being opened. `untracked` are paths from
    `root`, which is that of the source's `client`. `left` counts by kind what is not
    transferred, `left_changes` are shelved changes that stay. `stamp` is a fingerprint
    of all planned files.
    """

    client: str
    root: str
    opened: list[OpenedFile]
    changed: list[OpenedFile]
    pending: list[PlannedChange]
    untracked: list[str]
    left: dict[str, int]
    left_changes: list[int]
    stamp: str = ""

    @property
    def files(self) -> list[OpenedFile]:
        """All files to open: the opened ones, and those changed without opening."""
        return [*self.opened, *self.changed]

    @property
    def users(self) -> list[str]:
        """Whose work it is, sorted."""
        users = {file.user for file in self.files}
        return sorted(users | {change.user for change in self.pending})

    def descriptions_of(self, user: str) -> dict[str, str]:
        """Return the descriptions of a user's pending changes by number."""
        return {p.change: p.description for p in self.pending if p.user == user}

    def place_of(self, file: OpenedFile) -> str:
        """Return a file's path from the root; "" if the client does not map it."""
        return local_place(file, client=self.client, root=self.root)


def transfer_of(run: WorkspaceRun) -> Transfer:
    """Return the transfer into the workspace of this operation, freshly read."""
    assert run.operation.subject.workspace is not None
    return Transfer.objects.select_related(
        "workspace__site__perforce_server",
        "workspace__template",
        "workspace__snapshot",
        "source__site__perforce_server",
        "source__template",
        "source__snapshot",
    ).get(workspace=run.operation.subject.workspace)


def ensure_planned(run: WorkspaceRun) -> None:
    """Plan the transfer. The source is read and not changed.

    Raises: StepRefused if the source cannot be compared, has something to resolve, or
    has work of somebody as whom we may not act.
    """
    transfer = transfer_of(run)
    if transfer.planned_at is None:
        require_ready(transfer.source)
        at_source = run.at(transfer.source)
        check = check_everything(at_source)
        blockers = list(blockers_of(at_source, check))
        if blockers:
            raise StepRefused(" ".join(blockers), code="cannot_transfer")
        transfer.plan = dataclasses.asdict(_plan(at_source, check, transfer))
        transfer.planned_at = clocks.database_now()
        with run.writing():
            transfer.save(update_fields=["plan", "planned_at"])


def require_ready(source: Workspace) -> None:
    """Refuse a source workspace that is no longer in use."""
    if source.state != Workspace.State.READY:
        raise StepRefused(
            f"{source.name} is {source.get_state_display().lower()} now, so its work "
            "cannot be transferred. It was left as it is.",
            code="source_not_ready",
        )


def blockers_of(run: WorkspaceRun, check: CheckResult) -> Iterator[str]:
    """Yield sentences that say why this work cannot be transferred as it is."""
    workspace = run.workspace
    if check.why_unchecked or check.files is None:
        reason = check.why_unchecked or "Perforce does not know its client"
        yield (
            f"The files of {workspace.name} cannot be compared with Perforce: {reason}."
        )
        return
    client = run.perforce.clients.find(workspace.client_name)
    assert client is not None
    users = {file.user for file in check.files.opened}
    users |= {change.user for change in check.files.pending if not change.is_shelved}
    for user in sorted(users):
        perforce = run.perforce_of(user, host=client.host)
        if perforce is None:
            yield (
                f"{user} has files or changes pending in {workspace.name}, and "
                "Cloneyard's account may not act as that user. It needs super for "
                "this."
            )
            continue
        unresolved = perforce.changes.to_resolve(client.name)
        if unresolved:
            few = ", ".join(item.depot_file for item in unresolved[:NAMED_AT_MOST])
            yield (
                f"{len(unresolved):,} files of {user} in {workspace.name} are not "
                f"resolved: {few}. Run p4 resolve there first, then try again."
            )


def _plan(run: WorkspaceRun, check: CheckResult, transfer: Transfer) -> Plan:
    assert check.files is not None
    assert check.seen_at is not None
    client = run.perforce.clients.find(run.workspace.client_name)
    assert client is not None
    files = check.files
    by_kind: dict[str, list[str]] = {kind: [] for kind in KINDS.values()}
    depot: list[str] = []
    for finding in files.findings:
        by_kind[KINDS[finding.action]].append(
            finding.path.removeprefix(client.root.rstrip("/") + "/")
        )
        if finding.action == "edit":
            depot.append(finding.depot_file)
    changed = _as_edits(run, client, depot) if transfer.takes_changed else []
    untracked = by_kind["untracked"] if transfer.takes_untracked else []
    if len(untracked) > UNTRACKED_AT_MOST:
        raise StepRefused(
            f"{len(untracked):,} untracked files are too many to transfer. At most "
            f"{UNTRACKED_AT_MOST:,}. Add build outputs to the ignored files, or leave "
            f"untracked files out.",
            code="too_many_untracked",
        )
    named = [path for path in untracked if os.path.normpath(path) == path]
    left = {"missing": len(by_kind["missing"])}
    if not transfer.takes_changed:
        left["changed"] = len(by_kind["changed"])
    if not transfer.takes_untracked:
        left["untracked"] = len(by_kind["untracked"])
    left["unnamed"] = len(untracked) - len(named)
    shelved = sorted(change.change for change in files.pending if change.is_shelved)
    left["shelved"] = len(shelved)
    plan = Plan(
        client=client.name,
        root=client.root,
        opened=list(files.opened),
        changed=changed,
        pending=[
            PlannedChange(
                change=str(change.change),
                user=change.user,
                description=change.description,
            )
            for change in files.pending
            if change.files or not change.is_shelved
        ],
        untracked=named,
        left={kind: count for kind, count in left.items() if count},
        left_changes=shelved,
    )
    return dataclasses.replace(plan, stamp=stamp_now(check.seen_at, plan))


def _as_edits(
    run: WorkspaceRun, client: ClientSpec, paths: list[str]
) -> list[OpenedFile]:
    """Return files that were changed without opening them as their owner's edits."""
    if not paths:
        return []
    user = run.workspace.p4_user
    user = run.perforce.spelling_of(user) or user
    perforce = run.perforce_of(user, host=client.host)
    if perforce is None:
        raise StepRefused(
            f"Files were changed in {run.workspace.name} without opening them, and "
            f"Cloneyard's account may not open them as {user}: it has to be super "
            "for this.",
            code="cannot_transfer",
        )
    return perforce.changes.as_edits(client.name, paths)


def plan_of(transfer: Transfer) -> Plan:
    """Return what was found in the source."""
    assert transfer.plan is not None
    return from_json(Plan, transfer.plan)


def stamp_now(root: Path, plan: Plan) -> str:
    """Return a fingerprint of all planned files below a root."""
    opened = {plan.place_of(file) for file in plan.files} - {""}
    return stamp_of(root, [*opened, *plan.untracked], read=opened)
