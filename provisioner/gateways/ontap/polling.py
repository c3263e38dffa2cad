"""Waiting for ONTAP: poll with growing pauses until a time limit."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

_Found = TypeVar("_Found")

FIRST_PAUSE_SECONDS = 0.02
LONGEST_PAUSE_SECONDS = 2.0
_GROWTH = 1.3


def pauses() -> Iterator[float]:
    """Yield pauses in seconds without end: 0.02, 0.026, 0.034 … 2.0, 2.0.

    Each is about a third of the time waited so far. So the end is noticed soon after it
    came, whether that took 30 ms or a minute.
    """
    for attempt in itertools.count():
        pause = FIRST_PAUSE_SECONDS * _GROWTH**attempt
        if pause >= LONGEST_PAUSE_SECONDS:
            break
        yield pause
    yield from itertools.repeat(LONGEST_PAUSE_SECONDS)


def wait_until(
    look: Callable[[], _Found | None], *, limit_seconds: float
) -> _Found | None:
    """Call `look` until it returns a value; return None after the time limit."""
    deadline = time.monotonic() + limit_seconds
    for pause in pauses():
        found = look()
        if found is not None:
            return found
        left = deadline - time.monotonic()
        if left <= 0:
            return None
        time.sleep(min(pause, left))
    raise AssertionError("pauses() has no end")
