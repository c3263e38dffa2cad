"""Warm pools of the build farm: claimed members, and remaining ones."""

from __future__ import annotations

import datetime as dt

from provisioner.accounts.models import User
from provisioner.demo.company.events import Log
from provisioner.demo.company.operations import Engine
from provisioner.demo.company.people import People
from provisioner.demo.company.provisioning import Provisioning
from provisioner.demo.company.studio import Studio
from provisioner.demo.company.templates import Built
from provisioner.engine.models import Subject
from provisioner.pools.models import Pool
from provisioner.workspaces.models import Workspace, WorkspaceOperation
from provisioner.workspaces.purposes import CLIENT_TYPES

CI = Workspace.Purpose.CI
IS_WARM = 0.76
SIZES = (8, 6, 4, 4, 3, 2)


class Pooling:
    """Has pools of the most popular templates, and hands out their members."""

    def __init__(
        self,
        studio: Studio,
        *,
        people: People,
        engine: Engine,
        log: Log,
        provisioning: Provisioning,
    ) -> None:
        self._studio, self._people = studio, people
        self._engine, self._log = engine, log
        self._provisioning = provisioning
        self._pools: dict[tuple[int, int], tuple[Pool, Built]] = {}

    def open(self, templates: list[Built]) -> None:
        """Add a pool for each of the most popular templates."""
        popular = sorted(templates, key=lambda each: -each.plan.share)
        farm = self._people.machines[0]
        made_at = self._studio.calendar.ago(days=120)
        there = [each for each in popular if each.snapshots and not each.plan.is_abroad]
        for size, built in zip(SIZES, there, strict=False):
            pool = self._studio.rows.add(
                Pool(
                    template=built.template,
                    site=built.template.site,
                    purpose=CI,
                    owner=farm,
                    size=size,
                    windows=["mon-fri 06:00-20:00 " + str(size)],
                    idle_seconds=7 * 24 * 3600,
                    created_at=made_at,
                    changed_at=made_at,
                )
            )
            self._pools[built.template.pk, farm.pk] = (pool, built)
            self._log.tell(
                pool,
                "pool_made",
                "Made the warm pool.",
                at=made_at,
                by=self._people.admin,
            )

    def pool_for(self, workspace: Workspace) -> Pool | None:
        """Return the pool that a workspace could have come from."""
        if workspace.purpose != CI:
            return None
        found = self._pools.get((workspace.template.pk, workspace.owner.pk))
        if found is None or workspace.created_at < found[0].created_at:
            return None
        return found[0]

    def is_warm(self) -> bool:
        """Return whether a member is available for this request."""
        return self._studio.happens(IS_WARM)

    def claim(self, workspace: Workspace, pool: Pool) -> None:
        """Add a workspace that was claimed from a pool."""
        ahead = dt.timedelta(minutes=self._studio.chance.uniform(12, 600))
        workspace.remote_name = f"pool-{workspace.tag.hex[:12]}"
        workspace.cold_reason = ""
        workspace.made_ahead_at = workspace.created_at - ahead
        ready_at = self._make(workspace, pool, at=workspace.made_ahead_at)
        workspace.seconds_saved = (ready_at - workspace.made_ahead_at).total_seconds()
        workspace.ready_at = workspace.created_at
        self._log.tell(
            workspace,
            "workspace_claimed",
            f"Requested a clone of {workspace.template.name} at change "
            f"{workspace.snapshot.change}, and claimed one from a warm pool.",
            at=workspace.created_at,
            by=workspace.owner,
            data={
                "pool": pool.pk,
                "made_as": workspace.made_as,
                "seconds_saved": workspace.seconds_saved,
            },
        )

    def fill(self) -> list[Workspace]:
        """Fill every pool to its size; return its members."""
        return [
            self._member(pool, built)
            for pool, built in self._pools.values()
            for _ in range(pool.size)
        ]

    def _member(self, pool: Pool, built: Built) -> Workspace:
        calendar = self._studio.calendar
        snapshot, owner = built.default_at(calendar.now), pool.owner
        at = calendar.moment(
            after=max(snapshot.created_at, calendar.ago(hours=20)),
            before=calendar.ago(minutes=4),
        )
        tag = self._studio.uuid()
        name = f"pool-{tag.hex[:12]}"
        assert owner.uid is not None
        assert owner.gid is not None
        member = self._studio.rows.add(
            Workspace(
                subject=self._studio.rows.add(Subject(kind="workspace")),
                owner=owner,
                site=pool.site,
                template=built.template,
                snapshot=snapshot,
                name=name,
                remote_name=name,
                purpose=CI,
                client_type=CLIENT_TYPES[CI],
                pool=pool,
                is_pooled=True,
                uid=owner.uid,
                gid=owner.gid,
                p4_user=owner.perforce_name,
                state=Workspace.State.READY,
                tag=tag,
                client_mark=self._studio.uuid().hex[:16],
                secret=f"{self._studio.chance.getrandbits(128):032x}",
                volume_uuid=str(self._studio.uuid()),
                root_mode="750",
                created_at=at,
                unique_bytes=self._studio.chance.randrange(2**20, 2**27),
                measured_at=calendar.ago(seconds=70),
            )
        )
        member.ready_at = self._make(member, pool, at=at)
        took = member.ready_at - at
        member.seconds_saved = took.total_seconds()
        return member

    def _make(self, member: Workspace, pool: Pool, *, at: dt.datetime) -> dt.datetime:
        """Make a member; return when it was ready."""
        system: User = self._people.system
        self._log.tell(
            member,
            "workspace_pooled",
            f"Made ahead for the warm pool of {pool.owner.username}: a clone of "
            f"{member.template.name} at change {member.snapshot.change}.",
            at=at,
            by=system,
            task="sweep_pools",
            data={"pool": pool.pk},
        )
        ran = self._engine.run(
            WorkspaceOperation.PROVISION,
            member,
            by=system,
            at=at,
            course=self._provisioning.course(member),
            is_background=True,
        )
        member.ownership = ownership_of(member)
        self._log.tell(member, "workspace_ready", "Ready.", at=ran.ended_at)
        return ran.ended_at


def ownership_of(workspace: Workspace) -> dict[str, str]:
    """Return the recorded check of a clone's file owners."""
    return {
        "by": "ontap",
        "sentence": f"The clone belongs to uid {workspace.uid}, gid {workspace.gid}: "
        "200 sampled entries agree.",
    }
