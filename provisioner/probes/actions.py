"""Change what a probe runs, and mark moments."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.db import transaction

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.accounts.names import one_line
from provisioner.audit_log.actions import record_event
from provisioner.audit_log.changes import changes_between
from provisioner.lib import clocks
from provisioner.lib.refusals import InvalidRequest
from provisioner.lib.storable import storable
from provisioner.lib.times import recorded
from provisioner.probes.commands import read_commands
from provisioner.probes.models import KEPT_FOR, LONGEST_LABEL, Moment, ProbePlan
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


@transaction.atomic
def moment_mark(
    *,
    by: User,
    server: PerforceServer,
    label: str,
    at: dt.datetime,
    note: str = "",
) -> Moment:
    """Mark when something was changed at a server.

    Raises: NotAllowed, InvalidRequest (no label, a time to come or long ago).
    """
    permissions.require(permissions.can_administer(by))
    label = one_line(label, word="The label", most=LONGEST_LABEL)
    if not label:
        raise InvalidRequest.at("label", "Say what was changed.")
    now = clocks.database_now()
    if at > now:
        raise InvalidRequest.at("at", "This is yet to come. Mark it afterwards.")
    if at < now - KEPT_FOR:
        raise InvalidRequest.at(
            "at", "Nothing is kept for longer than 13 months. Give a later time."
        )
    moment = Moment.objects.create(
        server=server, label=label, at=at, note=storable(note.strip()), created_by=by
    )
    _record_moment(moment, by=by, kind="moment_marked", did="Marked")
    return moment


@transaction.atomic
def moment_delete(*, by: User, moment: Moment) -> None:
    """Delete a mark; what was measured stays.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(by))
    _record_moment(moment, by=by, kind="moment_deleted", did="Deleted the mark")
    moment.delete()


def _record_moment(moment: Moment, *, by: User, kind: str, did: str) -> None:
    record_event(
        moment.server,
        kind=kind,
        message=f"{did} {moment.label} at {recorded(moment.at)}.",
        actor=by,
    )
