"""Checks of rows for `manage.py check --deploy --database default`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register

from provisioner.sites.models import Site


@register(Tags.database, deploy=True)
def no_site_points_at_the_lab(
    *, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Refuse the lab in a production installation."""
    if settings.DEBUG or not databases:
        return []
    return [
        Error(
            f"The site “{site.name}” points at the lab.",
            hint="Point it at an ONTAP system at /sites/, or delete it at /admin/.",
            obj=site,
            id="cloneyard.E001",
        )
        for site in Site.objects.order_by("name")
        if site.is_of_the_lab
    ]
