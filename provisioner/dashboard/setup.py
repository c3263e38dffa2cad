"""The setup steps that remain before people can get workspaces.

No remote call. Later milestones imply earlier ones: a snapshot proves a working site.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot, Template
from provisioner.engine.workers import AliveWorker, alive_workers
from provisioner.sites.models import PerforceServer, Site
from provisioner.sites.queries import (
    Connection,
    Health,
    connection_of,
)
from provisioner.workspaces.models import Workspace

ADMINISTRATORS_NAMED = 5

_Row = TypeVar("_Row", Template, Workspace)


class Progress(StrEnum):
    """The progress of a setup step."""

    DONE = "done"
    TODO = "todo"
    MOVING = "moving"
    FAILED = "failed"
    LATER = "later"


@dataclass(frozen=True, kw_only=True)
class Milestone:
    """One step of setup.

    `about` is its row so far, or None; `reason` says what went wrong, "" for readers
    who cannot fix it.
    """

    name: str
    title: str
    progress: Progress
    about: Site | PerforceServer | Template | Workspace | None = None
    connection: Connection | None = None
    reason: str = ""

    @property
    def is_done(self) -> bool:
        return self.progress == Progress.DONE

    @property
    def is_open(self) -> bool:
        """Whether it is the next thing to do."""
        return self.progress in (Progress.TODO, Progress.MOVING, Progress.FAILED)

    @property
    def may_change(self) -> bool:
        """Whether it can change without an action on this page."""
        is_tested = self.connection is not None and self.connection.is_waiting
        return self.progress == Progress.MOVING or (self.is_open and is_tested)


@dataclass(frozen=True, kw_only=True)
class Setup:
    """The steps from an empty installation to the first workspace, in order."""

    milestones: tuple[Milestone, ...]
    administrators: list[str]

    @property
    def done_count(self) -> int:
        return sum(milestone.is_done for milestone in self.milestones)

    @property
    def is_moving(self) -> bool:
        return any(milestone.may_change for milestone in self.milestones)

    @property
    def announcement(self) -> str:
        """What a screen reader announces when it changes."""
        for milestone in self.milestones:
            if milestone.is_open:
                said = {
                    Progress.TODO: "is next",
                    Progress.MOVING: "is under way",
                    Progress.FAILED: "has failed",
                }
                return (
                    f"{milestone.title} {said[milestone.progress]}. {milestone.reason}"
                )
        return ""


def setup_for(user: User) -> Setup | None:
    """Return the setup; None once anybody has had a workspace."""
    if Workspace.objects.filter(ready_at__isnull=False).exists():
        return None
    workers = alive_workers()
    servers = PerforceServer.objects.prefetch_related("connection_tests__checks")
    sites = Site.objects.prefetch_related("connection_tests__checks")
    found = [
        _connected("perforce", "Connect Perforce", servers, workers=workers),
        _connected("site", "Connect a site", sites, workers=workers),
        _template(),
        _workspace(user),
    ]
    return Setup(
        milestones=_in_order(found, tells_why=user.is_administrator),
        administrators=_administrators_other_than(user),
    )


def _in_order(found: Sequence[Milestone], *, tells_why: bool) -> tuple[Milestone, ...]:
    """Mark steps before a done one as done, and steps after an open one as later."""
    last_done = max((n for n, each in enumerate(found) if each.is_done), default=-1)
    ordered: list[Milestone] = []
    for number, each in enumerate(found):
        progress = each.progress
        if number <= last_done:
            progress = Progress.DONE
        elif ordered and not ordered[-1].is_done:
            progress = Progress.LATER
        reason = each.reason if progress == Progress.FAILED and tells_why else ""
        ordered.append(replace(each, progress=progress, reason=reason))
    return tuple(ordered)


def _connected(
    name: str,
    title: str,
    rows: Iterable[Site | PerforceServer],
    *,
    workers: list[AliveWorker],
) -> Milestone:
    """Return the milestone of a working system, else of the latest one."""
    health = {
        Health.WELL: Progress.DONE,
        Health.FAILED: Progress.FAILED,
        Health.LOOKING: Progress.MOVING,
        Health.UNKNOWN: Progress.TODO,
    }
    milestone = Milestone(name=name, title=title, progress=Progress.TODO)
    for row in rows:
        connection = connection_of(row, workers=workers)
        milestone = Milestone(
            name=name,
            title=title,
            progress=health[connection.health],
            about=row,
            connection=connection,
            reason=connection.first_failure,
        )
        if milestone.is_done:
            break
    return milestone


def _template() -> Milestone:
    moves = {
        Template.State.BUILDING: Progress.MOVING,
        Template.State.FAILED: Progress.FAILED,
    }

    published = set(Snapshot.objects.available().values_list("template_id", flat=True))

    def progress_of(template: Template) -> Progress:
        if template.pk in published:
            return Progress.DONE
        return moves.get(Template.State(template.state), Progress.TODO)

    template, progress = _furthest(Template.objects.order_by("pk"), progress_of)
    return Milestone(
        name="template",
        title="Build the first template",
        progress=progress,
        about=template,
        reason=template.status_message if template else "",
    )


def _workspace(user: User) -> Milestone:
    moves = {
        Workspace.State.PROVISIONING: Progress.MOVING,
        Workspace.State.FAILED: Progress.FAILED,
    }

    def progress_of(workspace: Workspace) -> Progress:
        return moves.get(Workspace.State(workspace.state), Progress.TODO)

    mine = Workspace.objects.filter(owner=user, state__in=moves).order_by("pk")
    workspace, progress = _furthest(mine, progress_of)
    return Milestone(
        name="workspace",
        title="Get the first workspace",
        progress=progress,
        about=workspace,
        reason=workspace.status_message if workspace else "",
    )


def _furthest(
    rows: Iterable[_Row], progress_of: Callable[[_Row], Progress]
) -> tuple[_Row | None, Progress]:
    """Return the most advanced row and its progress; None and TODO without rows."""
    order = (Progress.TODO, Progress.FAILED, Progress.MOVING, Progress.DONE)
    found = [(row, progress_of(row)) for row in rows]
    return max(
        found, key=lambda each: order.index(each[1]), default=(None, Progress.TODO)
    )


def _administrators_other_than(user: User) -> list[str]:
    names = User.objects.filter(is_active=True, is_staff=True).exclude(pk=user.pk)
    return list(
        names.order_by("username").values_list("username", flat=True)[
            :ADMINISTRATORS_NAMED
        ]
    )
