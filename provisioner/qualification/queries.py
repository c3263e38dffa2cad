"""Which runs there are, and who may see them."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from provisioner.accounts.models import User
from provisioner.qualification.models import QualificationRun
from provisioner.sandboxes.models import Sandbox
from provisioner.sandboxes.queries import may_have_sandboxes, sandboxes_visible_to
from provisioner.sites.models import PerforceServer


def is_visible(user: User, *, by: str = "") -> Q:
    """Return the condition for runs of a person; administrators see all."""
    if user.is_administrator:
        return Q()
    if user.scope is not None:
        return Q(**{f"{by}pk__in": ()})
    return Q(**{f"{by}owner": user})


def runs_visible_to(user: User) -> QuerySet[QualificationRun]:
    return QualificationRun.objects.filter(is_visible(user)).select_related(
        "perforce_server", "sandbox__host", "site", "owner"
    )


def may_measure(user: User) -> bool:
    """Return whether somebody can have what may be measured."""
    return may_have_sandboxes(user)


def sandboxes_to_measure(user: User) -> QuerySet[Sandbox]:
    return sandboxes_visible_to(user).filter(state=Sandbox.State.READY)


def servers_to_measure(user: User) -> QuerySet[PerforceServer]:
    scratch = PerforceServer.objects.filter(is_scratch=True).order_by("name")
    return scratch if user.is_administrator else scratch.none()


def values_of(run: QualificationRun) -> dict[str, dict[int, float]]:
    """Return the figures of a run: by code, the value of each repeat."""
    found: dict[str, dict[int, float]] = {}
    rows = run.figures.filter(host_number=0, repeat__gt=0)
    for code, repeat, value in rows.values_list("code", "repeat", "value"):
        found.setdefault(code, {})[repeat] = value
    return found
