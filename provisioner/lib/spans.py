"""Spans of time as people type them: "30 d", "2 weeks", "1 d 12 h", "90 min"."""

from __future__ import annotations

import re

UNITS = {"d": 86400, "h": 3600, "min": 60, "s": 1}
_SECONDS = {
    **dict.fromkeys(("w", "week", "weeks"), 7 * UNITS["d"]),
    **dict.fromkeys(("d", "day", "days"), UNITS["d"]),
    **dict.fromkeys(("h", "hour", "hours"), UNITS["h"]),
    **dict.fromkeys(("min", "minute", "minutes"), UNITS["min"]),
    **dict.fromkeys(("s", "second", "seconds"), UNITS["s"]),
}
_PART = re.compile(
    rf"\s*(\d{{1,9}})\s*({'|'.join(_SECONDS)})(?=\s|\d|$)", re.IGNORECASE
)


def parse_span(text: str) -> int:
    """Return how many seconds a text means.

    Raises: ValueError if it is not numbers with units.
    """
    seconds, rest = 0, text.strip()
    if not rest:
        raise ValueError("Empty.")
    while rest:
        match = _PART.match(rest)
        if match is None:
            raise ValueError(f"Not a span of time: {text!r}")
        seconds += int(match[1]) * _SECONDS[match[2].lower()]
        rest = rest[match.end() :].strip()
    return seconds


def span_text(seconds: int) -> str:
    """Return seconds as exact text, which parse_span reads back."""
    parts = []
    for unit, length in UNITS.items():
        count, seconds = divmod(seconds, length)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts) or "0 s"
