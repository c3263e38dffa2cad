"""Spans of a trace: what took how long, and how it ended.

Nobody records them, as a rule: then a span is a call that returns. Where an endpoint is
configured, provisioner/telemetry records them with OpenTelemetry. Spans name commands,
paths without ids, states and numbers: never a secret, a person or a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from enum import Enum
from typing import Protocol, Self

Facts = Mapping[str, str | int]


class Kind(Enum):
    """What a span is for: an answer, a remote call, work that is queued or done."""

    SERVER = "server"
    CLIENT = "client"
    PRODUCER = "producer"
    CONSUMER = "consumer"


class Span(Protocol):
    """Something that takes a while."""

    def note(self, facts: Facts, *, name: str = "", failed: bool = False) -> None:
        """Add what became known later, such as the outcome."""


class Recorder(Protocol):
    def span(
        self,
        name: str,
        *,
        kind: Kind,
        facts: Facts,
        within: str,
        key: str,
        after: str,
    ) -> AbstractContextManager[Span]:
        """Return a span; see `span` below."""

    def traceparent(self) -> str:
        """Return the current span, as the header of W3C Trace Context names it."""

    def trace_id(self) -> str: ...


class _Unrecorded:
    """A span that nobody records."""

    def note(self, facts: Facts, *, name: str = "", failed: bool = False) -> None:
        """Forget it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        """Let exceptions pass."""


_UNRECORDED = _Unrecorded()
_recorder: Recorder | None = None


def record_with(recorder: Recorder | None) -> None:
    """Have all spans of this process recorded from now on; None: no longer."""
    global _recorder
    _recorder = recorder


def span(
    name: str,
    *,
    kind: Kind,
    facts: Facts | None = None,
    within: str = "",
    key: str = "",
    after: str = "",
) -> AbstractContextManager[Span]:
    """Return the span of a with block, inside the current one.

    `within` is the traceparent of another one to be inside of, as of another process.
    The id of a span with a `key` is made of it: a later span links to it by naming
    the key in `after`, without having seen it.
    """
    if _recorder is None:
        return _UNRECORDED
    return _recorder.span(
        name, kind=kind, facts=facts or {}, within=within, key=key, after=after
    )


def traceparent() -> str:
    """Return the current span, as the header of W3C Trace Context names it, or ""."""
    return "" if _recorder is None else _recorder.traceparent()


def trace_id() -> str:
    """Return the id of the current trace, "" if none is recorded."""
    return "" if _recorder is None else _recorder.trace_id()
