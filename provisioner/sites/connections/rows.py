"""The one writer of results of connection tests."""

from __future__ import annotations

import datetime as dt
import socket
from collections.abc import Iterable
from typing import Any

from django.db import transaction
from procrastinate.contrib.django import app

from provisioner.accounts.models import User
from provisioner.engine.deferring import defer_once
from provisioner.engine.queues import PERFORCE, STORAGE
from provisioner.lib import clocks
from provisioner.lib.storable import shown
from provisioner.sites.connections.checklist import Check
from provisioner.sites.models import (
    ConnectionCheck,
    ConnectionTest,
    PerforceServer,
    Site,
)

LOOK = "check_connection"

Outcome = ConnectionCheck.Outcome
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
        test, _ = ConnectionTest.objects.update_or_create(
            **_about(about),
            place=place,
            defaults={
                "asked_at": asked_at,
                "asked_by": by,
                "checked_at": None,
                "host": "",
            },
        )
        test.checks.all().delete()


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
    tests = ConnectionTest.objects.filter(**_about(about), place=place)
    with transaction.atomic():
        test = tests.select_for_update(no_key=True).first()
        if test is not None:
            test.checked_at = clocks.database_now()
            test.host = socket.gethostname()
            test.save(update_fields=["checked_at", "host"])
            test.checks.all().delete()
            _write(found, test)


def keep_of_host(site: Site, host: str, found: Iterable[Check]) -> None:
    """Add what is wrong on one of many hosts to the results of the host place.

    It replaces earlier findings about this host. The results of a test in progress are
    left alone.
    """
    tests = ConnectionTest.objects.filter(
        site=site, place=Place.HOST, checked_at__isnull=False
    )
    with transaction.atomic():
        test = tests.select_for_update(no_key=True).first()
        if test is not None:
            test.checks.filter(about_host=host).delete()
            wrong = [check for check in found if check.outcome == Outcome.FAILED]
            _write(wrong, test, about_host=host)


def _write(found: Iterable[Check], test: ConnectionTest, **columns: str) -> None:
    ConnectionCheck.objects.bulk_create(
        ConnectionCheck(
            test=test,
            name=check.name,
            outcome=check.outcome,
            sentence=shown(check.sentence),
            advice=shown(check.advice),
            **columns,
        )
        for check in found
    )


def _about(about: Site | PerforceServer) -> dict[str, Any]:
    return {"site": about} if isinstance(about, Site) else {"server": about}
