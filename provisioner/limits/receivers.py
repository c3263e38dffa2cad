"""Checks of limits before other features act."""

from __future__ import annotations

from typing import Any

from django.dispatch import receiver

from provisioner.catalog.events import before_building
from provisioner.catalog.models import Template
from provisioner.copies.events import before_copying
from provisioner.limits.admission import check_build, check_copy, check_mirror
from provisioner.mirrors.events import before_creating
from provisioner.sites.models import Site
from provisioner.workspaces.models import Workspace


@receiver(before_building)
def refuse_beyond_limits(template: Template, **kwargs: Any) -> None:
    """Refuse a build without room for its snapshot, or for the volume of a first build.

    Raises: LimitReached.
    """
    check_build(template=template)


@receiver(before_creating)
def refuse_mirror_beyond_limits(
    template: Template, site: Site, aggregate: str, **kwargs: Any
) -> None:
    """Refuse a mirror without room for its volume.

    Raises: LimitReached.
    """
    check_mirror(template, site=site, aggregate=aggregate)


@receiver(before_copying)
def refuse_copy_beyond_limits(workspace: Workspace, site: Site, **kwargs: Any) -> None:
    """Refuse the first copy of a workspace to a site without room for its clone.

    Raises: LimitReached.
    """
    check_copy(workspace, site=site)
