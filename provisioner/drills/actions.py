"""Plan disaster drills, make one, and note what came of it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

from django.core.exceptions import ValidationError
from django.db import transaction

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.accounts.system import system_user
from provisioner.audit_log.actions import record_event
from provisioner.drills import refusals
from provisioner.drills.models import MONTHLY, Drill, DrillPlan, DrillVolume
from provisioner.lib import clocks
from provisioner.lib.refusals import InvalidRequest
from provisioner.lib.schedules import read_schedule
from provisioner.sandboxes.actions.creating import Replicas, sandbox_create
from provisioner.sandboxes.actions.describing import volumes_of
from provisioner.sandboxes.actions.keeping import sandbox_retire
from provisioner.sandboxes.models import P4dVersion, Sandbox, SandboxHost
from provisioner.sites.models import PerforceServer, Site

KEPT_IF_FAILED_HOURS = 12
"""How long the sandbox of a drill that failed can be looked at."""


def drill_plan_save(
    *,
    by: User,
    server: PerforceServer,
    site: Site,
    host: SandboxHost,
    version: P4dVersion,
    replicas: Mapping[str, str],
    cron: str = MONTHLY,
    oldest_hours: int = 24,
) -> DrillPlan:
    """Plan drills of a server, in place of what was planned.

    `replicas` has, by the name of each of the server's volumes, that of the volume at
    `site` which SnapMirror fills.

    Raises: NotAllowed, InvalidRequest, ServerNotDescribed.
    """
    permissions.require(permissions.can_administer(by))
    volumes = volumes_of(server)
    needed = list(dict.fromkeys(volumes.places.values_list("volume", flat=True)))
    if site == volumes.site:
        raise InvalidRequest.at(
            "site", f"{server.name} is at {site.name} itself. Name another site."
        )
    if host.site_id != site.pk:
        raise InvalidRequest.at("host", f"{host.name} is not at {site.name}.")
    missing = [name for name in needed if name not in replicas]
    if missing:
        raise InvalidRequest.at(
            "replicas", f"Name what SnapMirror fills from {', '.join(missing)}."
        )
    unknown = [name for name in replicas if name not in needed]
    if unknown:
        raise InvalidRequest.at(
            "replicas", f"{server.name} has no volume {', '.join(unknown)}."
        )
    if len(set(replicas.values())) < len(replicas):
        raise InvalidRequest.at("replicas", "Name each replica once.")
    values = {
        "site": site,
        "host": host,
        "version": version,
        "cron": read_schedule(cron, field="cron"),
        "oldest_hours": oldest_hours,
        "is_on": True,
        "changed_at": clocks.database_now(),
    }
    rows = [DrillVolume(source=name, replica=replicas[name]) for name in needed]
    try:
        DrillPlan(server=server, **values).clean_fields()
        for row in rows:
            row.clean_fields(exclude=["plan"])
    except ValidationError as error:
        field, messages = next(iter(error.message_dict.items()))
        at = "replicas" if field in ("source", "replica") else field
        raise InvalidRequest.at(at, " ".join(messages)) from error
    with transaction.atomic():
        plan, _ = DrillPlan.objects.update_or_create(server=server, defaults=values)
        plan.volumes.all().delete()
        for row in rows:
            row.plan = plan
        DrillVolume.objects.bulk_create(rows)
        record_event(
            server,
            kind="drill_plan_changed",
            message=f"Drills at {site.name} on {host.name} with p4d {version.release}: "
            f"{plan.cron}. A copy may be {oldest_hours} hours old.",
            actor=by,
        )
    return plan


def drill_plan_stop(*, by: User, server: PerforceServer) -> None:
    """Make no more drills of a server by plan. Raises: NotAllowed, NoDrillPlan."""
    permissions.require(permissions.can_administer(by))
    plan = _plan_of(server)
    with transaction.atomic():
        if DrillPlan.objects.filter(pk=plan.pk, is_on=True).update(is_on=False):
            record_event(
                server,
                kind="drill_plan_changed",
                message="Drills are no longer made by plan.",
                actor=by,
            )


def _plan_of(server: PerforceServer) -> DrillPlan:
    """Return the plan of a server. Raises: NoDrillPlan."""
    plans = DrillPlan.objects.select_related("server", "site", "host", "version")
    plan = plans.filter(server=server).first()
    if plan is None:
        raise refusals.NoDrillPlan(server=server.name)
    return plan


def drill_start(*, by: User, server: PerforceServer, reason: str = "") -> Drill:
    """Begin a drill by the plan of a server.

    Raises: NotAllowed, NoDrillPlan, DrillRunning, and what refuses a sandbox.
    """
    permissions.require(permissions.can_administer(by))
    with transaction.atomic():
        PerforceServer.objects.select_for_update(no_key=True).get(pk=server.pk)
        plan = _plan_of(server)
        running = Drill.objects.filter(
            sandbox__perforce_server=server,
            sandbox__state=Sandbox.State.CREATING,
            ended_at__isnull=True,
        )
        if running.exists():
            raise refusals.DrillRunning(server=server.name)
        now = clocks.database_now().astimezone(dt.UTC)
        sandbox = sandbox_create(
            by=by,
            server=server,
            name=f"drill-{server.pk}-{now:%Y%m%d-%H%M%S}",
            purpose=Sandbox.Purpose.DRILL,
            version=plan.version,
            host=plan.host,
            hours=KEPT_IF_FAILED_HOURS,
            reason=reason,
            replicas=Replicas(
                site=plan.site,
                of={each.source: each.replica for each in plan.volumes.all()},
            ),
        )
        return Drill.objects.create(sandbox=sandbox, oldest_hours=plan.oldest_hours)


def drill_passed(sandbox: Sandbox) -> None:
    """Note that the server answered, and retire its sandbox."""
    with transaction.atomic():
        drill = Drill.objects.select_for_update(of=("self",)).get(sandbox=sandbox)
        assert drill.lost is not None  # the steps before have written both
        assert drill.took is not None
        if drill.lost > dt.timedelta(hours=drill.oldest_hours):
            drill.finding = (
                f"The copy was {_said(drill.lost)} old, and may be "
                f"{drill.oldest_hours} hours. Look whether SnapMirror still transfers."
            )
        drill.ended_at = clocks.database_now()
        drill.trouble = ""
        drill.save()
        stands = "" if drill.change is None else f" at change {drill.change}"
        record_event(
            sandbox.perforce_server,
            kind="drill_found_old_copy" if drill.finding else "drill_passed",
            message=f"It answered at {sandbox.site.name} after {_said(drill.took)}, "
            f"{_said(drill.lost)} behind{stands}. {drill.finding}".strip(),
        )
    sandbox_retire(by=system_user(), sandbox=sandbox, reason="Its drill is over.")


def drill_failed(sandbox: Sandbox, *, message: str) -> None:
    """Note why the server could not be brought up. Its sandbox stays for a look."""
    with transaction.atomic():
        if not Drill.objects.filter(sandbox=sandbox, ended_at__isnull=True).update(
            ended_at=clocks.database_now(), trouble=message
        ):
            return
        record_event(
            sandbox.perforce_server,
            kind="drill_failed",
            message=f"It could not be brought up at {sandbox.site.name}. {message}",
        )


def _said(length: dt.timedelta) -> str:
    """Return a length in the largest unit that it has more than two of."""
    seconds = max(length.total_seconds(), 0)
    for name, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds > 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} seconds"
