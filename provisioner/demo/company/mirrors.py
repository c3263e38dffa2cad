"""Mirrors of the studio's templates abroad: up to date, behind, and failed."""

from __future__ import annotations

import datetime as dt

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot
from provisioner.demo.company.events import Log
from provisioner.demo.company.operations import Course, Engine
from provisioner.demo.company.places import Places
from provisioner.demo.company.studio import Studio
from provisioner.demo.company.templates import Built
from provisioner.engine.models import Subject
from provisioner.mirrors import advice
from provisioner.mirrors.models import (
    Mirror,
    MirroredSnapshot,
    MirrorOperation,
    TransferParameters,
)

BYTES_PER_SECOND = 180 * 2**20
DAYS_OLD = 40


class Mirrors:
    """Makes three mirrors, with what their operations and snapshots would be."""

    def __init__(
        self, studio: Studio, *, places: Places, admin: User, engine: Engine, log: Log
    ) -> None:
        self._studio, self._places, self._admin = studio, places, admin
        self._engine, self._log = engine, log

    def keep(self, templates: list[Built]) -> list[Mirror]:
        """Mirror the first three templates at home that have several snapshots."""
        at_home = [
            built
            for built in templates
            if len(built.offered) > 1 and not built.plan.is_abroad
        ]
        makers = (self._make_up_to_date, self._make_behind, self._make_failed)
        return [make(built) for make, built in zip(makers, at_home, strict=False)]

    def _make_up_to_date(self, built: Built) -> Mirror:
        return self._fill(built, built.offered, start=Mirror.Start.AT_ONCE)

    def _make_behind(self, built: Built) -> Mirror:
        return self._fill(built, built.offered[:-1], start=Mirror.Start.BY_HAND)

    def _mirror(self, built: Built, **fields: object) -> Mirror:
        template, site = built.template, self._places.abroad
        at = self._studio.calendar.ago(days=DAYS_OLD)
        mirror = self._studio.rows.add(
            Mirror(
                subject=self._studio.rows.add(Subject(kind="mirror")),
                template=template,
                site=site,
                name=f"{template.name} at {site.name}",
                tag=self._studio.uuid(),
                created_at=at,
                **fields,
            )
        )
        message = f"Mirror {template.name} to {site.name}."
        self._log.tell(mirror, "mirror_creating", message, at=at, by=self._admin)
        return mirror

    def _fill(
        self, built: Built, snapshots: list[Snapshot], *, start: Mirror.Start
    ) -> Mirror:
        mirror = self._mirror(
            built,
            start=start,
            state=Mirror.State.READY,
            volume_uuid=str(self._studio.uuid()),
            relationship_uuid=str(self._studio.uuid()),
            checked_at=self._studio.calendar.ago(seconds=40),
        )
        made = self._engine.run(
            MirrorOperation.CREATE, mirror, by=self._admin, at=mirror.created_at
        )
        self._log.tell(mirror, "mirror_ready", "Ready.", at=made.ended_at)
        for snapshot in snapshots:
            self._transfer(mirror, snapshot)
        return mirror

    def _transfer(self, mirror: Mirror, snapshot: Snapshot) -> None:
        now, size = self._studio.now, mirror.template.used_bytes or 0
        moved = int(size * self._studio.chance.uniform(0.02, 0.09))
        seconds = moved / BYTES_PER_SECOND
        mirrored = self._studio.rows.add(
            MirroredSnapshot(
                mirror=mirror,
                snapshot=snapshot,
                ontap_uuid=str(self._studio.uuid()),
                state=MirroredSnapshot.State.AVAILABLE,
                bytes=moved,
                seconds=seconds,
            )
        )
        at = max(snapshot.created_at, mirror.created_at + dt.timedelta(minutes=1))
        ran = self._engine.run(
            MirrorOperation.TRANSFER,
            mirror,
            by=self._admin,
            at=min(at, now),
            course=Course(
                seconds={"transfer": seconds},
                parameters=TransferParameters(mirrored=mirrored.pk),
            ),
        )
        mirrored.arrived_at = ran.ended_at
        message = f"{snapshot.name} is available at {mirror.site.name}."
        self._log.tell(mirror, "mirror_ready", message, at=ran.ended_at)

    def _make_failed(self, built: Built) -> Mirror:
        message = advice.on_peering(self._places.abroad, self._places.home, None)
        course = Course(fails_at="peered", code="mirror_not_peered", message=message)
        mirror = self._mirror(
            built,
            state=Mirror.State.FAILED,
            status_code=course.code,
            status_message=message,
        )
        ran = self._engine.run(
            MirrorOperation.CREATE,
            mirror,
            by=self._admin,
            at=mirror.created_at,
            course=course,
        )
        mirror.failed_at = ran.ended_at
        self._log.tell(mirror, "mirror_failed", message, at=ran.ended_at)
        return mirror
