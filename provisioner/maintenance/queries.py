"""Queries of announcements."""

from __future__ import annotations

from django.db.models import QuerySet
from django.db.models.functions import Now

from provisioner.maintenance.models import Maintenance


def announced() -> QuerySet[Maintenance]:
    """Return current and future maintenance, soonest first."""
    return Maintenance.objects.filter(ends_at__gt=Now())
