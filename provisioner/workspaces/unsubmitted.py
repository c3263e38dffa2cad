"""Unsubmitted work that was found, as pages show it."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from django.db.models import Prefetch, QuerySet
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator

from provisioner.accounts.models import User
from provisioner.engine.models import Operation, Step
from provisioner.engine.overviews import OperationOverview, operation_overview
from provisioner.web.templatetags.cloneyard import ago
from provisioner.workspaces.models import (
    BESIDE_WORK,
    FROM_SNAPSHOTS,
    Workspace,
    WorkspaceOperation,
)
from provisioner.workspaces.queries import workspaces_visible_to
from provisioner.workspaces.steps.provision import FINDINGS_SHOWN

CHECK_HOLDS = dt.timedelta(minutes=5)
"""How long a check's result is reused."""

FINDING_TITLES = {
    "opened": "Opened",
    "shelved": "Shelved",
    "pending": "Pending changes without files",
    "changed": "Changed, but not opened",
    "missing": "Missing",
    "untracked": "Untracked",
    "unchecked": "Could not be compared",
}


@dataclass(frozen=True, kw_only=True)
class Findings:
    """Work of one kind that retiring would lose."""

    kind: str
    title: str
    found: list[dict[str, Any]]
    count: int
    size_bytes: int

    @property
    def lines(self) -> list[SafeString]:
        """What was found, one by one, as HTML."""
        return [self._line(found) for found in self.found]

    def _line(self, found: dict[str, Any]) -> SafeString:
        match self.kind:
            case "shelved":
                description = Truncator(found["description"]).chars(120)
                of = (found["change"], found["user"], description)
                return format_html("Change <code>{}</code> of {}: {}", *of)
            case "opened":
                name = found["depot_file"]
                aside = f"{found['action']}, change {found['change']}"
            case "unchecked":
                name, aside = found["path"], found["reason"]
            case _:
                return format_html("<code>{}</code>", found["path"])
        return format_html('<code>{}</code> <span class="aside">{}</span>', name, aside)

    @property
    def tally(self) -> str:
        """The total number, and how many are kept here."""
        if self.kind == "shelved" and self.count > len(self.found):
            changes = "change" if len(self.found) == 1 else "changes"
            return f"{self.count:,} files in {len(self.found):,} {changes}"
        if self.count > len(self.found):
            return f"{self.count:,}, {len(self.found)} of them shown"
        if len(self.found) >= FINDINGS_SHOWN:
            return f"the first {len(self.found)}"
        return str(self.count)


def findings_of(found: dict[str, Any] | None, *, root: str = "") -> list[Findings]:
    """Return recorded findings of known kinds, in reading order.

    Paths below `root` are shown relative to it.
    """
    if not found:
        return []
    counts = found.get("counts", {})
    return [
        Findings(
            kind=kind,
            title=title,
            found=[_below(one, root) for one in found[kind]],
            count=counts.get(kind, {}).get("count", len(found[kind])),
            size_bytes=counts.get(kind, {}).get("bytes", 0),
        )
        for kind, title in FINDING_TITLES.items()
        if found.get(kind)
    ]


def _below(one: dict[str, Any], root: str) -> dict[str, Any]:
    if "path" not in one:
        return one
    return {**one, "path": str(one["path"]).removeprefix(root)}


