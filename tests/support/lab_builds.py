"""Builds of templates in the lab, until nothing moves any more."""

from __future__ import annotations

import os

from provisioner.catalog.actions.templates import (
    template_build,
)
from provisioner.catalog.models import Template
from provisioner.engine.models import Operation
from tests.support.jobs import settle

AS_ROOT = os.geteuid() == 0


def build(
    template: Template, *, change: int | None = None, is_clean: bool = False
) -> Operation:
    """Build, and wait until nothing moves any more."""
    operation = template_build(
        by=template.owner, template=template, change=change, is_clean=is_clean
    )
    settle(template)
    operation.refresh_from_db()
    return operation
