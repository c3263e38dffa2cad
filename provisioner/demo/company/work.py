"""What people do with their workspaces: checks, shares, rescues, retirements."""

from __future__ import annotations

import datetime as dt
import hashlib
from typing import Any

from django.conf import settings

from provisioner.accounts.models import User
from provisioner.demo.company.events import Log
from provisioner.demo.company.operations import Course, Engine, Ran
from provisioner.demo.company.people import People
from provisioner.demo.company.studio import Studio
from provisioner.gateways.perforce.specs import split_view_line
from provisioner.workspaces.models import (
    Rescue,
    RetireParameters,
    Share,
    Unsubmitted,
    Workspace,
    WorkspaceOperation,
)

IS_CHECKED, IS_SHARED, IS_REFUSED, IS_LEFT = 0.22, 0.11, 0.04, 0.3
FILES = (
    *("Source/Runtime/Private/Vehicle.cpp", "Source/Runtime/Public/Vehicle.h"),
    *("src/core/Session.cc", "src/core/Session_test.cc", "Config/DefaultGame.ini"),
    *("Content/Maps/Harbor.umap", "assets/checks/Mesh.py", "README.md"),
)
UNTRACKED = ("notes.txt", "Saved/Profiling/run-3.utrace", "todo.md", "crash.dmp")


