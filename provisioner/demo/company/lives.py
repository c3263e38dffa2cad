"""The life of each workspace, from its request to its current state."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict

from provisioner.accounts.models import User
from provisioner.demo.company.events import Log
from provisioner.demo.company.fates import HOUR, Fate
from provisioner.demo.company.leases import Leases
from provisioner.demo.company.operations import Course, Engine, Ran
from provisioner.demo.company.people import People
from provisioner.demo.company.pooling import Pooling, ownership_of
from provisioner.demo.company.provisioning import Provisioning
from provisioner.demo.company.signs import Signs
from provisioner.demo.company.studio import Studio
from provisioner.demo.company.transfers import Transfers
from provisioner.demo.company.work import Work
from provisioner.engine.models import Step, Subject
from provisioner.gateways.perforce.specs import render_client_spec
from provisioner.lib.names import LONGEST_NAME
from provisioner.lib.times import recorded
from provisioner.transfer.models import TransferOperation
from provisioner.workspaces.models import (
    RetireParameters,
    Unsubmitted,
    Workspace,
    WorkspaceClient,
    WorkspaceOperation,
)
from provisioner.workspaces.purposes import CLIENT_TYPES
from provisioner.workspaces.steps.provision import client_spec_of

W = Workspace.State
P = Workspace.Purpose
TRASH = dt.timedelta(hours=72)
ROOT_MODE = "750"


class Lives:
    """Makes workspaces according to their fates, with their whole history."""

    def __init__(
        self, studio: Studio, *, people: People, engine: Engine, log: Log
    ) -> None:
        self._studio, self._people = studio, people
        self._engine, self._log = engine, log
        self.leases = Leases(studio, people=people, log=log)
        self._signs = Signs(studio)
        self._work = Work(studio, people=people, log=log)
        self._transfers = Transfers(studio, log=log)
        self.provisioning = Provisioning(studio)
        self.pooling = Pooling(
            studio,
            people=people,
            engine=engine,
            log=log,
            provisioning=self.provisioning,
        )
        self._taken: defaultdict[int, set[str]] = defaultdict(set)
        self.made: list[Workspace] = []

    def live(self, fate: Fate) -> Workspace:
        """Add a workspace with its whole history."""
        workspace = self._row(fate)
        self.made.append(workspace)
        pool = self.pooling.pool_for(workspace)
        if pool is not None:
            workspace.pool = pool
        if pool is not None and workspace.state != W.FAILED and self.pooling.is_warm():
            self.pooling.claim(workspace, pool)
        else:
            self._provision(workspace)
        if workspace.state in (W.PROVISIONING,) or workspace.ready_at is None:
            return workspace
        self._signs.show(workspace)
        end = self._end_of(workspace)
        self.leases.keep_until(workspace, end)
        if workspace.state in (W.READY, W.FAILED):
            self._work.go_on(workspace, engine=self._engine)
            return workspace
        self._retire(workspace, at=end)
        return workspace

    # --- the row

    def _row(self, fate: Fate) -> Workspace:
        rows, template = self._studio.rows, fate.built.template
        owner = fate.owner
        assert owner.uid is not None
        assert owner.gid is not None
        workspace = Workspace(
            subject=rows.add(Subject(kind="workspace")),
            owner=owner,
            site=template.site,
            template=template,
            snapshot=fate.built.default_at(fate.at),
            purpose=fate.purpose,
            client_type=CLIENT_TYPES.get(fate.purpose, ""),
            token=self._people.tokens.get(owner.pk) if owner.is_service else None,
            cold_reason=Workspace.ColdReason.NO_POOL,
            uid=owner.uid,
            gid=owner.gid,
            p4_user=owner.perforce_name,
            state=fate.state,
            tag=self._studio.uuid(),
            client_mark=self._studio.uuid().hex[:16],
            secret=f"{self._studio.chance.getrandbits(128):032x}",
            volume_uuid=str(self._studio.uuid()),
            root_mode=ROOT_MODE,
            created_at=fate.at,
        )
        rows.add(workspace)
        workspace.name = self._name(workspace)
        for absent in ("bisection_step", "transfer"):
            # Nothing is looked up for these: neither is there yet.
            related = getattr(Workspace, absent).related
            related.set_cached_value(workspace, None)
        return workspace

    def _name(self, workspace: Workspace) -> str:
        template, owner = workspace.template, workspace.owner
        base = f"{owner.username}-{template.name}"
        if workspace.purpose != P.DEVELOPMENT:
            suffix = f"-{workspace.pk}"
            return f"{base[: LONGEST_NAME - len(suffix)].rstrip('-')}{suffix}"
        base, number = base[:34].rstrip("-"), 1
        taken = self._taken[workspace.site.pk]
        name = base
        while name in taken:
            number += 1
            name = f"{base}-{number}"
        if workspace.state != W.RETIRED:
            taken.add(name)
        return name

    # --- the request

    def _provision(self, workspace: Workspace) -> None:
        snapshot, at = workspace.snapshot, workspace.created_at
        source = self._transfers.source_for(workspace)
        with_work = f", with the work of {source.name}" if source else ""
        self._log.tell(
            workspace,
            "workspace_requested",
            f"Requested a clone of {workspace.template.name} at change "
            f"{snapshot.change}{with_work}.",
            at=at,
            by=workspace.owner,
        )
        course = self.provisioning.course(workspace)
        ran = self._engine.run(
            TransferOperation.TRANSFER if source else WorkspaceOperation.PROVISION,
            workspace,
            by=workspace.owner,
            at=at + dt.timedelta(milliseconds=6),
            course=course,
        )
        if source is not None:
            self._transfers.take_over(source, workspace, ran)
        if workspace.state == W.PROVISIONING:
            workspace.volume_uuid = ""
            self.leases.first(workspace)
            return
        if course.fails_at:
            self._fail(workspace, ran, course)
            self.leases.first(workspace)
            return
        workspace.ready_at = ran.ended_at
        workspace.ownership = ownership_of(workspace)
        self._log.tell(workspace, "workspace_ready", "Ready.", at=ran.ended_at)

    def _fail(self, workspace: Workspace, ran: Ran, course: Course) -> None:
        workspace.failed_at = ran.ended_at
        workspace.status_code, workspace.status_message = course.code, course.message
        if ran.steps["clone"].state != Step.State.DONE:
            workspace.volume_uuid = ""
        self._log.tell(workspace, "workspace_failed", course.message, at=ran.ended_at)

    # --- the end

    def _end_of(self, workspace: Workspace) -> dt.datetime:
        """Return when it was retired; now if it was not."""
        calendar, chance = self._studio.calendar, self._studio.chance
        if workspace.state in (W.READY, W.FAILED):
            return calendar.now
        assert workspace.ready_at is not None
        ready_at = workspace.ready_at
        if workspace.state in (W.TRASHED, W.RESTORING):
            after = max(ready_at + HOUR, calendar.ago(hours=70))
            return calendar.moment(after=after, before=calendar.ago(minutes=20))
        if workspace.state == W.PURGING:
            return calendar.now - TRASH - dt.timedelta(minutes=chance.uniform(1, 6))
        if workspace.state == W.RETIRING:
            return calendar.ago(minutes=chance.uniform(3, 200))
        if workspace.purpose != P.DEVELOPMENT:
            lived = dt.timedelta(minutes=chance.lognormvariate(3.4, 0.8))
            return min(ready_at + lived, calendar.ago(hours=1))
        latest = calendar.ago(days=3.2)
        lived = dt.timedelta(days=1 + chance.expovariate(1 / 18))
        return min(max(ready_at + HOUR, ready_at + lived), latest)

    def _retire(self, workspace: Workspace, *, at: dt.datetime) -> None:
        """Retire it, as far as its current state says."""
        is_for_work = workspace.purpose in (P.DEVELOPMENT, P.CI_EDIT)
        by, reason, unsubmitted = self._why_retired(workspace, at)
        self._log.tell(
            workspace,
            "workspace_retiring",
            reason,
            at=at,
            by=by,
            task="sweep_leases",
        )
        parameters = RetireParameters(unsubmitted=unsubmitted)
        rescued = (
            is_for_work and unsubmitted == Unsubmitted.RESCUE and self._work.is_left()
        )
        course = Course(parameters=parameters)
        if workspace.state == W.RETIRING:
            stands_at = "unsubmitted" if unsubmitted == Unsubmitted.REFUSE else "work"
            course = Course(parameters=parameters, stands_at=stands_at)
        ran = self._engine.run(
            WorkspaceOperation.RETIRE,
            workspace,
            by=by,
            at=at + dt.timedelta(milliseconds=4),
            course=course,
        )
        if workspace.state == W.RETIRING:
            return
        if rescued:
            self._work.rescue(workspace, ran, by=by)
        if workspace.client_name:
            self._studio.rows.add(
                WorkspaceClient(
                    workspace=workspace,
                    state=WorkspaceClient.State.DELETED,
                    spec=render_client_spec(client_spec_of(workspace)),
                    since=ran.operation,
                    given_back_at=None,
                )
            )
        self._trash(workspace, ran, by=by)

    def _why_retired(
        self, workspace: Workspace, at: dt.datetime
    ) -> tuple[User, str, str]:
        """Return who requested it, why, and what was to happen to work."""
        owner = workspace.owner
        if owner.is_service:
            return owner, "Asked to retire it.", Unsubmitted.DISCARD
        if self._studio.happens(0.35):
            workspace.expires_at = at - dt.timedelta(seconds=20)
            reason = f"Its lease ended on {recorded(workspace.expires_at)}."
            return self._people.system, reason, Unsubmitted.RESCUE
        if self._studio.happens(0.25):
            asked = "Asked to retire it and rescue unsubmitted work."
            return owner, asked, Unsubmitted.RESCUE
        return owner, "Asked to retire it.", Unsubmitted.REFUSE

    def _trash(self, workspace: Workspace, ran: Ran, *, by: User) -> None:
        is_kept = workspace.purpose == P.DEVELOPMENT
        workspace.trashed_at = ran.ended_at
        workspace.purge_at = ran.ended_at + (TRASH if is_kept else TRASH * 0)
        self._log.tell(workspace, "workspace_trashed", "In the trash.", at=ran.ended_at)
        if by == self._people.system:
            self.leases.tell_of_trash(workspace, ran)
        if workspace.state == W.TRASHED:
            return
        if workspace.state == W.RESTORING:
            self._restore(workspace)
            return
        self._purge(workspace, by=by, is_kept=is_kept)

    def _restore(self, workspace: Workspace) -> None:
        assert workspace.trashed_at is not None
        at = self._studio.calendar.moment(
            after=max(workspace.trashed_at, self._studio.calendar.ago(hours=4)),
            before=self._studio.calendar.now,
        )
        self._log.tell(
            workspace,
            "workspace_restoring",
            "Asked to restore it.",
            at=at,
            by=workspace.owner,
        )
        ran = self._engine.run(
            WorkspaceOperation.RESTORE,
            workspace,
            by=workspace.owner,
            at=at,
            course=Course(stands_at="client"),
        )
        if workspace.client_name:
            workspace.client.given_back_at = ran.steps["clone"].ended_at

    def _purge(self, workspace: Workspace, *, by: User, is_kept: bool) -> None:
        assert workspace.purge_at is not None
        at = workspace.purge_at + dt.timedelta(seconds=75 if is_kept else 0.1)
        at = min(at, self._studio.now)
        by = self._people.system if is_kept else by
        message = "Purge requested." if is_kept else "Being purged."
        self._log.tell(
            workspace, "workspace_purging", message, at=at, by=by, task="sweep_leases"
        )
        is_stuck = workspace.state == W.PURGING
        ran = self._engine.run(
            WorkspaceOperation.PURGE,
            workspace,
            by=by,
            at=at,
            course=Course(stands_at="delete") if is_stuck else Course(),
        )
        if is_stuck:
            return
        workspace.retired_at = ran.ended_at
        workspace.volume_uuid = ""
        self._log.tell(workspace, "workspace_retired", "Retired.", at=ran.ended_at)
