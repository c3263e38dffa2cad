"""The one writer of the audit log: who, what, why, from where.

Events are written in the transaction of the change that they record. They must not
contain secrets, since people read them.
"""

from __future__ import annotations

from typing import Any

from django.db.models import Model

from provisioner.accounts import origin
from provisioner.accounts.models import User
from provisioner.audit_log.models import Event

_KINDS = {
    "workspaces.workspace": Event.SubjectKind.WORKSPACE,
    "catalog.template": Event.SubjectKind.TEMPLATE,
    "sites.site": Event.SubjectKind.SITE,
    "sites.perforceserver": Event.SubjectKind.PERFORCE_SERVER,
    "accounts.user": Event.SubjectKind.ACCOUNT,
    "accounts.team": Event.SubjectKind.TEAM,
    "leases.leasepolicy": Event.SubjectKind.POLICY,
    "notify.webhook": Event.SubjectKind.WEBHOOK,
    "pools.pool": Event.SubjectKind.POOL,
    "bisect.bisection": Event.SubjectKind.BISECTION,
    "mirrors.mirror": Event.SubjectKind.MIRROR,
    "copies.workspacecopy": Event.SubjectKind.COPY,
    "sandboxes.sandbox": Event.SubjectKind.SANDBOX,
    "qualification.qualificationrun": Event.SubjectKind.QUALIFICATION,
}
"""Kinds of subjects, by the labels of their models."""


def record_event(
    subject: Model | None,
    *,
    kind: str,
    message: str,
    reason: str = "",
    actor: User | None = None,
    data: dict[str, Any] | None = None,
) -> Event:
    """Record an event, and return it.

    Without an actor it is who sent the request, or Cloneyard itself.
    """
    here = origin.current()
    actor = actor or here.actor
    return Event.objects.create(
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


def kind_of(subject: Model) -> Event.SubjectKind:
    """Return the kind of a subject."""
    return _KINDS[subject._meta.label_lower]


def _about(subject: Model | None) -> dict[str, Any]:
    """Return the fields of an event that refer to its subject and name it."""
    if subject is None:
        return {}
    kind = kind_of(subject)
    fields: dict[str, Any] = {
        "subject_kind": kind,
        "subject_id": subject.pk,
        "subject": _name_of(subject)[:200],
    }
    if kind in (Event.SubjectKind.WORKSPACE, Event.SubjectKind.TEMPLATE):
        fields[kind.value] = subject
    return fields


def _name_of(subject: Model) -> str:
    """Return its short name: a site's title may be anything."""
    if isinstance(subject, User):
        return subject.get_username()
    return str(getattr(subject, "name", subject))
