"""Permission to act, requested right before anything is changed remotely or on disk.

A worker that was frozen, or cut off from the database, can wake up after another worker
has taken over. So everything that makes a change first checks whether the caller may
still act. Whoever runs a job provides the check. Without one, as in requests and in
tests of a single gateway, everything is permitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Leave = Callable[[], None]

SILENT_SECONDS = 5.0
"""How long helpers go on without a word where the leave does not say."""


def _nobody_to_ask() -> None:
    """Permit: nobody else can have taken over."""


_leave: ContextVar[Leave] = ContextVar("leave", default=_nobody_to_ask)


@contextmanager
def asking(leave: Leave) -> Iterator[None]:
    """Call `leave` before each change in the block; it raises to refuse."""
    before = _leave.set(leave)
    try:
        yield
    finally:
        _leave.reset(before)


@contextmanager
def also_when_given(then: Callable[[], None]) -> Iterator[None]:
    """Call `then` each time that permission is given in the block."""
    leave = _leave.get()

    def ask() -> None:
        leave()
        then()

    with asking(ask):
        yield


def silent_seconds() -> float:
    """Return how long a helper continues without a renewed permission."""
    return float(getattr(_leave.get(), "silent_seconds", SILENT_SECONDS))


def require_leave() -> None:
    """Continue only with permission.

    Raises: whatever the check raises.
    """
    _leave.get()()
