"""Bisections of the company, each step in a clone of its own."""

from __future__ import annotations

import datetime as dt
from typing import Any

from provisioner.accounts.models import User
from provisioner.bisect.models import (
    Bisection,
    BisectionChange,
    BisectionOperation,
    BisectionStep,
    Verdict,
)
from provisioner.bisect.search import nearest, search
from provisioner.catalog.models import Snapshot
from provisioner.demo.company.changes import Change, History
from provisioner.demo.company.events import Log
from provisioner.demo.company.operations import Course, Engine
from provisioner.demo.company.people import People
from provisioner.demo.company.pooling import ownership_of
from provisioner.demo.company.studio import Studio
from provisioner.demo.company.templates import Built
from provisioner.engine.models import Subject
from provisioner.workspaces.models import (
    RetireParameters,
    Unsubmitted,
    Workspace,
    WorkspaceOperation,
)

COMMANDS = ("make -j64 game && ./run-test harbor", "sh Build/build.sh && ./smoke.sh")
ENDINGS = ("found", "found", "found", "running", "undecided", "found", "stopped")
W = Workspace.State
S = Bisection.State


class Bisections:
    """Makes bisections of popular templates, most of which found a bad change."""

    def __init__(
        self, studio: Studio, *, people: People, engine: Engine, log: Log
    ) -> None:
        self._studio, self._people = studio, people
        self._engine, self._log = engine, log
        self.made: list[Workspace] = []

    def search(self, templates: list[Built], history: History) -> None:
        """Add a bisection to each template with enough changes."""
        fit = [
            each
            for each in templates
            if len(each.snapshots) > 12 and not each.plan.is_abroad
        ]
        for number, built in enumerate(fit):
            ending = ENDINGS[number % len(ENDINGS)]
            self._search(built, history, ending=ending)

    def _search(self, built: Built, history: History, *, ending: str) -> None:
        chance, calendar = self._studio.chance, self._studio.calendar
        is_running = ending == S.RUNNING
        at = calendar.moment(after=calendar.ago(days=90), before=calendar.ago(days=2))
        if is_running:
            at = calendar.ago(hours=chance.uniform(4, 20))
        known = [each for each in history.of(built.plan.name) if each.at < at]
        number = min(chance.randrange(9, 60), len(known) - 2)
        if number < 5:
            return
        changes = known[-number:]
        owner = chance.choice(self._people.developers)
        first_bad = chance.choice(changes[:-1])
        bisection = self._studio.rows.add(
            Bisection(
                template=built.template,
                owner=owner,
                good=known[-number - 1].number,
                bad=changes[-1].number,
                command="" if is_running else chance.choice(COMMANDS),
                changes_read_at=at,
                created_at=at,
            )
        )
        for each in changes:
            self._studio.rows.add(
                BisectionChange(
                    bisection=bisection,
                    change=each.number,
                    user=each.user.perforce_name,
                    title=each.title,
                )
            )
        self._log.tell(
            bisection,
            "bisection_requested",
            f"Started a search between {bisection.good} and {bisection.bad} of "
            f"{built.template.name} is the first bad one.",
            at=at,
            by=owner,
        )
        self._try_all(bisection, built, changes, first_bad=first_bad, ending=ending)

    def _try_all(
        self,
        bisection: Bisection,
        built: Built,
        changes: list[Change],
        *,
        first_bad: Change,
        ending: str,
    ) -> None:
        numbers = [each.number for each in changes]
        verdicts: dict[int, str] = {}
        at = bisection.created_at + dt.timedelta(seconds=9)
        steps = {S.RUNNING: 2, S.STOPPED: 2, S.UNDECIDED: 3}.get(S(ending), 99)
        number = 0
        while (found := search(numbers, verdicts)).next_change is not None:
            number += 1
            if number > steps and ending != S.RUNNING:
                break
            is_open = number > steps
            change = found.next_change
            step, at = self._try(bisection, built, number, change, at, is_open=is_open)
            if is_open:
                self._wait(bisection, change)
                return
            verdict = Verdict.BAD if change >= first_bad.number else Verdict.GOOD
            verdicts[change] = verdict
            self._decide(bisection, step, verdict, at)
        self._end(bisection, changes, found.first_bad, ending=ending, at=at)

    def _try(
        self,
        bisection: Bisection,
        built: Built,
        number: int,
        change: int,
        at: dt.datetime,
        *,
        is_open: bool,
    ) -> tuple[BisectionStep, dt.datetime]:
        """Test a change; return the step, and when it ended."""
        owner = bisection.owner
        there = [each for each in built.offered if each.created_at < at]
        snapshot = nearest(there, change=change) or built.offered[0]
        workspace = self._clone(bisection, snapshot, number, at)
        step = self._studio.rows.add(
            BisectionStep(
                bisection=bisection,
                workspace=workspace,
                change=change,
                created_at=at,
            )
        )
        self._log.tell(
            workspace,
            "workspace_requested",
            f"Requested a clone of {built.template.name} at change "
            f"{workspace.snapshot.change}, to try change {change} in it.",
            at=at,
            by=owner,
            data={"bisection": bisection.pk},
        )
        ran = self._engine.run(
            BisectionOperation.STEP, workspace, by=owner, at=at, course=Course()
        )
        workspace.ready_at = ran.ended_at
        workspace.ownership = ownership_of(workspace)
        self._log.tell(workspace, "workspace_ready", "Ready.", at=ran.ended_at)
        over_at = min(ran.ended_at + dt.timedelta(minutes=2), self._studio.now)
        if is_open:
            workspace.state = W.READY
            workspace.expires_at = self._studio.calendar.ago(hours=-14)
        else:
            self._put_away(workspace, owner, over_at)
        return step, over_at

    def _clone(
        self, bisection: Bisection, snapshot: Snapshot, number: int, at: dt.datetime
    ) -> Workspace:
        owner = bisection.owner
        assert owner.uid is not None
        assert owner.gid is not None
        workspace = Workspace(
            subject=self._studio.rows.add(Subject(kind="workspace")),
            owner=owner,
            site=bisection.template.site,
            template=bisection.template,
            snapshot=snapshot,
            name=f"bisect-{bisection.pk}-{number}",
            purpose=Workspace.Purpose.BUILD,
            uid=owner.uid,
            gid=owner.gid,
            p4_user=owner.perforce_name,
            state=W.RETIRED,
            tag=self._studio.uuid(),
            client_mark=self._studio.uuid().hex[:16],
            secret=f"{self._studio.chance.getrandbits(128):032x}",
            volume_uuid=str(self._studio.uuid()),
            root_mode="750",
            created_at=at,
        )
        self._studio.rows.add(workspace)
        self.made.append(workspace)
        return workspace

    def _put_away(self, workspace: Workspace, owner: User, at: dt.datetime) -> None:
        workspace.expires_at = at
        self._log.tell(
            workspace, "workspace_retiring", "Its step is over.", at=at, by=owner
        )
        retired = self._engine.run(
            WorkspaceOperation.RETIRE,
            workspace,
            by=owner,
            at=at,
            course=Course(
                parameters=RetireParameters(unsubmitted=Unsubmitted.DISCARD, purge=True)
            ),
        )
        workspace.trashed_at = workspace.purge_at = retired.ended_at
        purged = self._engine.run(
            WorkspaceOperation.PURGE, workspace, by=owner, at=retired.ended_at
        )
        workspace.retired_at, workspace.volume_uuid = purged.ended_at, ""
        for kind, when in (
            ("workspace_trashed", retired.ended_at),
            ("workspace_purging", retired.ended_at),
            ("workspace_retired", purged.ended_at),
        ):
            word = W(kind.removeprefix("workspace_")).label
            self._log.tell(workspace, kind, f"{word}.", at=when)

    # --- what came of it

    def _decide(
        self,
        bisection: Bisection,
        step: BisectionStep,
        verdict: Verdict,
        at: dt.datetime,
    ) -> None:
        step.verdict, step.decided_at = verdict, at
        is_bad = verdict == Verdict.BAD
        step.reason = f"It ended with exit code {1 if is_bad else 0}."
        by = None
        if not bisection.command:
            by = step.decided_by = bisection.owner
            step.reason = f"{bisection.owner} said so."
        self._log.tell(
            bisection,
            "bisection_step_decided",
            f"Change {step.change}: {verdict.label.lower()}. {step.reason}",
            at=at,
            by=by,
            data={"change": step.change, "verdict": verdict},
        )

    def _wait(self, bisection: Bisection, change: int) -> None:
        bisection.state = S.RUNNING
        bisection.status_code = "waits_for_verdict"
        bisection.status_message = f"Change {change} waits for a verdict."

    def _end(
        self,
        bisection: Bisection,
        changes: list[Change],
        first_bad: int | None,
        *,
        ending: str,
        at: dt.datetime,
    ) -> None:
        fields: dict[str, Any] = {"state": S(ending), "ended_at": at}
        by = None
        if first_bad is not None:
            found = next(each for each in changes if each.number == first_bad)
            fields["state"], fields["first_bad"] = S.FOUND, first_bad
            message = (
                f"First bad change {first_bad} by {found.user.perforce_name}: "
                f"{found.title}"
            )
        elif ending == S.UNDECIDED:
            suspects = ", ".join(str(each.number) for each in changes[-3:])
            message = (
                f"The first bad change is one of {suspects}: those before the last "
                "were skipped."
            )
        else:
            by = bisection.owner
            fields |= {"state": S.STOPPED, "status_code": "stopped"}
            message = f"{by} stopped it."
        fields["status_message"] = message
        for name, value in fields.items():
            setattr(bisection, name, value)
        self._log.tell(bisection, f"bisection_{bisection.state}", message, at=at, by=by)
