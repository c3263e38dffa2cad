"""Read a step's output piece by piece, even while it is written.

A log may have hundreds of megabytes; at most two pieces of it are in memory.
"""

from __future__ import annotations

import codecs
import contextlib
import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

PIECE_BYTES = 64 * 1024
BLOCK_BYTES = 1024 * 1024
CONTEXT_BYTES = 2000
# Who follows and is further behind than this is taken to the end.
FOLLOWED_BYTES = 16 * PIECE_BYTES


@dataclass(frozen=True, kw_only=True)
class LogPiece:
    """Bytes `start` to `end` of a log of currently `size` bytes, as text.

    `rest` is the unfinished last line; it follows `end`, and is read again once more of
    it is written. `skipped` bytes before `start` were left out. `number` is that of the
    first line, if counted.
    """

    text: str
    start: int
    end: int
    size: int
    rest: str = ""
    skipped: int = 0
    number: int = 1

    @property
    def next_number(self) -> int:
        """The number of the line after this piece."""
        return self.number + self.text.count("\n")

    @property
    def is_last(self) -> bool:
        """Whether nothing follows it (yet)."""
        return self.end == self.size or bool(self.rest)

    @property
    def has_more(self) -> bool:
        return not self.is_last


def read_log(path: Path) -> LogPiece | None:
    """Return the last piece of a log; None if there is no log."""
    size = _size_of(path)
    if size is None:
        return None
    return _between(path, max(size - PIECE_BYTES, 0), size, whole_lines=True)


def read_from(
    path: Path, *, offset: int, at_most: int = PIECE_BYTES
) -> LogPiece | None:
    """Return the piece that begins exactly at an offset; None if there is no log.

    Pieces end at line ends where there are any, and never within a character. A log
    shorter than the offset was started over, and is read from its beginning.
    """
    size = _size_of(path)
    if size is None:
        return None
    start = offset if offset <= size else 0
    return _between(path, start, start + at_most)


def read_before(
    path: Path, *, offset: int, at_most: int = PIECE_BYTES
) -> LogPiece | None:
    """Return the piece that ends exactly at an offset; None if there is no log."""
    size = _size_of(path)
    if size is None:
        return None
    end = min(offset, size)
    return _between(path, max(end - at_most, 0), end, whole_lines=True, is_cut=True)


def read_on(path: Path, *, offset: int) -> LogPiece | None:
    """Return the log since an offset, or its end if that is too much."""
    piece = read_from(path, offset=offset)
    if piece is None or piece.size - piece.start <= FOLLOWED_BYTES:
        return piece
    tail = read_log(path)
    if tail is None:
        return None
    return dataclasses.replace(tail, skipped=max(tail.start - piece.start, 0))


def numbered(path: Path, piece: LogPiece, *, number: int | None = None) -> LogPiece:
    """Number a piece's first line, counting from the start of the log if necessary."""
    if number is None:
        number = line_number_at(path, offset=piece.start)
    return dataclasses.replace(piece, number=number)


def offset_of_line(path: Path, *, number: int) -> int | None:
    """Return the offset of a line, counted from 1; None if the log is shorter."""
    missing, offset = number - 1, 0
    for block in _blocks(path):
        here = block.count(b"\n")
        if here >= missing:
            at = 0
            for _ in range(missing):
                at = block.index(b"\n", at) + 1
            return offset + at
        missing -= here
        offset += len(block)
    return None


def line_number_at(path: Path, *, offset: int) -> int:
    """Return the number, from 1, of the line at an offset."""
    number = 1
    for block in _blocks(path):
        number += block[:offset].count(b"\n")
        offset -= len(block)
        if offset <= 0:
            break
    return number


def _blocks(path: Path) -> Iterator[bytes]:
    with contextlib.suppress(FileNotFoundError), path.open("rb") as log:
        while block := log.read(BLOCK_BYTES):
            yield block


def _size_of(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


def _between(
    path: Path, start: int, end: int, *, whole_lines: bool = False, is_cut: bool = False
) -> LogPiece | None:
    """Read a piece of a log.

    With `whole_lines` it leaves out a first line that began earlier. With `is_cut` it
    ends where asked to, even within a line.
    """
    try:
        with path.open("rb") as log:
            return _read(log, start, end, whole_lines=whole_lines, is_cut=is_cut)
    except FileNotFoundError:
        return None


def _read(
    log: BinaryIO, start: int, end: int, *, whole_lines: bool, is_cut: bool
) -> LogPiece:
    size = log.seek(0, 2)
    # From one byte before, to see whether a line begins here.
    log.seek(max(start - 1, 0))
    data = log.read(end - start + min(start, 1))
    before, data = data[: min(start, 1)], data[min(start, 1) :]
    if whole_lines and before not in (b"", b"\n"):
        skipped = data.find(b"\n") + 1
        if skipped < len(data):  # otherwise it is one long line, or the end of one
            start, data = start + skipped, data[skipped:]
    if is_cut:
        text = data.decode(errors="replace")
        return LogPiece(text=text, start=start, end=start + len(data), size=size)
    whole = data.rfind(b"\n") + 1
    is_at_end = start + len(data) >= size
    if is_at_end and len(data) - whole < PIECE_BYTES:
        text, rest = data[:whole].decode(errors="replace"), data[whole:]
        return LogPiece(
            text=text,
            start=start,
            end=start + whole,
            size=size,
            rest=rest.decode(errors="replace"),
        )
    text, used = _decoded(data[:whole] or data)
    return LogPiece(text=text, start=start, end=start + used, size=size)


def _decoded(data: bytes) -> tuple[str, int]:
    """Return the text, and its length in bytes without a character cut at the end."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    text = decoder.decode(data)
    cut_off = len(decoder.getstate()[0])
    if not text:
        return data.decode(errors="replace"), len(data)
    return text, len(data) - cut_off
