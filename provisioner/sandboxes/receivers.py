"""Who sees the events of sandboxes."""

from __future__ import annotations

from django.db.models import Q

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.audit_log.queries import register_visible
from provisioner.sandboxes.queries import sandboxes_ever


def _events_visible_to(user: User) -> Q:
    visible = sandboxes_ever(user).order_by().values("pk")
    return Q(subject_kind=Event.SubjectKind.SANDBOX, subject_id__in=visible)


register_visible(_events_visible_to)
