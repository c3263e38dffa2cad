"""Requests that cross each other: connections of their own, and waiting for locks."""

from __future__ import annotations

import time
from collections.abc import Callable

from django.db import connection

WAITS_WITHIN_SECONDS = 20.0


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
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            if cursor.fetchone()[0]:
                return
        assert time.monotonic() < ends
        time.sleep(0.01)
