"""Checks of settings and of the database: `manage.py check --deploy`.

Those of the database need `--database default` as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import connection

from provisioner.engine.failovers import standby_trouble
from provisioner.engine.host_settings import why_no_log_directory

_ROOM = """
    SELECT current_setting('max_connections')::int
        - current_setting('superuser_reserved_connections')::int
        - coalesce(current_setting('reserved_connections', true)::int, 0)
"""


@register("logs", deploy=True)
def logs_can_be_kept(**kwargs: Any) -> list[CheckMessage]:
    """Report a directory of logs that cannot be made."""
    problem = why_no_log_directory()
    hint = "docs/configuration.md"
    return [Error(problem, hint=hint, id="cloneyard.E002")] if problem else []


@register(Tags.database, deploy=True)
def the_pool_fits_the_database(
    *, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Report a pool that asks for more connections than the database ever gives."""
    pool = connection.settings_dict["OPTIONS"].get("pool")
    if not databases or not pool:
        return []
    with connection.cursor() as cursor:
        cursor.execute(_ROOM)
        [room] = cursor.fetchone()
    if pool["max_size"] <= room:
        return []
    return [
        Error(
            f"DATABASE_POOL is {pool['max_size']}, but the database gives {room} "
            "connections to all processes together (max_connections, less those that "
            "it reserves). Set it to the threads of one web server, or raise "
            "max_connections.",
            hint="docs/configuration.md",
            id="cloneyard.E003",
        )
    ]


@register(Tags.database, deploy=True)
def a_failover_loses_nothing(
    *, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Warn where PostgreSQL may forget what we have accepted."""
    problem = standby_trouble() if databases else ""
    if not problem:
        return []
    return [Warning(problem, hint="docs/high-availability.md", id="cloneyard.W004")]
