"""Plan checkpoints, make one, and note what came of it."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.audit_log.changes import changes_between
from provisioner.lib import clocks
from provisioner.lib.refusals import InvalidRequest
from provisioner.lib.schedules import read_schedule
from provisioner.recipes import refusals
from provisioner.recipes.models import CheckpointPlan
from provisioner.recipes.queries import plan_of
from provisioner.sandboxes.actions.creating import sandbox_create
from provisioner.sandboxes.models import Sandbox
from provisioner.sites.models import PerforceServer

KEPT_IF_FAILED_HOURS = 12
"""How long the sandbox of a checkpoint that failed can be looked at."""


def checkpoint_plan_save(
    *, by: User, server: PerforceServer, **settings: Any
) -> CheckpointPlan:
    """Say where checkpoints of a server are kept, for how long, and when to make them.

    `settings` are the columns `host`, `version`, `directory`, `cron`, `keep_daily`,
    `keep_weekly` and `is_on`; those left out stay.

    Raises: NotAllowed, InvalidRequest, CheckpointPlanIncomplete.
    """
    permissions.require(permissions.can_administer(by))
    with transaction.atomic():
        PerforceServer.objects.select_for_update(no_key=True).get(pk=server.pk)
        plan = plan_of(server)
        is_new = plan.pk is None
        before = {name: None if is_new else getattr(plan, name) for name in settings}
        for name, value in settings.items():
            setattr(plan, name, value)
        _check(plan)
        after = {name: getattr(plan, name) for name in settings}
        if changes := changes_between(_named(before), _named(after)):
            plan.changed_at = clocks.database_now()
            plan.save()
            record_event(
                server,
                kind="checkpoint_plan_changed",
                message="Plan of its checkpoints changed.",
                actor=by,
                data=changes,
            )
    return plan


def _named(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings with names for rows, for the audit log."""
    rows = ("host", "version")
    return {k: str(v) if k in rows and v else v for k, v in settings.items()}


def _check(plan: CheckpointPlan) -> None:
    """Refuse what could never run. Raises: InvalidRequest, CheckpointPlanIncomplete."""
    plan.cron = read_schedule(plan.cron, field="cron")
    try:
        plan.clean_fields(exclude=["server", "host", "version"])
    except ValidationError as error:
        field, messages = next(iter(error.message_dict.items()))
        raise InvalidRequest.at(field, " ".join(messages)) from error
    if plan.host is None or plan.version is None:
        raise refusals.CheckpointPlanIncomplete(server=plan.server.name)


def checkpoint_make(
    *, by: User, server: PerforceServer, name: str = "", reason: str = ""
) -> Sandbox:
    """Request a checkpoint by the plan of a server, now.

    Raises: NotAllowed, CheckpointPlanIncomplete, and what refuses a sandbox.
    """
    permissions.require(permissions.can_administer(by))
    plan = plan_of(server)
    if plan.host is None or plan.version is None:
        raise refusals.CheckpointPlanIncomplete(server=server.name)
    return sandbox_create(
        by=by,
        server=server,
        name=name or name_at(clocks.database_now(), server),
        purpose=Sandbox.Purpose.CHECKPOINT,
        version=plan.version,
        host=plan.host,
        hours=KEPT_IF_FAILED_HOURS,
        reason=reason,
    )


def name_at(moment: dt.datetime, server: PerforceServer) -> str:
    """Return the name of the sandbox of a checkpoint."""
    return f"checkpoint-{server.pk}-{moment.astimezone(dt.UTC):%Y%m%d-%H%M%S}"


def check_checkpoint(by: User, sandbox: Sandbox) -> None:
    """Refuse the request of a checkpoint that nobody may have, or that has no place.

    Raises: CheckpointsForAdministrators, NoCheckpointPlan.
    """
    if not permissions.can_administer(by):
        raise refusals.CheckpointsForAdministrators
    plan = plan_of(sandbox.perforce_server)
    if plan.pk is None or plan.host_id != sandbox.host_id:
        raise refusals.NoCheckpointPlan(
            server=sandbox.perforce_server.name, host=sandbox.host.name
        )


def note_made(server: PerforceServer, *, message: str) -> None:
    """Note that a checkpoint was made."""
    _note(server, kind="checkpoint_made", message=message, has_failed=False)


def note_failed(server: PerforceServer, *, message: str) -> None:
    """Note that a checkpoint failed: in the plan, the audit log, and at administrators.

    The home page of administrators counts plans that failed, until one succeeds.
    """
    _note(server, kind="checkpoint_failed", message=message, has_failed=True)


@transaction.atomic
def _note(server: PerforceServer, *, kind: str, message: str, has_failed: bool) -> None:
    CheckpointPlan.objects.filter(server=server).update(
        status=message, has_failed=has_failed
    )
    record_event(server, kind=kind, message=message)
