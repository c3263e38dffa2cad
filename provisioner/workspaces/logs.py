"""Reading what a build printed, piece by piece, while it may still be printing."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from pathlib import Path

PIECE_BYTES = 64 * 1024


@dataclass(frozen=True, kw_only=True)
class LogPiece:
    """Bytes `start` to `end` of a log that has `size` bytes by now, as text."""

    text: str
    start: int
    end: int
    size: int

    @property
    def earlier(self) -> int:
        """Where the piece before this one begins."""
        return max(self.start - PIECE_BYTES, 0)


def read_log(path: Path, *, offset: int | None = None) -> LogPiece | None:
    """Return a piece of a log from `offset` on, the last one for None.

    Pieces begin and end at line ends where there are any, and never within a
    character. None: there is no log.
    """
    try:
        with path.open("rb") as log:
            size = log.seek(0, 2)
            start = max(size - PIECE_BYTES, 0) if offset is None else min(offset, size)
            log.seek(start)
            data = log.read(PIECE_BYTES)
    except FileNotFoundError:
        return None
    if offset is None and start:
        skipped = data.find(b"\n") + 1
        start, data = start + skipped, data[skipped:]
    whole_lines = data.rfind(b"\n") + 1
    if whole_lines and start + len(data) < size:
        data = data[:whole_lines]
    text, used = _decoded(data)
    return LogPiece(text=text, start=start, end=start + used, size=size)


def _decoded(data: bytes) -> tuple[str, int]:
    """Return text and how many bytes it is; a character cut at the end is left out."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    text = decoder.decode(data)
    cut_off = len(decoder.getstate()[0])
    if not text:
        return data.decode(errors="replace"), len(data)
    return text, len(data) - cut_off
