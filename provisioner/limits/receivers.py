"""Checks of limits before other features act."""

from __future__ import annotations

from typing import Any

from django.dispatch import receiver

from provisioner.catalog.events import before_building
from provisioner.catalog.models import Template
from provisioner.limits.admission import check_build


@receiver(before_building)
def refuse_beyond_limits(template: Template, **kwargs: Any) -> None:
    """Refuse a build without room for its snapshot, or for the volume of a first build.

    Raises: LimitReached.
    """
    check_build(template=template)
