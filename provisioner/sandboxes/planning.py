"""Plans of sandboxes: what is due is requested once, and its end is noted."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import TypeVar

import structlog
from django.db import transaction
from django.db.models import Q

from provisioner.lib import schedules
from provisioner.lib.refusals import ActionRefused
from provisioner.sandboxes.models import SandboxPlan

AnyPlan = TypeVar("AnyPlan", bound=SandboxPlan)

WAITS_AT_MOST = dt.timedelta(hours=1)
"""How long what is due waits for a place at its host."""

log = structlog.get_logger(__name__)


def request_due(
    model: type[AnyPlan],
    *,
    now: dt.datetime,
    request: Callable[[AnyPlan, dt.datetime], object],
    fail: Callable[[AnyPlan, str], None],
) -> int:
    """Request what is due by the plans of a kind, each once; return how many.

    What is refused is tried each minute for an hour. Then it has failed.
    """
    plans = model._default_manager.filter(is_on=True)
    requested = 0
    for plan in plans.select_related("server", "host", "version"):
        due = schedules.last_time(plan.cron, now=now)
        # What was due before somebody changed the plan is not made up for.
        if due is None or due <= plan.changed_at:
            continue
        try:
            requested += _request(plan, due, request)
        except ActionRefused as refusal:
            _refused(plan, refusal, due=due, now=now, fail=fail)
    return requested


def _request(
    plan: AnyPlan, due: dt.datetime, request: Callable[[AnyPlan, dt.datetime], object]
) -> bool:
    with transaction.atomic():
        if not _take(plan, due):
            return False
        request(plan, due)
    return True


def _take(plan: SandboxPlan, due: dt.datetime) -> bool:
    """Return whether nobody has acted on a due time yet; from now on somebody has."""
    not_tried = Q(tried_for__isnull=True) | Q(tried_for__lt=due)
    mine = type(plan)._default_manager.filter(not_tried, pk=plan.pk, is_on=True)
    return bool(mine.update(tried_for=due))


def _refused(
    plan: AnyPlan,
    refusal: ActionRefused,
    *,
    due: dt.datetime,
    now: dt.datetime,
    fail: Callable[[AnyPlan, str], None],
) -> None:
    log.info("planned_sandbox_refused", plan=str(plan), code=refusal.code)
    if now < due + WAITS_AT_MOST:
        type(plan)._default_manager.filter(pk=plan.pk).update(
            status=f"Due at {due:%H:%M} UTC, and tried each minute. {refusal.sentence}"
        )
        return
    with transaction.atomic():
        if _take(plan, due):
            fail(
                plan,
                f"It was due at {due:%Y-%m-%d %H:%M} UTC, and could not be begun. "
                f"{refusal.sentence}",
            )
