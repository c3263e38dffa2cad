"""Recording both conversations: `with recording(path):` around what is to be recorded.

It holds for all threads of the process, and for processes forked within it. What other
processes ask, such as the helpers that work as the owner of a workspace, is not in it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from io import FileIO
from pathlib import Path

import structlog

from provisioner import __version__
from provisioner.gateways.tracing.exchanges import FORMAT, Exchange
from provisioner.gateways.tracing.masking import masked
from provisioner.gateways.tracing.pseudonyms import Pseudonyms

LONGEST_BYTES = 64 << 20
log = structlog.get_logger(__name__)

Take = Callable[[Exchange], None]


class _Listeners:
    """Who hears of exchanges in this process: nobody, as a rule."""

    def __init__(self) -> None:
        self.takers: tuple[Take, ...] = ()


_listeners = _Listeners()


def is_on() -> bool:
    """Return whether anybody hears of exchanges."""
    return bool(_listeners.takers)


def tell(exchange: Exchange) -> None:
    """Tell those who hear of exchanges."""
    for take in _listeners.takers:
        take(exchange)


def milliseconds_since(began: float) -> float:
    """Return the time since a value of `time.monotonic`."""
    return (time.monotonic() - began) * 1000


@contextmanager
def heard_by(take: Take) -> Iterator[None]:
    """Pass each exchange of this process on, as it was, within a with block."""
    _listeners.takers = (*_listeners.takers, take)
    try:
        yield
    finally:
        _listeners.takers = tuple(
            each for each in _listeners.takers if each is not take
        )


@contextmanager
def recording(path: Path) -> Iterator[None]:
    """Write a trace to a new file: a header, then a line for each exchange.

    Only its owner may read the file. A trace ends at 64 MiB; what happens after that
    goes on, unrecorded.

    Raises: OSError (the file exists, or cannot be written).
    """
    with open(path, "xb", buffering=0, opener=_privately) as target:
        writer = _Writer(target)
        writer.write({"trace": FORMAT, "versions": _versions()})
        with heard_by(writer.take):
            yield


def _privately(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_APPEND, 0o600)


class _Writer:
    def __init__(self, target: FileIO) -> None:
        self._target = target
        self._names = Pseudonyms()
        self._written = 0
        self._has_failed = False

    def take(self, exchange: Exchange) -> None:
        """Write an exchange. What goes wrong here ends the trace and nothing else."""
        if self._has_failed or self._written > LONGEST_BYTES:
            return
        try:
            self.write(masked(exchange, self._names).as_json())
        except (OSError, ValueError) as error:  # a closed file is a ValueError
            self._has_failed = True
            log.error("trace_not_written", error=str(error))

    def write(self, line: Mapping[str, object]) -> None:
        data = json.dumps(line, ensure_ascii=True, separators=(",", ":")).encode()
        # In one write, so that lines of several threads do not mix.
        self._written += self._target.write(data + b"\n")


def _versions() -> dict[str, str]:
    return {
        "cloneyard": __version__,
        "recorded": datetime.now(UTC).date().isoformat(),
        "netapp-ontap": version("netapp-ontap"),
        "p4python": version("p4python"),
    }
