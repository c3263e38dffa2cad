"""The one writer of tests of connections."""

from __future__ import annotations

import datetime as dt
import socket
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from django.utils import timezone
from procrastinate.contrib.django import app

from provisioner.accounts.models import User
from provisioner.workspaces.connections.checklist import Check
from provisioner.workspaces.models import ConnectionTest, PerforceServer, Site
from provisioner.workspaces.queueing import defer_once
from provisioner.workspaces.workflow import PERFORCE, STORAGE

LOOK = "look_at_connection"

Place = ConnectionTest.Place


def queues_of(about: Site | PerforceServer) -> dict[str, str]:
    """Return by place the queue whose workers look at a site or server from there."""
    if isinstance(about, Site):
        return {Place.WORKER: STORAGE, Place.HOST: about.host_queue}
    return {Place.WORKER: PERFORCE}


def ask(about: Site | PerforceServer, *, by: User, asked_at: dt.datetime) -> None:
    """Have every place look anew, and forget what was found there before."""
    for place in (Place.WEB, *queues_of(about)):
        ConnectionTest.objects.update_or_create(
            **_about(about),
            place=place,
            defaults={
                "asked_at": asked_at,
                "asked_by": by,
                "looked_at": None,
                "host": "",
                "checks": [],
            },
        )
    [kind] = _about(about)
    for place, queue in queues_of(about).items():
        job = app.configure_task(
            LOOK, queue=queue, queueing_lock=f"{LOOK}.{kind}.{about.pk}.{place}"
        )
        defer_once(job, kind=kind, about_id=about.pk, place=str(place))


def keep(about: Site | PerforceServer, place: str, found: Iterable[Check]) -> None:
    """Write down what was found from a place, unless nobody asks any more."""
    ConnectionTest.objects.filter(**_about(about), place=place).update(
        looked_at=timezone.now(),
        host=socket.gethostname(),
        checks=[asdict(check) for check in found],
    )


def _about(about: Site | PerforceServer) -> dict[str, Any]:
    return {"site": about} if isinstance(about, Site) else {"server": about}
