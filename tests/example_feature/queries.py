"""Finding errands."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from provisioner.accounts.models import User
from tests.example_feature.models import Errand


def errands_visible_to(user: User) -> QuerySet[Errand]:
    """Return a person's own errands; everybody's to administrators."""
    errands = Errand.objects.order_by("pk")
    return errands if user.is_administrator else errands.filter(owner=user)


def operations_visible_to(user: User) -> Q:
    """Return the condition for operations about a person's errands."""
    return Q(subject__in=errands_visible_to(user).order_by().values("subject"))
