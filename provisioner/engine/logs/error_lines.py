"""Which log lines count as errors: one rule for pages and mails.

Patterns have RE2's syntax: any pattern in a template runs in linear time, ten times
faster than Python's.

Source: https://github.com/google/re2/wiki/Syntax
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import re2

from provisioner.lib.terminal import ESCAPE_BYTES

SEARCH_SECONDS = 5.0
MOST_PATTERNS = 100
# What a line is read in: one without an end is not held in memory as a whole.
LONGEST_READ_BYTES = 64 * 1024

# How compilers, linkers, build tools and interpreters begin or mark an error.
_ERRORS = (
    r"^\s*\S.*?:\d+(?::\d+)?:\s(?:fatal\s|internal\scompiler\s)?error\b",  # gcc, clang
    r"^(?:fatal\s|internal\scompiler\s)?error(?:\[\w+\])?:\s",  # rustc, git, npm
    r"(?:^|\s|:)(?:fatal\s)?error\s[a-z]{1,6}\d{3,5}\s*:",  # msvc, csc, link, MSBuild
    r"^(?:\[[^\]]*\]\s?)?\[error\]\s",  # maven, with or without a time
    r"^\([\d:. ]+\)\serror:\s",  # bazel with times
    r"^e:\s",  # kotlin
    r":\serror:\s",  # unreal, clang-cl, javac in ant
    r"undefined\sreference\sto\s|:\sundefined\ssymbol",  # ld, lld
    r"^(?:\S*/)?(?:ld|collect2)(?:\.\w+)?:\serror",
    r"^traceback\s\(most\srecent\scall\slast\)",  # Python
    r"^exception\sin\sthread\s",  # Java
    r"^(?:npm|yarn|pnpm)\serr!?\s|^cmake\serror\b",
    r"^(?:failure|failed):\s",  # gradle, ninja
)
# They often stand for something that a build copes with, or for an error further up.
_HINTS = (
    r"^g?n?make(?:\[\d+\])?:\s\*\*\*\s",
    r":\s(?:command\s)?not\sfound$",
    r":\spermission\sdenied$",
    r"\bno\sspace\sleft\son\sdevice\b",
    r"\bsegmentation\sfault\b",
    r"^killed$",
)
# Where an error is only counted or named: "0 error(s)", "-Werror", "error.cpp".
_NO_ERRORS = (r"\b(?:0|no)\serrors?\b", r"\bwarning\b[^:]*:")


class PatternInvalid(ValueError):
    """A pattern cannot be parsed; the argument says which one, and why."""


@dataclass(frozen=True, kw_only=True)
class ErrorLine:
    """A line of a log: its number, from 1, and its first byte."""

    number: int
    offset: int


def check_patterns(patterns: Iterable[str]) -> None:
    """Refuse patterns that RE2 cannot parse, alone or together.

    Raises: PatternInvalid.
    """
    wanted = list(patterns)
    if len(wanted) > MOST_PATTERNS:
        raise PatternInvalid(f"Give at most {MOST_PATTERNS} patterns.")
    for pattern in wanted:
        try:
            _compiled([pattern])
        except re2.error as error:
            why = error.args[0] if error.args else b""
            said = why.decode(errors="replace") if isinstance(why, bytes) else why
            raise PatternInvalid(
                f"“{pattern}” is not a valid pattern: {said}."
            ) from error
    try:
        _compiled(wanted)
    except re2.error as error:
        raise PatternInvalid(
            "These patterns are too large together. Give fewer or shorter ones."
        ) from error


def find_error(log: Path, *, own: Iterable[str] = ()) -> ErrorLine | None:
    """Return the first line of a log that is an error; None without one.

    A line that matches a template's own patterns comes first, then one that a common
    tool marks as an error, then one that hints at one. A long log is searched for five
    seconds.
    """
    try:
        with log.open("rb") as opened:
            return _find(opened, own=list(own))
    except FileNotFoundError:
        return None


def _find(log: BinaryIO, *, own: list[str]) -> ErrorLine | None:
    wanted = _compiled(own) if own else None
    error = hint = None
    ends_at = time.monotonic() + SEARCH_SECONDS
    for number, offset, line in _lines(log):
        here = ErrorLine(number=number, offset=offset)
        if wanted is not None and wanted.search(line):
            return here
        if error is None and _ERROR.search(line) and not _NO_ERROR.search(line):
            error = here
            if wanted is None:
                return error
        if hint is None and _HINT.search(line) and not _NO_ERROR.search(line):
            hint = here
        # A pattern may take a tenth of a second for one long line.
        if time.monotonic() > ends_at:
            break
    return error or hint


def _lines(log: BinaryIO) -> Iterator[tuple[int, int, bytes]]:
    """Yield lines without color codes and line ends. Very long lines are split."""
    number, offset = 1, 0
    while raw := log.readline(LONGEST_READ_BYTES):
        line = ESCAPE_BYTES.sub(b"", raw) if b"\x1b" in raw else raw
        yield number, offset, line.rstrip()
        offset += len(raw)
        number += raw.endswith(b"\n")


def _compiled(patterns: Iterable[str]) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = False
    return re2.compile("|".join(f"(?:{one})" for one in patterns).encode(), options)


_ERROR, _HINT, _NO_ERROR = map(_compiled, (_ERRORS, _HINTS, _NO_ERRORS))
