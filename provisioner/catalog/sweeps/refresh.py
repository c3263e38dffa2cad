"""Refresh templates by their policies, to the newest relevant change.

Requests of people have priority over these builds.
"""

from __future__ import annotations

import datetime as dt

import structlog
from django.db import transaction
from procrastinate.contrib.django import app

from provisioner.accounts.system import system_user
from provisioner.audit_log.actions import record_event
from provisioner.catalog import refresh_policy
from provisioner.catalog.actions.templates import template_build
from provisioner.catalog.freshness import (
    Freshness,
    freshness_of_all,
    refresh_state_of,
)
from provisioner.catalog.models import RefreshPolicy, Template
from provisioner.lib import clocks
from provisioner.lib.refusals import ActionRefused

log = structlog.get_logger(__name__)


@app.periodic(cron="* * * * * */10")
@app.task(name="sweep_refresh", queue="sweeps", queueing_lock="sweep_refresh")
def sweep_refresh(timestamp: int) -> None:
    """Request a build of every template that is due."""
    refresh_all(now=clocks.database_now())


def refresh_all(*, now: dt.datetime) -> int:
    """Request the due builds; return their number."""
    rows = list(
        RefreshPolicy.objects.filter(is_paused=False, template__archived_at=None)
        .exclude(mode=RefreshPolicy.Mode.MANUAL, clean_cron="")
        .exclude(template__state__in=(Template.State.NEW, Template.State.BUILDING))
        .select_related("template__site", "template__last_build__requested_by")
        .order_by("pk")
    )
    known = freshness_of_all([row.template for row in rows])
    freshness_of = {row.pk: known.get(row.template_id, Freshness()) for row in rows}
    return sum(
        _refresh(row, freshness=freshness_of[row.pk], now=now)
        for row in rows
        if row.clean_cron or freshness_of[row.pk].changes
    )


def _refresh(row: RefreshPolicy, *, freshness: Freshness, now: dt.datetime) -> bool:
    """Request one build if due, a clean one first; return whether it was."""
    template = row.template
    state = refresh_state_of(template, freshness=freshness)
    why_clean = refresh_policy.clean_due(now, row, state)
    reason = why_clean or refresh_policy.due(now, row, state)
    if reason is None:
        return False
    try:
        with transaction.atomic():
            record_event(
                template,
                kind="template_refresh",
                message=reason,
                actor=system_user(),
                data={"change": freshness.newest, "changes": freshness.changes},
            )
            template_build(
                by=system_user(),
                template=template,
                change=freshness.newest,
                is_clean=why_clean is not None,
            )
    except ActionRefused as refusal:
        log.info(
            "template_not_refreshed", template_id=template.pk, reason=refusal.sentence
        )
        return False
    return True
