"""Checks of the database for `manage.py check --deploy --database default`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Tags, Warning, register

from provisioner.engine.failovers import standby_trouble


@register(Tags.database, deploy=True)
def a_failover_loses_nothing(
    *, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Warn where PostgreSQL may forget what we have accepted."""
    problem = standby_trouble() if databases else ""
    if not problem:
        return []
    return [Warning(problem, hint="docs/high-availability.md", id="cloneyard.W004")]
