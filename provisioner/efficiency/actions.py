"""Change the deduplication plan of a site."""

from __future__ import annotations

import re
from typing import Any

from django.db import transaction
from procrastinate.contrib.django import app

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.audit_log.changes import changes_between
from provisioner.efficiency.models import DedupePlan
from provisioner.efficiency.queries import plan_of
from provisioner.engine.deferring import defer_once
from provisioner.engine.queues import STORAGE
from provisioner.lib.refusals import InvalidRequest
from provisioner.lib.schedules import read_schedule
from provisioner.sites.models import Site

# Registered where it is done; a name keeps the action below it.
MEASURE_REDUCTION = "measure_reduction"
LEAST_MINUTES = 10
MOST_MINUTES = 7 * 24 * 60
MOST_VOLUMES = 200
_VOLUME_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,202}")


def dedupe_plan_save(*, by: User, site: Site, **settings: Any) -> DedupePlan:
    """Change which volumes of a site are deduplicated, and when.

    `settings` are the columns `is_on`, `covers_templates`, `covers_mirrors`,
    `more_volumes`, `cron`, `minutes` and `waits_for_quiet`; those left out stay.

    Raises: NotAllowed, InvalidRequest (a window that never comes, no volume).
    """
    permissions.require(permissions.can_administer(by))
    with transaction.atomic():
        DedupePlan.objects.get_or_create(site=site)
        plan = DedupePlan.objects.select_for_update().get(site=site)
        before = {name: getattr(plan, name) for name in settings}
        for name, value in settings.items():
            setattr(plan, name, value)
        _check(plan)
        changes = changes_between(
            before, {name: getattr(plan, name) for name in settings}
        )
        if changes:
            plan.save(update_fields=list(settings))
            record_event(
                site,
                kind="dedupe_plan_changed",
                message="Plan of deduplication changed.",
                actor=by,
                data=changes,
            )
            queue_measurement(site)
    return plan_of(site)


def queue_measurement(site: Site) -> None:
    """Queue a measurement of a site, which also sees to its policy in ONTAP."""
    job = app.configure_task(
        MEASURE_REDUCTION,
        queue=STORAGE,
        queueing_lock=f"{MEASURE_REDUCTION}.{site.pk}",
    )
    defer_once(job, site_id=site.pk)


def _check(plan: DedupePlan) -> None:
    """Refuse what could never run, and put names and schedule in order."""
    plan.cron = read_schedule(plan.cron, field="cron")
    if not LEAST_MINUTES <= plan.minutes <= MOST_MINUTES:
        raise InvalidRequest.at(
            "minutes",
            f"A window of {plan.minutes} minutes deduplicates nothing. Choose "
            f"{LEAST_MINUTES} to {MOST_MINUTES:,} minutes."
            if plan.minutes < LEAST_MINUTES
            else f"A window lasts a week, {MOST_MINUTES:,} minutes, at most.",
        )
    names = list(dict.fromkeys(plan.names))
    for name in names:
        if not _VOLUME_NAME.fullmatch(name):
            raise InvalidRequest.at(
                "more_volumes", f"“{name}” cannot be the name of a volume in ONTAP."
            )
    if len(names) > MOST_VOLUMES:
        raise InvalidRequest.at("more_volumes", f"Name {MOST_VOLUMES} volumes at most.")
    plan.more_volumes = "\n".join(names)
    if plan.is_on and not (plan.covers_templates or plan.covers_mirrors or names):
        raise InvalidRequest.at(
            "is_on", "The plan covers no volume. Choose some, or switch it off."
        )
