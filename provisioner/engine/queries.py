"""Queries of operations that a person may see."""

from __future__ import annotations

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


def operations_visible_to(user: User, *, about: str = "") -> QuerySet[Operation]:
    """Return the operations that a person may see, with their steps.

    Features register which subjects' operations these are. With `about` only those of
    one kind of subject: planning the joins of all kinds takes PostgreSQL longer than
    reading an operation.
    """
    operations = Operation.objects.select_related("requested_by").prefetch_related(
        Prefetch("steps", queryset=Step.objects.order_by("position"))
    )
    kinds = [kind for kind in subjects.kinds() if about in ("", kind.field)]
    if about:
        operations = operations.filter(subject__kind=about)
    for kind in kinds:
        operations = operations.select_related(f"subject__{kind.field}__site")
    if user.is_administrator:
        return operations
    # As one set of subjects, so that only their operations are read.
    first, *others = [kind.visible(user) for kind in kinds]
    return operations.filter(subject__in=first.union(*others) if others else first)


def find_visible_operation(user: User, *, pk: int) -> Operation | None:
    """Return an operation that the person may see, with its steps, or None."""
    found = Operation.objects.filter(pk=pk).values_list("subject__kind", flat=True)
    kind = found.first()
    if kind is None:
        return None
    return operations_visible_to(user, about=kind).filter(pk=pk).first()


def latest_operations(user: User, subject_id: int) -> list[Operation]:
    """Return a subject's latest operations that a person may see, newest first."""
    about = operations_visible_to(user).filter(subject=subject_id)
    return list(about.prefetch_related(None)[:LATEST])
