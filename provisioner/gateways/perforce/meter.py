"""What was asked of Perforce servers: commands, and the files that they moved.

Whoever wants to know opens `metered`. What child processes asked is added to it: see
hosts/run_as.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields

from provisioner.gateways.perforce.library import Record


@dataclass(kw_only=True)
class Usage:
    """What one server was asked; commands that failed count as well."""

    commands: int = 0
    synced_files: int = 0
    synced_bytes: int = 0
    flushed_files: int = 0


Usages = dict[str, Usage]
"""Usage by P4PORT."""

_USAGES: ContextVar[Usages | None] = ContextVar("perforce_usages", default=None)


@contextmanager
def metered() -> Iterator[Usages]:
    """Count what this thread asks of Perforce servers within a with block."""
    usages: Usages = {}
    token = _USAGES.set(usages)
    try:
        yield usages
    finally:
        _USAGES.reset(token)


def count(port: str, **amounts: int) -> None:
    """Add to the usage of a server, if anybody counts."""
    usages = _USAGES.get()
    if usages is None:
        return
    usage = usages.setdefault(port, Usage())
    for name, amount in amounts.items():
        setattr(usage, name, getattr(usage, name) + amount)


def count_all(usages: Mapping[str, Mapping[str, int]]) -> None:
    """Add what a child process has counted, as `as_json` wrote it."""
    for port, amounts in usages.items():
        count(port, **amounts)


def as_json(usages: Usages) -> dict[str, dict[str, int]]:
    return {
        port: {field.name: getattr(usage, field.name) for field in fields(usage)}
        for port, usage in usages.items()
    }


def count_synced(port: str, record: Record) -> None:
    """Count a record of `p4 sync` that stands for a file sent."""
    if "depotFile" in record and record.get("action") != "deleted":
        size = int(record.get("fileSize") or 0)
        count(port, synced_files=1, synced_bytes=size)
