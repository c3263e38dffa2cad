"""The text of a chat message about an event, before it is formatted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Message:
    """Plain text: `facts` are names with values, `links` are labels with URLs.

    `lines` are the end of a log, in order.
    """

    title: str
    text: str
    facts: tuple[tuple[str, str], ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """An answer that no further attempt would change.

    With `turns_off`, that is true of every other message to the address.
    """

    sentence: str
    turns_off: bool = False


def shortened(
    text: str, limit: int, *, escaped: Callable[[str], str] = lambda text: text
) -> str:
    """Return a text in its escaped form, of at most `limit` characters."""
    found = escaped(text)
    while len(found) > limit:
        # Each character that is cut off was at most five (&amp;) when escaped.
        text = text[: len(text) - max(1, (len(found) - limit) // 5)]
        found = escaped(text.rstrip()) + "…"
    return found


def last_fitting(lines: tuple[str, ...], limit: int) -> tuple[str, ...]:
    """Return the last lines that fit within `limit` characters, each with \n."""
    length, first = 0, len(lines)
    while first and length + len(lines[first - 1]) + 1 <= limit:
        length += len(lines[first - 1]) + 1
        first -= 1
    return lines[first:]
