"""The id of a request: one for its answer, its log lines, and the work it starts.

It is part of structlog's context, so every line has it. Workers take it over from the
operation whose step they run.
"""

from __future__ import annotations

import re
import uuid

import structlog

KEY = "request_id"
TRACE = "trace_id"
LONGEST = 64
_FITS = re.compile(rf"[A-Za-z0-9._-]{{1,{LONGEST}}}")


def named_or_new(named: str) -> str:
    """Return the id that a caller named, or a new one if it is not fit for a log."""
    return named if _FITS.fullmatch(named) else str(uuid.uuid4())


def current() -> str:
    """Return the id of the current request; "" outside of any."""
    return str(structlog.contextvars.get_contextvars().get(KEY, ""))


def follow(request_id: str, *, traceparent: str = "") -> None:
    """Log what this job does from now on under this id, or under a new one.

    So it does under the id of the trace that it belongs to, if there is one.
    """
    ids = {KEY: named_or_new(request_id)}
    if traceparent:
        _, ids[TRACE], *_ = traceparent.split("-")
    structlog.contextvars.bind_contextvars(**ids)
