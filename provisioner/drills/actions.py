"""Plan disaster drills, make one, and note what came of it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.urls import reverse

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.accounts.system import system_user
from provisioner.drills import refusals
from provisioner.drills.models import Drill, DrillPlan, DrillVolume
from provisioner.lib import clocks
from provisioner.lib.refusals import InvalidRequest
from provisioner.lib.times import duration_text, rough_text
from provisioner.notify.actions.administrators import administrators_tell
from provisioner.sandboxes.actions.creating import Replicas
from provisioner.sandboxes.actions.describing import volumes_of
from provisioner.sandboxes.actions.keeping import sandbox_retire
from provisioner.sandboxes.actions.plans import plan_make, plan_note, plan_save
from provisioner.sandboxes.models import Sandbox, ServerVolumes
from provisioner.sandboxes.queries import plan_of
from provisioner.sandboxes.refusals import PlanIncomplete
from provisioner.sites.models import PerforceServer


def drill_plan_save(
    *,
    by: User,
    server: PerforceServer,
    replicas: Mapping[str, str] | None = None,
    **settings: Any,
) -> DrillPlan:
    """Plan drills of a server; what is left out stays.

    `replicas` has, by the name of each of the server's volumes, that of the volume at
    the host's site which SnapMirror fills. `settings` are the columns `host`,
    `version`, `cron`, `oldest_hours` and `is_on`.

    Raises: NotAllowed, InvalidRequest, PlanIncomplete, ServerNotDescribed.
    """
    permissions.require(permissions.can_administer(by))
    volumes = volumes_of(server)
    with transaction.atomic():
        PerforceServer.objects.select_for_update(no_key=True).get(pk=server.pk)
        plan = plan_of(DrillPlan, server)
        before = plan.replicas
        after = before if replicas is None else dict(replicas)
        rows = _replicated(volumes, after)
        host = settings.get("host", plan.host)
        if host is not None and host.site_id == volumes.site_id:
            raise InvalidRequest.at(
                "host",
                f"{host.name} is at {volumes.site.name}, as {server.name} is. Choose "
                "one at another site.",
            )
        plan = plan_save(
            DrillPlan,
            by=by,
            server=server,
            kind="drill_plan_changed",
            message="Plan of its disaster drills changed.",
            settings=settings,
            beside=({"replicas": _lines(before)}, {"replicas": _lines(after)}),
        )
        if before != after:
            plan.volumes.all().delete()
            for row in rows:
                row.plan = plan
            DrillVolume.objects.bulk_create(rows)
    return plan


def _lines(replicas: Mapping[str, str]) -> str:
    return "\n".join(f"{source}={replica}" for source, replica in replicas.items())


def _replicated(
    volumes: ServerVolumes, replicas: Mapping[str, str]
) -> list[DrillVolume]:
    """Return the rows of all volumes of a server. Raises: InvalidRequest."""
    name = volumes.server.name
    needed = list(dict.fromkeys(volumes.places.values_list("volume", flat=True)))
    missing = [each for each in needed if each not in replicas]
    if missing:
        raise InvalidRequest.at(
            "replicas", f"Name what SnapMirror fills from {', '.join(missing)}."
        )
    unknown = [each for each in replicas if each not in needed]
    if unknown:
        raise InvalidRequest.at(
            "replicas", f"{name} has no volume {', '.join(unknown)}."
        )
    if len(set(replicas.values())) < len(replicas):
        raise InvalidRequest.at("replicas", "Name each replica once.")
    rows = [DrillVolume(source=each, replica=replicas[each]) for each in needed]
    try:
        for row in rows:
            row.clean_fields(exclude=["plan"])
    except ValidationError as error:
        raise InvalidRequest.at("replicas", " ".join(error.messages)) from error
    return rows


def drill_plan_stop(*, by: User, server: PerforceServer) -> None:
    """Stop the scheduled drills of a server. Raises: NotAllowed, NoDrillPlan."""
    permissions.require(permissions.can_administer(by))
    _known_plan_of(server)
    drill_plan_save(by=by, server=server, is_on=False)


def _known_plan_of(server: PerforceServer) -> DrillPlan:
    """Return the plan of a server. Raises: NoDrillPlan."""
    plan = plan_of(DrillPlan, server)
    if plan.pk is None:
        raise refusals.NoDrillPlan(server=server.name)
    return plan


def drill_start(
    *, by: User, server: PerforceServer, at: dt.datetime | None = None, reason: str = ""
) -> Drill:
    """Begin a drill by the plan of a server, now or for when it was due.

    Raises: NotAllowed, NoDrillPlan, PlanIncomplete, PlanRunning, and what refuses a
    sandbox.
    """
    permissions.require(permissions.can_administer(by))
    plan = _known_plan_of(server)
    if plan.host is None:
        raise PlanIncomplete(server=server.name)
    with transaction.atomic():
        sandbox = plan_make(
            plan,
            by=by,
            at=at,
            reason=reason,
            replicas=Replicas(site=plan.host.site, of=plan.replicas),
        )
        return Drill.objects.create(sandbox=sandbox, oldest_hours=plan.oldest_hours)


@transaction.atomic
def drill_passed(sandbox: Sandbox) -> None:
    """Note that the server answered, and retire its sandbox."""
    drill = Drill.objects.select_for_update(of=("self",)).get(sandbox=sandbox)
    assert drill.lost is not None  # the steps before have written both
    assert drill.took is not None
    said_lost = rough_text(max(drill.lost.total_seconds(), 0))
    if drill.lost > dt.timedelta(hours=drill.oldest_hours):
        drill.finding = (
            f"The copy was {said_lost} old, and may be {drill.oldest_hours} hours. "
            "Check whether SnapMirror still transfers."
        )
    drill.ended_at = clocks.database_now()
    drill.trouble = ""
    drill.save()
    stands = "" if drill.change is None else f" at change {drill.change}"
    message = (
        f"It answered at {sandbox.site.name} after "
        f"{duration_text(drill.took.total_seconds())}, {said_lost} behind{stands}. "
        f"{drill.finding}"
    ).strip()
    server = sandbox.perforce_server
    plan_note(
        DrillPlan,
        server,
        kind="drill_found_old_copy" if drill.finding else "drill_passed",
        message=message,
        has_failed=bool(drill.finding),
    )
    if drill.finding:
        _tell(server, title=f"The copy of {server.name} is old", sentence=message)
    sandbox_retire(by=system_user(), sandbox=sandbox, reason="Its drill is over.")


@transaction.atomic
def drill_failed(sandbox: Sandbox, *, message: str) -> None:
    """Note why the server could not be brought up. Its sandbox stays for a look."""
    ended = Drill.objects.filter(sandbox=sandbox, ended_at__isnull=True).update(
        ended_at=clocks.database_now(), trouble=message
    )
    if ended:
        note_failed(
            sandbox.perforce_server,
            message=f"It could not be brought up at {sandbox.site.name}. {message}",
        )


@transaction.atomic
def note_failed(server: PerforceServer, *, message: str) -> None:
    """Note that a drill failed or was not begun, and tell administrators."""
    plan_note(DrillPlan, server, kind="drill_failed", message=message, has_failed=True)
    title = f"The disaster drill of {server.name} failed"
    _tell(server, title=title, sentence=message)


def drill_give_up(drill: Drill) -> None:
    """Fail a drill that does not come to its end, and retire its sandbox."""
    sandbox = drill.sandbox
    with transaction.atomic():
        drill_failed(
            sandbox,
            message="It did not finish in time. Check whether a worker runs on "
            f"{sandbox.host.name}.",
        )
        sandbox_retire(
            by=system_user(), sandbox=sandbox, reason="Its drill takes too long."
        )


def _tell(server: PerforceServer, *, title: str, sentence: str) -> None:
    path = reverse("drill-list")
    administrators_tell(server, title=title, sentence=sentence, path=path)
