"""Excerpts from the log of a failed command: its first error in context.

The last lines of a build seldom show the reason: other make jobs continue, and each
level reports again that the one below it failed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from provisioner.engine.logs.error_lines import ErrorLine, find_error
from provisioner.engine.models import Step
from provisioner.engine.subjects import error_patterns_of
from provisioner.lib.terminal import QUOTES_LOG, shown_text

LINES_BEFORE = 2
LINES_AFTER = 4
LONGEST_LINE = 300
LAST_LINES = 5
LAST_BYTES = 16 * 1024
_ERROR_LINE = re.compile(r"line ([\d,]+)$")


@dataclass(frozen=True, kw_only=True)
class Excerpt:
    """Lines of a log; `line_number` is the error's, or 0 for the end of the log."""

    lines: tuple[str, ...]
    line_number: int = 0

    def __str__(self) -> str:
        """Return the lines under a heading, "" if the log is empty."""
        if not self.lines:
            return ""
        name = f"First error, line {self.line_number:,}" if self.line_number else "End"
        return f"{name}{QUOTES_LOG}" + "\n".join(self.lines)


def error_alone(message: str) -> str:
    """Return a message with one line of the log that it quotes: the error, or the last.

    For lists, where the lines around it would be cut off or hide it.
    """
    words, mark, quoted = message.partition(QUOTES_LOG)
    lines = quoted.splitlines()
    if not lines:
        return message
    at = len(lines) - 1
    if number := _ERROR_LINE.search(words):
        at = min(int(number[1].replace(",", "")) - 1, LINES_BEFORE, at)
    return f"{words}{mark.rstrip()} {lines[at]}"


def excerpt_of(step: Step, *, last_lines: int = LAST_LINES) -> Excerpt:
    """Return the first error that a step printed with lines around it, else the end.

    Empty if it printed nothing.
    """
    patterns = error_patterns_of(step.operation)
    return excerpt_of_log(step.log_path, own=patterns, last_lines=last_lines)


def excerpt_of_log(
    log: Path, *, own: Iterable[str] = (), last_lines: int = LAST_LINES
) -> Excerpt:
    """Return the first error in a log with lines around it, else the last lines."""
    try:
        error = find_error(log, own=own)
        return _end_of(log, last_lines) if error is None else _around(log, error)
    except FileNotFoundError:
        return Excerpt(lines=())


def _around(log: Path, error: ErrorLine) -> Excerpt:
    with log.open("rb") as opened:
        begin = max(error.offset - LAST_BYTES, 0)
        opened.seek(begin)
        before = opened.read(error.offset - begin).splitlines()[-LINES_BEFORE:]
        lines = iter(lambda: opened.readline(LAST_BYTES), b"")
        after = islice(lines, 1 + LINES_AFTER)
        quoted = tuple(map(_shown, (*before, *after)))
    return Excerpt(lines=quoted, line_number=error.number)


def _end_of(log: Path, last_lines: int) -> Excerpt:
    with log.open("rb") as end:
        end.seek(max(end.seek(0, 2) - LAST_BYTES, 0))
        lines = end.read().rstrip().splitlines()[-last_lines:]
    return Excerpt(lines=tuple(map(_shown, lines)))


def _shown(line: bytes) -> str:
    """Return a line as text that is safe for pages, mails and the database."""
    text = line.decode(errors="replace").replace("\0", "\ufffd")
    return shown_text(text.rstrip("\r\n"))[:LONGEST_LINE]