class Work:
    """Adds the events between the first and the last day of a workspace."""

    def __init__(self, studio: Studio, *, people: People, log: Log) -> None:
        self._studio, self._people, self._log = studio, people, log
        self._has_shared = False

    def go_on(self, workspace: Workspace, *, engine: Engine) -> None:
        """Add what may happen to a workspace in use; for alice, all of it."""
        if workspace.state != Workspace.State.READY or not workspace.holds_work:
            return
        is_alices = workspace.owner == self._people.alice
        if is_alices or not self._has_shared or self._studio.happens(IS_SHARED):
            self._share(workspace)
        if not is_alices and self._studio.happens(IS_REFUSED):
            self._refuse(workspace, engine=engine)
        elif is_alices or self._studio.happens(IS_CHECKED):
            self._check(workspace, engine=engine)

    def is_left(self) -> bool:
        """Return whether somebody leaves work behind that is rescued."""
        return self._studio.happens(IS_LEFT)

    def rescue(self, workspace: Workspace, ran: Ran, *, by: User) -> None:
        """Rescue a workspace's work into shelves, and some into an archive."""
        chance = self._studio.chance
        opened = self._opened(workspace)
        shelf = {
            "change": chance.randrange(1_790_000, 1_800_000),
            "was": "default",
            "files": [file["depot_file"] for file in opened],
            "made_by_us": True,
        }
        files = chance.choice((0, 0, 2, 5, 41))
        tag = workspace.tag.hex[:6]
        place = f"{workspace.owner.username}/{workspace.name}-{tag}"
        directory = str(settings.VAR_DIR / "rescue" / place) if files else ""
        at = ran.steps["work"].ended_at or ran.ended_at
        self._studio.rows.add(
            Rescue(
                workspace=workspace,
                operation=ran.operation,
                has_archive=bool(files),
                directory=directory,
                archived_files=files,
                archived_bytes=files * chance.randrange(2_000, 900_000),
                archive_sha256=hashlib.sha256(place.encode()).hexdigest()
                if files
                else "",
                shelves=[shelf],
                reverted=opened,
                inventory={"opened": {"count": len(opened), "bytes": 48_000}},
                has_work=True,
                is_complete=True,
                created_at=at,
            )
        )
        said = f"{_files(len(opened))} shelved in {shelf['change']}"
        if files:
            said += f"; {_files(files)} archived in {directory}"
        self._log.tell(
            workspace,
            "work_rescued",
            f"Rescued: {said}.",
            at=at,
            by=by,
            data={"directory": directory, "shelves": [{**shelf, "files": len(opened)}]},
        )

    # --- what may happen

    def _share(self, workspace: Workspace) -> None:
        owner, chance = workspace.owner, self._studio.chance
        at = self._lately(workspace)
        person, team = None, owner.team
        if team is None or self._studio.happens(0.7):
            person, team = chance.choice(self._people.developers), None
        if not self._has_shared and owner != self._people.alice:
            person, team = self._people.alice, None
            self._has_shared = True
        if person == owner:
            person = self._people.bob
        self._studio.rows.add(
            Share(
                workspace=workspace,
                person=person,
                team=team,
                created_at=at,
                created_by=owner,
            )
        )
        whom = person.username if person else f"the team {team}"
        self._log.tell(
            workspace,
            "workspace_shared",
            f"Shared with {whom}, who may look.",
            at=at,
            by=owner,
            data={
                "person": person.username if person else "",
                "team": team.name if team else "",
            },
        )

    def _check(self, workspace: Workspace, *, engine: Engine) -> None:
        findings: dict[str, Any] = {"blockers": []}
        is_alices = workspace.owner == self._people.alice
        if is_alices or self._studio.happens(0.7):
            findings |= self._findings(workspace)
        engine.run(
            WorkspaceOperation.CHECK,
            workspace,
            by=workspace.owner,
            at=self._lately(workspace),
            course=Course(findings=findings),
        )

    def _refuse(self, workspace: Workspace, *, engine: Engine) -> None:
        findings = self._findings(workspace)
        count = sum(each["count"] for each in findings["counts"].values())
        message = (
            f"{count:,} things in this workspace are not submitted. Retire it again "
            "and choose whether that is rescued or discarded, or keep it."
        )
        at = self._lately(workspace)
        self._log.tell(
            workspace,
            "workspace_retiring",
            "Asked to retire it.",
            at=at,
            by=workspace.owner,
        )
        ran = engine.run(
            WorkspaceOperation.RETIRE,
            workspace,
            by=workspace.owner,
            at=at,
            course=Course(
                fails_at="unsubmitted",
                is_refused=True,
                code="unsubmitted_work",
                message=message,
                findings=findings,
                parameters=RetireParameters(unsubmitted=Unsubmitted.REFUSE),
            ),
        )
        workspace.status_code, workspace.status_message = "unsubmitted_work", message
        self._log.tell(workspace, "workspace_ready", message, at=ran.ended_at)

    def _lately(self, workspace: Workspace) -> dt.datetime:
        assert workspace.ready_at is not None
        calendar = self._studio.calendar
        after = max(workspace.ready_at, calendar.ago(days=5))
        return calendar.moment(after=after, before=calendar.ago(minutes=2))

    # --- what is found

    def _findings(self, workspace: Workspace) -> dict[str, Any]:
        chance = self._studio.chance
        opened = self._opened(workspace)
        workspace.activity["opened"] = {"count": len(opened)}
        names = chance.sample(UNTRACKED, k=chance.randrange(1, len(UNTRACKED)))
        root = str(workspace.path)
        untracked = [
            {"action": "add", "depot_file": "", "path": f"{root}/{name}"}
            for name in names
        ]
        return {
            "opened": opened,
            "untracked": untracked,
            "counts": {
                "opened": {"count": len(opened), "bytes": 7_400 * len(opened)},
                "untracked": {"count": len(untracked), "bytes": 310_000},
            },
        }

    def _opened(self, workspace: Workspace) -> list[dict[str, Any]]:
        chance = self._studio.chance
        depot = split_view_line(workspace.template.view_lines[0]).depot
        client = workspace.client_name
        names = sorted(chance.sample(FILES, k=chance.randrange(1, 6)))
        return [
            {
                "depot_file": f"{depot.removesuffix('...')}{name}",
                "client_file": f"//{client}/{name}",
                "action": "edit",
                "change": "default",
                "user": workspace.p4_user,
                "client": client,
                "type": "text",
                "revision": 1,
                "moved_file": "",
            }
            for name in names
        ]


def _files(count: int) -> str:
    return f"{count:,} file" if count == 1 else f"{count:,} files"
