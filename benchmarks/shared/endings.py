"""However a benchmark is told to end, it does so in order, and leaves nothing."""

from __future__ import annotations

import signal

ENDINGS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def end_in_order() -> None:
    """Let each of these leave through every `finally` and every function at exit."""
    for number in ENDINGS:
        signal.signal(number, _end)


def _end(number: int, _frame: object) -> None:
    """Leave; further signals do not disturb that."""
    for each in ENDINGS:
        signal.signal(each, signal.SIG_IGN)
    raise SystemExit(128 + number)
