"""A pool of open database connections."""

from __future__ import annotations

from typing import Any

import psycopg
from django.db import connection


class PooledConnection(psycopg.Connection[Any]):
    """If one is found dead, as after a restart of the server, all are replaced.

    Otherwise the pool tries them one after another, with pauses that double, and
    refuses the request after its timeout.
    """

    def execute(self, *args: Any, **kwargs: Any) -> psycopg.Cursor[Any]:
        """Run the pool's check before it lends a connection; Django uses cursors."""
        try:
            return super().execute(*args, **kwargs)
        except psycopg.OperationalError:
            if self.closed:
                connection.pool.drain()  # type: ignore[attr-defined]  # PostgreSQL's
            raise
