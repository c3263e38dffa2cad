"""The one writer of results of connection tests."""

from __future__ import annotations

import datetime as dt
import socket
from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any

from django.db import transaction
from procrastinate.contrib.django import app

from provisioner.accounts.models import User
from provisioner.engine.queueing import defer_once
from provisioner.engine.queues import PERFORCE, STORAGE
from provisioner.lib import clocks
from provisioner.sites.connections.checklist import Check
from provisioner.sites.models import ConnectionTest, PerforceServer, Site

LOOK = "check_connection"

Place = ConnectionTest.Place


def queues_of(about: Site | PerforceServer) -> dict[str, str]:
    """Return, by place, the queue whose workers test a site or server from there."""
    if isinstance(about, Site):
        host = about.host_queue
        return {Place.WORKER: STORAGE, Place.HOST: host, Place.TRIAL: host}
    return {Place.WORKER: PERFORCE}


def ask(about: Site | PerforceServer, *, by: User, asked_at: dt.datetime) -> None:
    """Ask every place to test the connection, and delete the earlier results."""
    places = [place for place in queues_of(about) if place != Place.TRIAL]
    _forget(about, [Place.WEB, *places], by=by, asked_at=asked_at)
    for place in places:
        _defer_check(about, place)


def ask_for_trial(site: Site, *, by: User) -> None:
    """Ask a host of the site to try everything with a small volume."""
    _forget(site, [Place.TRIAL], by=by, asked_at=clocks.database_now())
    _defer_check(site, Place.TRIAL)


def _forget(
    about: Site | PerforceServer,
    places: Iterable[str],
    *,
    by: User,
    asked_at: dt.datetime,
) -> None:
    for place in places:
        ConnectionTest.objects.update_or_create(
            **_about(about),
            place=place,
            defaults={
                "asked_at": asked_at,
                "asked_by": by,
                "checked_at": None,
                "host": "",
                "checks": [],
            },
        )


def _defer_check(about: Site | PerforceServer, place: str) -> None:
    """Queue a test in the current transaction; one at a time from each place."""
    [kind] = _about(about)
    one_of_them = f"{LOOK}.{kind}.{about.pk}.{place}"
    job = app.configure_task(
        LOOK,
        queue=queues_of(about)[place],
        lock=one_of_them,
        queueing_lock=one_of_them,
    )
    defer_once(job, kind=kind, about_id=about.pk, place=str(place))


def keep(about: Site | PerforceServer, place: str, found: Iterable[Check]) -> None:
    """Save the results from a place, unless the test was superseded."""
    ConnectionTest.objects.filter(**_about(about), place=place).update(
        checked_at=clocks.database_now(),
        host=socket.gethostname(),
        checks=[asdict(check) for check in found],
    )


def keep_of_host(site: Site, host: str, found: Iterable[Check]) -> None:
    """Add what is wrong on one of many hosts to the results of the host place.

    Earlier findings about this host that are no longer true are removed. The results of
    a test in progress are left alone.
    """
    wrong = [
        asdict(replace(check, sentence=f"{_of_host(host)}{check.sentence}"))
        for check in found
        if check.outcome == ConnectionTest.Outcome.FAILED
    ]
    with transaction.atomic():
        row = (
            ConnectionTest.objects.select_for_update(no_key=True)
            .filter(site=site, place=Place.HOST, checked_at__isnull=False)
            .first()
        )
        if row is not None:
            others = [
                check
                for check in row.checks
                if not check["sentence"].startswith(_of_host(host))
            ]
            row.checks = [*others, *wrong]
            row.save(update_fields=["checks"])


def _of_host(host: str) -> str:
    return f"On the host {host}: "


def _about(about: Site | PerforceServer) -> dict[str, Any]:
    return {"site": about} if isinstance(about, Site) else {"server": about}
