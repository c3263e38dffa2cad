"""Change what a probe runs."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.audit_log.changes import changes_between
from provisioner.probes.commands import read_commands
from provisioner.probes.models import ProbePlan
from provisioner.probes.queries import plan_of
from provisioner.sites.models import PerforceServer


def probe_plan_save(*, by: User, server: PerforceServer, **settings: Any) -> ProbePlan:
    """Change the columns `is_on` and `commands` of a plan; those left out stay.

    Raises: NotAllowed, InvalidRequest (a command that may change something).
    """
    permissions.require(permissions.can_administer(by))
    if "commands" in settings:
        settings["commands"] = read_commands(settings["commands"], field="commands")
    with transaction.atomic():
        ProbePlan.objects.get_or_create(server=server)
        plan = ProbePlan.objects.select_for_update().get(server=server)
        before = {name: getattr(plan, name) for name in settings}
        changes = changes_between(before, settings)
        if changes:
            ProbePlan.objects.filter(pk=plan.pk).update(**settings)
            record_event(
                server,
                kind="probe_plan_changed",
                message="Plan of the probe changed.",
                actor=by,
                data=changes,
            )
    return plan_of(server)
