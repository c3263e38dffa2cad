"""Save a plan of sandboxes, make one by it, and note what came of it."""

from __future__ import annotations

import datetime as dt
from typing import Any, TypeVar

from django.db import transaction

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.audit_log.changes import changes_between
from provisioner.lib import clocks
from provisioner.lib.schedules import read_schedule
from provisioner.sandboxes import refusals
from provisioner.sandboxes.actions.creating import Replicas, sandbox_create
from provisioner.sandboxes.actions.hosts import check_fields
from provisioner.sandboxes.models import Sandbox, SandboxPlan
from provisioner.sandboxes.queries import plan_of
from provisioner.sites.models import PerforceServer

KEPT_IF_FAILED_HOURS = 12
"""How long the sandbox of what failed can be looked at."""
_ROWS = ("host", "version", "site")

AnyPlan = TypeVar("AnyPlan", bound=SandboxPlan)


def plan_save(
    model: type[AnyPlan],
    *,
    by: User,
    server: PerforceServer,
    kind: str,
    message: str,
    settings: dict[str, Any],
    beside: tuple[dict[str, Any], dict[str, Any]] = ({}, {}),
) -> AnyPlan:
    """Change a plan of a server, or make it; columns that are left out stay.

    `kind` and `message` are of its event in the audit log. `beside` is what else of it
    is changed: what that was, and what it is.

    Raises: NotAllowed, InvalidRequest, PlanIncomplete.
    """
    permissions.require(permissions.can_administer(by))
    with transaction.atomic():
        PerforceServer.objects.select_for_update(no_key=True).get(pk=server.pk)
        plan = plan_of(model, server)
        is_new = plan.pk is None
        before = {name: None if is_new else getattr(plan, name) for name in settings}
        for name, value in settings.items():
            setattr(plan, name, value)
        plan.cron = read_schedule(plan.cron, field="cron")
        check_fields(plan, exclude=("server", *_ROWS))
        _require_place(plan)
        after = {name: getattr(plan, name) for name in settings}
        changes = changes_between(_named(before) | beside[0], _named(after) | beside[1])
        if changes:
            plan.changed_at = clocks.database_now()
            plan.save()
            record_event(server, kind=kind, message=message, actor=by, data=changes)
    return plan


def _named(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings with names for rows, for the audit log."""
    return {k: str(v) if k in _ROWS and v else v for k, v in settings.items()}


def _require_place(plan: SandboxPlan) -> None:
    if plan.host is None or plan.version is None:
        raise refusals.PlanIncomplete(server=plan.server.name)


def plan_make(
    plan: SandboxPlan,
    *,
    by: User,
    at: dt.datetime | None = None,
    reason: str = "",
    replicas: Replicas | None = None,
) -> Sandbox:
    """Request a sandbox by a plan, now or for the moment at which it was due.

    Raises: NotAllowed, PlanIncomplete, PlanRunning, and what refuses a sandbox.
    """
    permissions.require(permissions.can_administer(by))
    server = plan.server
    with transaction.atomic():
        PerforceServer.objects.select_for_update(no_key=True).get(pk=server.pk)
        _require_place(plan)
        running = Sandbox.objects.filter(
            perforce_server=server,
            purpose=plan.PURPOSE,
            state=Sandbox.State.CREATING,
        ).first()
        if running is not None:
            raise refusals.PlanRunning(server=server.name, name=running.name)
        assert plan.host is not None
        assert plan.version is not None
        at = (at or clocks.database_now()).astimezone(dt.UTC)
        return sandbox_create(
            by=by,
            server=server,
            name=f"{plan.PURPOSE.value}-{server.pk}-{at:%Y%m%d-%H%M%S}",
            purpose=plan.PURPOSE,
            version=plan.version,
            host=plan.host,
            hours=KEPT_IF_FAILED_HOURS,
            reason=reason,
            replicas=replicas,
        )


@transaction.atomic
def plan_note(
    model: type[SandboxPlan],
    server: PerforceServer,
    *,
    kind: str,
    message: str,
    has_failed: bool,
) -> None:
    """Note what came of a plan: in it, and in the audit log of its server.

    The home page of administrators counts plans that failed, until one succeeds.
    """
    model._default_manager.filter(server=server).update(
        status=message, has_failed=has_failed
    )
    record_event(server, kind=kind, message=message)
