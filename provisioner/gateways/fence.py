"""Leave to act, asked for right before anything is changed far away or on disk.

A worker that was frozen, or cut off from the database, wakes in the middle of something
that another has gone on with. So every door that changes something asks first whether
who acts still may; whoever runs a step says whom to ask. Without that, as in tests of
one gateway and in sweeps, nobody is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Leave = Callable[[], None]


def _nobody_to_ask() -> None:
    """Nothing else can have gone on with what is done here."""


_leave: ContextVar[Leave] = ContextVar("leave", default=_nobody_to_ask)


@contextmanager
def asking(leave: Leave) -> Iterator[None]:
    """Have `leave` asked before each act in the block; it raises to refuse."""
    before = _leave.set(leave)
    try:
        yield
    finally:
        _leave.reset(before)


def require_leave() -> None:
    """Go on only with leave. Raises: what the one raises who is asked."""
    _leave.get()()
