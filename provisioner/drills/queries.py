"""Drills and their plans, and what is recorded of a server that may be gone."""

from __future__ import annotations

import datetime as dt

from django.db.models import Q, QuerySet

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.drills.models import Drill, DrillPlan
from provisioner.lib.rows import with_words
from provisioner.sandboxes.models import Sandbox, ServerVolume

ENDS_WITHIN = dt.timedelta(hours=12)


def drills(user: User) -> QuerySet[Drill]:
    """Return all drills, newest first. Raises: NotAllowed."""
    permissions.require(permissions.can_administer(user))
    return Drill.objects.select_related(
        "sandbox__perforce_server", "sandbox__site", "sandbox__host"
    )


def drills_matching(
    user: User, *, text: str = "", outcome: str = ""
) -> QuerySet[Drill]:
    """Return the drills of a filter. Raises: NotAllowed."""
    rows = with_words(drills(user), text, "sandbox__perforce_server__name")
    passed = Q(ended_at__isnull=False, trouble="", finding="")
    if outcome:
        rows = rows.filter(passed if outcome == "passed" else ~passed)
    return rows


def drills_in_trouble() -> QuerySet[DrillPlan]:
    """Return the plans whose last drill failed, or found an old copy."""
    return DrillPlan.objects.filter(has_failed=True)


def hanging(*, now: dt.datetime) -> QuerySet[Drill]:
    """Return the drills that go on although they should have ended."""
    return Drill.objects.filter(
        ended_at__isnull=True,
        requested_at__lte=now - ENDS_WITHIN,
        sandbox__state=Sandbox.State.CREATING,
    ).select_related("sandbox__host", "sandbox__perforce_server", "sandbox__site")


def lost() -> QuerySet[Drill]:
    """Return the drills whose sandbox failed without an end of theirs."""
    return Drill.objects.filter(
        ended_at__isnull=True, sandbox__state=Sandbox.State.FAILED
    ).select_related("sandbox__perforce_server", "sandbox__site")


def replicas_to_name(plan: DrillPlan) -> str:
    """Return the replicas of a plan, one a line; those not named yet are empty."""
    places = ServerVolume.objects.filter(of__server=plan.server)
    sources = dict.fromkeys(places.values_list("volume", flat=True))
    known = plan.replicas
    return "\n".join(f"{each}={known.get(each, '')}" for each in sources)
