"""The audit log of the studio: who did what, by which means, from where."""

from __future__ import annotations

import datetime as dt
import hashlib
from typing import Any

from django.db.models import Model

from provisioner.accounts.models import User
from provisioner.audit_log.actions import kind_of
from provisioner.audit_log.models import Event
from provisioner.demo.company.people import address_of, agent_of
from provisioner.demo.company.studio import Studio

WORKERS = ("build-host-01", "build-host-02", "build-host-03", "storage-worker-01")


class Log:
    """Makes events as `record_event` would have written them at the time."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio

    def tell(
        self,
        subject: Model | None,
        kind: str,
        message: str,
        *,
        at: dt.datetime,
        by: User | None = None,
        task: str = "run_step",
        reason: str = "",
        data: dict[str, Any] | None = None,
    ) -> None:
        """Add an event by a person, or by a worker's job."""
        is_ours = by is None or by.username.startswith("cloneyard.")
        self._studio.rows.add_later(
            Event(
                at=at,
                kind=kind,
                message=message,
                reason=reason,
                actor=by,
                actor_name=by.username if by else "",
                via=self._job(task) if is_ours or by is None else _means(by, at),
                ip=None if is_ours or by is None else address_of(by),
                user_agent="" if is_ours or by is None else agent_of(by),
                data=data or {},
                **_about(subject),
            )
        )

    def _job(self, task: str) -> str:
        chance = self._studio.chance
        job = chance.randrange(20_000, 900_000)
        return f"worker {chance.choice(WORKERS)}, job {job} ({task})"


def _means(user: User, at: dt.datetime) -> str:
    """Return the session of a person's week, or a machine's token."""
    week = at.isocalendar().week
    key = hashlib.sha256(f"{user.username} {week}".encode()).hexdigest()
    return f"token {key[:15]}" if user.is_service else f"session {key[:8]}"


def _about(subject: Model | None) -> dict[str, Any]:
    if subject is None:
        return {}
    kind = kind_of(subject)
    name = subject.username if isinstance(subject, User) else None
    fields: dict[str, Any] = {
        "subject_kind": kind,
        "subject_id": subject.pk,
        "subject": (name or str(getattr(subject, "name", subject)))[:200],
    }
    if kind in (Event.SubjectKind.WORKSPACE, Event.SubjectKind.TEMPLATE):
        fields[kind.value] = subject
    return fields
