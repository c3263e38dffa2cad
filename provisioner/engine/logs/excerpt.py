"""What to quote of the log of a command that failed: its first error, in its place.

The last lines of a build are seldom the reason: other jobs of make go on, and each
level says once more that the one below it has failed.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from provisioner.lib.terminal import ESCAPE_BYTES, shown_text

LINES_BEFORE = 2
LINES_AFTER = 4
LONGEST_LINE = 300
LAST_LINES = 5
LAST_BYTES = 16 * 1024
SEARCH_SECONDS = 5.0

# How compilers, linkers, build tools and interpreters begin or mark an error.
_ERROR = re.compile(
    rb"""(?xi)
      ^\S.*?:\d+(?::\d+)?:\s(?:fatal\s|internal\scompiler\s)?error\b  # gcc, clang, go
    | ^(?:fatal\s|internal\scompiler\s)?error(?:\[\w+\])?:\s          # rustc, git, npm
    | (?:^|\s|:)(?:fatal\s)?error\s[a-z]{1,6}\d{3,5}\s*:              # msvc, csc, link
    | ^\[error\]\s                                                    # maven
    | ^e:\s                                                           # kotlin
    | :\serror:\s                                                     # unreal, clang-cl
    | undefined\sreference\sto\s | :\sundefined\ssymbol               # ld, lld
    | ^(?:\S*/)?(?:ld|collect2)(?:\.\w+)?:\serror
    | ^traceback\s\(most\srecent\scall\slast\)                        # Python
    | ^exception\sin\sthread\s                                        # Java
    | ^(?:npm|yarn|pnpm)\serr!?\s | ^cmake\serror\b
    | ^(?:failure|failed):\s                                          # gradle, ninja
    """
)
# They often stand for something that a build copes with, or for an error further up.
_HINT = re.compile(
    rb"""(?xi)
      ^g?n?make(?:\[\d+\])?:\s\*\*\*\s
    | :\s(?:command\s)?not\sfound$ | :\spermission\sdenied$
    | \bno\sspace\sleft\son\sdevice\b | \bsegmentation\sfault\b | ^killed$
    """
)
# Where an error is only counted or named: "0 error(s)", "-Werror", "error.cpp".
_NO_ERROR = re.compile(rb"(?i)\b(?:0|no)\serrors?\b|\bwarning\b[^:]*:")


@dataclass(frozen=True, kw_only=True)
class Excerpt:
    """Lines of a log; `line_number` is that of the error, 0: these are the last."""

    lines: tuple[str, ...]
    line_number: int = 0

    def __str__(self) -> str:
        """Return the lines with what they are, "" where the log is empty."""
        if not self.lines:
            return ""
        name = f"First error, line {self.line_number:,}" if self.line_number else "End"
        return f"{name} of the log:\n" + "\n".join(self.lines)


def excerpt_of(log: Path, *, last_lines: int = LAST_LINES) -> Excerpt:
    """Return the first error in a log with lines around it, else the last lines.

    A log that is long is searched for five seconds. Without a log there are no lines.
    """
    try:
        with log.open("rb") as lines:
            found = _first_error(lines) or _hint(log)
            return found or _end_of(log, last_lines=last_lines)
    except FileNotFoundError:
        return Excerpt(lines=())


def _first_error(lines: Iterator[bytes]) -> Excerpt | None:
    return _first(_ERROR, lines)


def _hint(log: Path) -> Excerpt | None:
    with log.open("rb") as lines:
        return _first(_HINT, lines)


def _first(pattern: re.Pattern[bytes], lines: Iterator[bytes]) -> Excerpt | None:
    before: deque[bytes] = deque(maxlen=LINES_BEFORE)
    ends_at = time.monotonic() + SEARCH_SECONDS
    for number, raw in enumerate(lines, start=1):
        line = ESCAPE_BYTES.sub(b"", raw) if b"\x1b" in raw else raw
        if pattern.search(line.rstrip()) and not _NO_ERROR.search(line):
            around = (*before, raw, *islice(lines, LINES_AFTER))
            return Excerpt(lines=tuple(map(_shown, around)), line_number=number)
        if number % 1000 == 0 and time.monotonic() > ends_at:
            break
        before.append(raw)
    return None


def _end_of(log: Path, *, last_lines: int) -> Excerpt:
    with log.open("rb") as end:
        end.seek(max(end.seek(0, 2) - LAST_BYTES, 0))
        lines = end.read().rstrip().splitlines()[-last_lines:]
    return Excerpt(lines=tuple(map(_shown, lines)))


def _shown(line: bytes) -> str:
    """Return a line as text that pages, mails and the database take."""
    text = line.decode(errors="replace").replace("\0", "\ufffd")
    return shown_text(text.rstrip("\r\n"))[:LONGEST_LINE]
