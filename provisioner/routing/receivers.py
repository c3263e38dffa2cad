"""Add what attempts at steps asked of Perforce servers to the traffic of the day."""

from __future__ import annotations

import datetime as dt
from dataclasses import asdict
from typing import Any

from django.db.models import F
from django.dispatch import receiver

from provisioner.engine.events import attempt_ended
from provisioner.engine.models import Step
from provisioner.gateways.perforce.meter import Usages
from provisioner.lib import clocks
from provisioner.routing.models import Routed, TrafficDay
from provisioner.sites.models import PerforceServer

DAYS_KEPT = 400
"""Thirteen months, as of the capacity of sites."""


@receiver(attempt_ended, sender=Step)
def add_traffic(*, step: Step, usages: Usages, **_: Any) -> None:
    row = step.operation.subject.row
    if not usages or not isinstance(row, Routed):
        return
    servers = dict(
        PerforceServer.objects.filter(p4port__in=usages)
        .order_by("-pk")
        .values_list("p4port", "pk")
    )
    day = clocks.database_now().date()
    # In the same order everywhere: others add to the same rows.
    for port in sorted(servers, key=lambda port: servers[port]):
        amounts = asdict(usages[port])
        _row, is_new = TrafficDay.objects.update_or_create(
            day=day,
            server_id=servers[port],
            purpose=row.used_for,
            account_id=row.owner_id,
            defaults={name: F(name) + amount for name, amount in amounts.items()},
            create_defaults=amounts,
        )
        if is_new:
            too_old = day - dt.timedelta(days=DAYS_KEPT)
            TrafficDay.objects.filter(day__lt=too_old).delete()