@dataclass(frozen=True, kw_only=True)
class UnsubmittedWork:
    """The known unsubmitted work of a workspace, and when it was found.

    `last` is the newest operation other than a check, `check` the check after it.
    """

    workspace: Workspace
    last: OperationOverview | None
    check: OperationOverview | None

    @property
    def refused(self) -> Operation | None:
        """The newest operation, if it is a retirement that stopped before deleting."""
        if self.last is None:
            return None
        operation = self.last.operation
        is_ready = self.workspace.state == Workspace.State.READY
        has_stopped = operation.state == Operation.State.REFUSED or (
            is_ready and operation.state == Operation.State.FAILED
        )
        return operation if has_stopped else None

    @property
    def can_be_checked(self) -> bool:
        is_ready = self.workspace.state == Workspace.State.READY
        return is_ready and self.workspace.holds_work

    @property
    def is_checking(self) -> bool:
        return self.check is not None and self.check.is_running

    @property
    def failure(self) -> str:
        """Why the last check failed, "" if it did not."""
        failed = self.check if self.check_failed else None
        return failed.operation.status_message if failed else ""

    @property
    def has_result(self) -> bool:
        """Whether there is more to say than that the last check failed."""
        return self.checked_at is not None or not self.check_failed

    @property
    def check_label(self) -> str:
        again = self.checked_at is not None
        return "Check again" if again else "Check for unsubmitted work"

    @property
    def announcement(self) -> str:
        """What a screen reader announces once a check has ended, "" during it."""
        return "" if self.is_checking else self.sentence

    @property
    def check_failed(self) -> bool:
        return (
            self.check is not None
            and self.check.operation.state == Operation.State.FAILED
        )

    @property
    def _seen(self) -> Operation | None:
        """The latest operation that found unsubmitted work, or None.

        Also None during a check, so that a form's choices do not change while somebody
        chooses.
        """
        if self.check is not None and not self.check_failed:
            operation = self.check.operation
            return operation if operation.state == Operation.State.SUCCEEDED else None
        return self.refused if self.refused and self.refused.findings else None

    @property
    def checked_at(self) -> dt.datetime | None:
        return self._seen.ended_at if self._seen else None

    @property
    def needs_check(self) -> bool:
        """Whether the result is too old for a retirement to rely on."""
        if self.check_failed or not self.can_be_checked:
            return False
        seen_at = self.checked_at
        return seen_at is None or timezone.now() - seen_at > CHECK_HOLDS

    @property
    def found(self) -> list[Findings]:
        found = self._seen.findings if self._seen else None
        return findings_of(found, root=f"{self.workspace.path}/")

    @property
    def sentence(self) -> str:
        if self.checked_at is None:
            return "Not checked yet."
        if not self.can_be_rescued:
            return "Unknown: it could not be compared with Perforce."
        count = sum(findings.count for findings in self.found)
        if count == 0:
            return "No unsubmitted work: Perforce has everything that is in it."
        return f"{count:,} {'thing is' if count == 1 else 'things are'} not submitted."

    @property
    def can_be_rescued(self) -> bool:
        """Whether what was found can be rescued; uncompared files cannot."""
        return not any(findings.kind == "unchecked" for findings in self.found)

    @property
    def opened_count(self) -> int:
        """How many files were opened in it when last counted."""
        return int((self.workspace.activity.get("opened") or {}).get("count", 0))

    @property
    def opened_since(self) -> SafeString | str:
        """Return how many files are opened now, or "" if the last check says the same.

        Activity is read more often than workspaces are checked.
        """
        seen_at, checked_at = self.workspace.activity_seen_at, self.checked_at
        if seen_at is None or (checked_at is not None and checked_at >= seen_at):
            return ""
        opened = (found.count for found in self.found if found.kind == "opened")
        if self.opened_count == sum(opened):
            return ""
        are = "file is" if self.opened_count == 1 else "files are"
        since = "Since then: " if checked_at is not None else ""
        return format_html(
            "{}{} {} opened, as of {}.",
            *(since, f"{self.opened_count:,}", are, ago(seen_at)),
        )


def workspaces_with_operations(user: User) -> QuerySet[Workspace]:
    """Return the workspaces a person may see, with their operations and steps."""
    steps = Prefetch("steps", queryset=Step.objects.order_by("position"))
    operations = Operation.objects.select_related("requested_by")
    return (
        workspaces_visible_to(user)
        .select_related("subject")
        .prefetch_related(
            Prefetch("subject__operations", queryset=operations.prefetch_related(steps))
        )
    )


def unsubmitted_work_of(workspace: Workspace) -> UnsubmittedWork:
    """Return the known work of a workspace from `workspaces_with_operations`."""
    there = workspace.operations.all()
    operations = [each for each in there if each.kind not in BESIDE_WORK]
    counted = [
        each
        for each in there
        if each.kind not in BESIDE_WORK or each.kind in FROM_SNAPSHOTS
    ]
    is_checked = bool(counted) and counted[0].kind == WorkspaceOperation.CHECK
    others = [each for each in operations if each.kind != WorkspaceOperation.CHECK]
    return UnsubmittedWork(
        workspace=workspace,
        last=operation_overview(others[0]) if others else None,
        check=operation_overview(operations[0]) if is_checked else None,
    )


def find_unsubmitted_work(user: User, *, pk: int) -> UnsubmittedWork | None:
    """Return the known work of a workspace that the person may see, or None."""
    workspace = workspaces_with_operations(user).filter(pk=pk).first()
    return None if workspace is None else unsubmitted_work_of(workspace)
