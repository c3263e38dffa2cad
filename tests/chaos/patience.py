"""Asking again: whoever looks on is hit by the faults, too."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from django.db import Error as DatabaseError
from django.db import connection

Answer = TypeVar("Answer")

PATIENCE_SECONDS = 60.0
PAUSE_SECONDS = 0.2


def insist(
    ask: Callable[[], Answer],
    *,
    on: tuple[type[Exception], ...],
    seconds: float = PATIENCE_SECONDS,
    between: Callable[[], None] = lambda: None,
) -> Answer:
    """Return the answer, asking again after failures of these kinds for a while.

    Raises: the last failure.
    """
    ends = time.monotonic() + seconds
    while True:
        try:
            return ask()
        except on:
            if time.monotonic() > ends:
                raise
        time.sleep(PAUSE_SECONDS)
        between()


def from_database(ask: Callable[[], Answer]) -> Answer:
    """Return what the database says once it is there."""
    return insist(ask, on=(DatabaseError,), between=connection.close)
