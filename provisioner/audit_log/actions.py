"""The one writer of the trail: who, what, why, from where.

Events are written in the transaction of what they tell about, so neither is ever
without the other. Secrets never enter: what is handed over here is read by people.
"""

from __future__ import annotations

from typing import Any

from provisioner.accounts import origin
from provisioner.accounts.models import Team, User
from provisioner.audit_log.models import Event
from provisioner.bisect.models import Bisection
from provisioner.catalog.models import Template
from provisioner.leases.models import LeasePolicy
from provisioner.notify.models import Webhook
from provisioner.pools.models import Pool
from provisioner.sites.models import PerforceServer, Site
from provisioner.workspaces.models import Workspace

Subject = (
    Workspace
    | Template
    | Site
    | PerforceServer
    | User
    | Team
    | LeasePolicy
    | Webhook
    | Pool
    | Bisection
)

_KINDS: dict[type[Any], Event.SubjectKind] = {
    Workspace: Event.SubjectKind.WORKSPACE,
    Template: Event.SubjectKind.TEMPLATE,
    Site: Event.SubjectKind.SITE,
    PerforceServer: Event.SubjectKind.PERFORCE_SERVER,
    User: Event.SubjectKind.ACCOUNT,
    Team: Event.SubjectKind.TEAM,
    LeasePolicy: Event.SubjectKind.POLICY,
    Webhook: Event.SubjectKind.WEBHOOK,
    Pool: Event.SubjectKind.POOL,
    Bisection: Event.SubjectKind.BISECTION,
}


def record_event(
    subject: Subject | None,
    *,
    kind: str,
    message: str,
    reason: str = "",
    actor: User | None = None,
    data: dict[str, Any] | None = None,
) -> None:
    """Write down what happened, for the people who look at the subject.

    Without an actor it was whoever sent the request, or nobody but ourselves.
    """
    here = origin.current()
    actor = actor or here.actor
    Event.objects.create(
        kind=kind,
        message=message,
        reason=reason,
        actor=actor,
        actor_name=actor.get_username() if actor else "",
        via=here.via[:200],
        ip=here.ip,
        user_agent=here.user_agent,
        data=data or {},
        **_about(subject),
    )


def kind_of(subject: Subject) -> Event.SubjectKind:
    """Return what the trail calls things like this one."""
    return next(kind for model, kind in _KINDS.items() if isinstance(subject, model))


def _about(subject: Subject | None) -> dict[str, Any]:
    """Return the fields that point an event at its subject, and name it."""
    if subject is None:
        return {}
    fields: dict[str, Any] = {
        "subject_kind": kind_of(subject),
        "subject_id": subject.pk,
        "subject": _name_of(subject)[:200],
    }
    if isinstance(subject, Workspace):
        fields["workspace"] = subject
    if isinstance(subject, Template):
        fields["template"] = subject
    return fields


def _name_of(subject: Subject) -> str:
    """Return its short name: a site's title may be anything."""
    if isinstance(subject, User):
        return subject.get_username()
    if isinstance(subject, LeasePolicy | Pool | Bisection):
        return str(subject)
    return subject.name
