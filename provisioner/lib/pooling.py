"""Connections to the database that are opened ahead of requests."""

from __future__ import annotations

from typing import Any

import psycopg
from django.db import connection


class PooledConnection(psycopg.Connection[Any]):
    """Where one is found dead, as after a restart of the server, all are replaced.

    Otherwise the pool tries them one after the other, with pauses that double, and
    refuses the request after its timeout.
    """

    def execute(self, *args: Any, **kwargs: Any) -> psycopg.Cursor[Any]:
        """Run what the pool asks before it lends a connection; Django has cursors."""
        try:
            return super().execute(*args, **kwargs)
        except psycopg.OperationalError:
            if self.closed:
                connection.pool.drain()  # type: ignore[attr-defined]  # PostgreSQL's
            raise
