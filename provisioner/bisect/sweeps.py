"""Continue bisections whose step has ended, even if the event was missed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection

import structlog
from django.conf import settings
from django.db import transaction
from procrastinate.contrib.django import app

from provisioner.bisect.actions import (
    READ_CHANGES,
    bisection_go_on,
    defer_reading,
    end_bisection,
)
from provisioner.bisect.models import Bisection, BisectionChange
from provisioner.engine.queues import PERFORCE
from provisioner.gateways import registry
from provisioner.gateways.errors import GatewayError, TransientGatewayError
from provisioner.gateways.perforce.types import SubmittedChange
from provisioner.lib import clocks

log = structlog.get_logger(__name__)

GO_ON_BISECTING = "go_on_bisecting"
MOST_CHANGES = 20_000


@app.periodic(cron="* * * * * */10")
@app.task(name="sweep_bisections", queue="sweeps", queueing_lock="sweep_bisections")
def sweep_bisections(timestamp: int) -> None:
    """Continue every running bisection."""
    running = Bisection.objects.filter(state=Bisection.State.RUNNING).order_by("pk")
    for bisection in running.filter(changes_read_at__isnull=True):
        defer_reading(bisection)
    known = running.filter(changes_read_at__isnull=False)
    for pk in known.values_list("pk", flat=True):
        bisection_go_on(pk)


@app.task(name=GO_ON_BISECTING, queue="sweeps")
def go_on_bisecting(bisection_id: int) -> None:
    """Record the step that has ended, and start the next."""
    bisection_go_on(bisection_id)


@app.task(name=READ_CHANGES, queue=PERFORCE)
def read_changes(bisection_id: int) -> None:
    """Fetch the changes in between, and start the first step.

    If the server does not answer, the sweep retries until the time is up.
    """
    bisection = Bisection.objects.select_related("template__site__perforce_server").get(
        pk=bisection_id
    )
    if not bisection.is_running or bisection.changes_read_at is not None:
        return
    perforce = registry.perforce(bisection.template.site.perforce_server)
    try:
        found = perforce.changes.submitted_to(
            bisection.template.client_name,
            above=bisection.good,
            upto=bisection.bad,
            at_most=MOST_CHANGES + 1,
        )
    except GatewayError as error:
        log.warning(
            "changes_not_read", bisection_id=bisection.pk, **error.log_context()
        )
        if not isinstance(error, TransientGatewayError) or _is_late(bisection):
            _fail(bisection_id, code="changes_not_read", message=error.sentence)
        return
    if not found:
        _fail(
            bisection_id,
            code="nothing_submitted",
            message=f"Nothing was submitted to the view of {bisection.template.name} "
            f"after change {bisection.good} and up to {bisection.bad}.",
        )
    elif len(found) > MOST_CHANGES:
        _fail(
            bisection_id,
            code="too_many_changes",
            message=f"There are more than {MOST_CHANGES:,} changes in between. Test "
            "some by hand first.",
        )
    else:
        keep_changes(bisection_id, found)
        bisection_go_on(bisection_id)


def _is_late(bisection: Bisection) -> bool:
    patience = dt.timedelta(seconds=settings.STEP_GIVE_UP_SECONDS)
    return clocks.database_now() > bisection.created_at + patience


def keep_changes(bisection_id: int, found: Collection[SubmittedChange]) -> None:
    """Save the changes in between, once."""
    with transaction.atomic():
        is_first = Bisection.objects.filter(
            pk=bisection_id, changes_read_at=None, state=Bisection.State.RUNNING
        ).update(changes_read_at=clocks.database_now())
        if is_first:
            BisectionChange.objects.bulk_create(
                BisectionChange(
                    bisection_id=bisection_id,
                    change=each.number,
                    user=each.user[:1024],
                    title=each.title,
                )
                for each in found
            )


def _fail(bisection_id: int, *, code: str, message: str) -> None:
    with transaction.atomic():
        bisection = Bisection.objects.select_for_update().get(pk=bisection_id)
        if bisection.is_running and bisection.changes_read_at is None:
            end_bisection(bisection, Bisection.State.FAILED, code=code, message=message)
