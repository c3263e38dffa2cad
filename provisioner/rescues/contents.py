"""The contents of a rescue's archive: its manifest, some entries at a time.

The manifest belongs to the owner of the rescued work, and may have been changed since.

Source: provisioner/gateways/hosts/rescues/writing.py, `Archive._write_work`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from provisioner.gateways.hosts.rescues.writing import FORMAT, STORED
from provisioner.lib.storable import shown
from provisioner.rescues.refusals import RescueDamaged

ENTRIES_SHOWN = 200
LONGEST_LINE_BYTES = 4 * 1024 * 1024
_END = b"]}\n"
_KINDS = {
    "opened": "Opened",
    "changed": "Changed without being opened",
    "missing": "Deleted without being opened",
    "untracked": "Untracked",
}
_STATES = {
    "missing": "Deleted, so there is no content",
    "vanished": "Vanished before it was read",
    "torn": "Changed while it was read",
    "special": "A device, socket or pipe",
    "directory": "A directory has its name",
    "behind_link": "Behind a symbolic link",
    "unreadable": "Could not be read",
}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A rescued file. `size_bytes` is None if the archive has no content of it."""

    path: str
    kind: str
    state: str
    size_bytes: int | None
    link_target: str
    reason: str

    @property
    def kind_title(self) -> str:
        return _KINDS.get(self.kind, self.kind)

    @property
    def remark(self) -> str:
        """What people should know about it, "" for most."""
        if self.link_target:
            return f"A link to {self.link_target}"
        return self.reason or _STATES.get(self.state, "")


@dataclass(frozen=True, kw_only=True)
class Contents:
    """Some entries, in order of their paths; `next_start` is None at the end."""

    entries: tuple[Entry, ...]
    start: int
    next_start: int | None

    @property
    def has_other_pages(self) -> bool:
        return bool(self.start) or self.next_start is not None


def entries_from(pieces: Iterable[bytes], *, start: int) -> Contents:
    """Return entries of a manifest from the byte `start` on.

    Raises: RescueDamaged; what reading the pieces raises.
    """
    entries: list[Entry] = []
    offset = start
    for line in _lines(pieces):
        if offset == 0:
            _check_head(line)
        elif line == _END:
            return Contents(entries=tuple(entries), start=start, next_start=None)
        elif len(entries) == ENTRIES_SHOWN:
            return Contents(entries=tuple(entries), start=start, next_start=offset)
        else:
            entries.append(_entry(line))
        offset += len(line)
    raise RescueDamaged


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Raises: RescueDamaged for a line that no manifest has."""
    begun = b""
    for piece in pieces:
        *ended, begun = (begun + piece).split(b"\n")
        yield from (line + b"\n" for line in ended)
        if len(begun) > LONGEST_LINE_BYTES:
            raise RescueDamaged
    if begun:
        yield begun


def _check_head(line: bytes) -> None:
    head = _parsed(line.rstrip() + b"]}")
    if head.get("format") != FORMAT:
        raise RescueDamaged


def _entry(line: bytes) -> Entry:
    row = _parsed(line.rstrip(b",\n"))
    size = row.get("size", 0)
    texts = [
        row.get(name, "") for name in ("path", "kind", "link_target", "reason", "state")
    ]
    if not all(isinstance(text, str) for text in texts) or not isinstance(size, int):
        raise RescueDamaged
    path, kind, link_target, reason, state = map(shown, texts)
    return Entry(
        path=path,
        kind=kind,
        state=state,
        size_bytes=size if state in (STORED, "torn") else None,
        link_target=link_target,
        reason=reason,
    )


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        row = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RescueDamaged from error
    if not isinstance(row, dict):
        raise RescueDamaged
    return row
