"""Queries of operations that a person may see."""

from __future__ import annotations

from functools import reduce
from operator import or_

from django.db.models import Prefetch, QuerySet

from provisioner.accounts.models import User
from provisioner.engine import subjects
from provisioner.engine.models import Operation, Step

LATEST = 10


def servers_used(operation: Operation) -> list[str]:
    """Return the names of the Perforce servers that its steps have used, sorted."""
    begun = operation.steps.filter(attempt__gt=0, perforce_server__isnull=False)
    names = begun.order_by("perforce_server__name")
    return list(names.values_list("perforce_server__name", flat=True).distinct())


def operations_visible_to(user: User) -> QuerySet[Operation]:
    """Return the operations that a person may see, with their steps.

    Features register which subjects' operations these are.
    """
    operations = Operation.objects.select_related("requested_by").prefetch_related(
        Prefetch("steps", queryset=Step.objects.order_by("position"))
    )
    for kind in subjects.kinds():
        operations = operations.select_related(f"subject__{kind.field}__site")
    if user.is_administrator:
        return operations
    visible = [kind.visible(user) for kind in subjects.kinds()]
    return operations.filter(reduce(or_, visible))


def latest_operations(user: User, subject_id: int) -> list[Operation]:
    """Return a subject's latest operations that a person may see, newest first."""
    about = operations_visible_to(user).filter(subject=subject_id)
    return list(about.prefetch_related(None)[:LATEST])
