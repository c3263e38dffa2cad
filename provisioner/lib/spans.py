"""Spans of time as people type them: "30 d", "1 d 12 h", "90 min"."""

from __future__ import annotations

import re

UNITS = {"d": 86400, "h": 3600, "min": 60, "s": 1}
_PART = re.compile(r"\s*(\d{1,9})\s*(d|h|min|s)(?=\s|\d|$)")


def parse_span(text: str) -> int:
    """Return how many seconds a text means.

    Raises: ValueError where it is not numbers with units.
    """
    seconds, rest = 0, text.strip()
    if not rest:
        raise ValueError("Empty.")
    while rest:
        match = _PART.match(rest)
        if match is None:
            raise ValueError(f"Not a span of time: {text!r}")
        seconds += int(match[1]) * UNITS[match[2]]
        rest = rest[match.end() :].strip()
    return seconds


def span_text(seconds: int) -> str:
    """Return seconds exactly, as parse_span reads them."""
    parts = []
    for unit, length in UNITS.items():
        count, seconds = divmod(seconds, length)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts) or "0 s"
