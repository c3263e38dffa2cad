"""Requests that cross each other: connections of their own, and waiting for locks."""

from __future__ import annotations

import time
from collections.abc import Callable

from django.db import connection

WAITS_WITHIN_SECONDS = 60.0


def in_a_connection_of_its_own(act: Callable[[], object]) -> Callable[[], object]:
    def run() -> object:
        try:
            return act()
        finally:
            connection.close()

    return run


def wait_until_somebody_waits_for_a_lock() -> None:
    ends = time.monotonic() + WAITS_WITHIN_SECONDS
    while True:
        with connection.cursor() as cursor:
            # Tests beside this one wait in databases of their own.
            cursor.execute(
                "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
                "AND datname = current_database()"
            )
            if cursor.fetchone() is not None:
                return
        assert time.monotonic() < ends
        time.sleep(0.01)
