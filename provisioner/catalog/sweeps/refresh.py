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
    refresh_states_of,
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
    freshness = {pk: known.get(pk, Freshness()) for pk in (r.template_id for r in rows)}
    may_be_due = [
        row for row in rows if row.clean_cron or freshness[row.template_id].changes
    ]
    states = refresh_states_of(
        [row.template for row in may_be_due], freshness=freshness
    )
    return sum(
        _refresh(
            row,
            freshness=freshness[row.template_id],
            state=states[row.template_id],
            now=now,
        )
        for row in may_be_due
    )


def _refresh(
    row: RefreshPolicy,
    *,
    freshness: Freshness,
    state: refresh_policy.State,
    now: dt.datetime,
) -> bool:
    """Request one build if due, a clean one first; return whether it was."""
    template = row.template
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
