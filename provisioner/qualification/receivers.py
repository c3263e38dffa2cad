"""Who sees the events of runs."""

from __future__ import annotations

from django.db.models import Q

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.audit_log.queries import register_visible
from provisioner.qualification.queries import runs_visible_to


def _events_visible_to(user: User) -> Q:
    visible = runs_visible_to(user).order_by().values("pk")
    return Q(subject_kind=Event.SubjectKind.QUALIFICATION, subject_id__in=visible)


register_visible(_events_visible_to)
