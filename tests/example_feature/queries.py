"""Finding errands."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from provisioner.accounts.models import User
from tests.example_feature.models import Errand


def errands_visible_to(user: User) -> QuerySet[Errand]:
    """Return a person's own errands; everybody's to administrators."""
    errands = Errand.objects.order_by("pk")
    return errands if user.is_administrator else errands.filter(owner=user)


def subjects_visible_to(user: User) -> QuerySet[Any, Any]:
    """Return the ids of the subjects of a person's errands."""
    return errands_visible_to(user).order_by().values("subject")
