"""Search a log of any length for text, in bounded time and memory."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from provisioner.engine.logs.reading import line_number_at
from provisioner.lib.terminal import ESCAPE_BYTES, shown_text

HITS_SHOWN = 100
SEARCH_SECONDS = 5.0
BLOCK_BYTES = 1024 * 1024
_AROUND = 160


@dataclass(frozen=True, kw_only=True)
class Hit:
    """A line that contains the text, and its number."""

    number: int
    before: str
    found: str
    after: str


@dataclass(frozen=True, kw_only=True)
class Found:
    """The hits between two offsets of a log with `size` bytes."""

    hits: tuple[Hit, ...]
    searched_from: int
    searched_to: int
    size: int

    @property
    def is_all(self) -> bool:
        """Whether the search reached the end of the log."""
        return self.searched_to >= self.size


def search_log(
    path: Path,
    *,
    text: str,
    start: int = 0,
    hits_at_most: int = HITS_SHOWN,
    seconds: float = SEARCH_SECONDS,
) -> Found | None:
    """Return lines with the text from an offset on; None if there is no log.

    ASCII case and color codes are ignored. It stops early after many hits or some
    seconds, and can be continued.
    """
    needle = text.encode(errors="replace").lower()
    pattern = re.compile(re.escape(text), re.IGNORECASE | re.ASCII)
    ends_at = time.monotonic() + seconds
    hits: list[Hit] = []
    try:
        with path.open("rb") as log:
            size = log.seek(0, 2)
            searched_to = min(start, size)
            number = line_number_at(path, offset=searched_to)
            log.seek(searched_to)
            for block in _blocks(iter(lambda: log.read(BLOCK_BYTES), b"")):
                for offset, line in _lines_with(needle, block):
                    if len(hits) == hits_at_most:
                        return Found(
                            hits=tuple(hits),
                            searched_from=start,
                            searched_to=searched_to + offset,
                            size=size,
                        )
                    at = number + block[:offset].count(b"\n")
                    hits.append(_hit(at, line, pattern=pattern))
                searched_to += len(block)
                number += block.count(b"\n")
                if time.monotonic() > ends_at:
                    break
    except FileNotFoundError:
        return None
    return Found(
        hits=tuple(hits),
        searched_from=start,
        searched_to=searched_to,
        size=max(size, searched_to),
    )


def _blocks(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield blocks that end at line ends; a line longer than a chunk is split."""
    carried = b""
    for chunk in chunks:
        data = carried + chunk
        whole = data.rfind(b"\n") + 1 or len(data)
        carried = data[whole:]
        yield data[:whole]
    if carried:
        yield carried


def _lines_with(needle: bytes, block: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a block that contain the needle, with their offsets in it."""
    if needle not in _plain(block):
        return
    offset = 0
    for line in block.split(b"\n"):
        if needle in _plain(line):
            yield offset, line
        offset += len(line) + 1


def _plain(data: bytes) -> bytes:
    return (ESCAPE_BYTES.sub(b"", data) if b"\x1b" in data else data).lower()


def _hit(number: int, line: bytes, *, pattern: re.Pattern[str]) -> Hit:
    plain = ESCAPE_BYTES.sub(b"", line).decode(errors="replace")
    match = pattern.search(plain)
    begin, end = match.span() if match else (0, 0)
    before, after = plain[:begin], plain[end:]
    if len(before) > _AROUND:
        before = "…" + before[-_AROUND:]
    if len(after) > _AROUND:
        after = after[:_AROUND] + "…"
    return Hit(
        number=number,
        before=_on_one_line(before),
        found=_on_one_line(plain[begin:end]),
        after=_on_one_line(after),
    )


def _on_one_line(text: str) -> str:
    return shown_text(text.replace("\r", " "))
