"""RCS files, as far as archives of text revisions use them.

The newest revision is stored whole, each older one as an edit of the next newer.

Source: rcsfile(5).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_EDIT = re.compile(rb"([ad])(\d+) (\d+)\n?")
_TOKEN = re.compile(rb"@((?:[^@]|@@)*)@|([^\s;:@]+)|([;:])")


class RcsError(Exception):
    """The text is not an RCS file."""


def revisions(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield each revision's number and content, newest first.

    Raises: RcsError.
    """
    head, following, texts = _parse(data)
    number = head
    lines: list[bytes] | None = None
    seen = set()
    while number:
        if number in seen or number not in texts:
            raise RcsError(f"revision {number} is not there, or there twice")
        seen.add(number)
        text = texts[number]
        lines = _split(text) if lines is None else _edited(lines, text)
        yield number, b"".join(lines)
        number = following.get(number, "")


def _parse(data: bytes) -> tuple[str, dict[str, str], dict[str, bytes]]:
    """Return the newest revision, the order of the others, and the stored texts."""
    head, number, log_seen = "", "", False
    following: dict[str, str] = {}
    texts: dict[str, bytes] = {}
    tokens = _TOKEN.finditer(data)
    for token in tokens:
        word = token[2]
        if word is None:
            continue
        if word == b"head":
            head = _word(next(tokens, None))
        elif word == b"desc":
            log_seen = True
            next(tokens, None)
        elif word[:1].isdigit():
            number = word.decode()
        elif word == b"next" and not log_seen:
            following[number] = _word(next(tokens, None))
        elif word in (b"date", b"log"):
            next(tokens, None)
        elif word == b"text" and log_seen:
            text = next(tokens, None)
            if text is None or text[1] is None:
                raise RcsError(f"revision {number} has no text")
            texts[number] = text[1].replace(b"@@", b"@")
    if not head:
        raise RcsError("there is no head")
    return head, following, texts


def _word(token: re.Match[bytes] | None) -> str:
    return token[2].decode() if token is not None and token[2] is not None else ""


def _split(text: bytes) -> list[bytes]:
    """Split at line feeds only; carriage returns are content."""
    lines = text.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


def _edited(lines: list[bytes], script: bytes) -> list[bytes]:
    """Apply one edit script: `dN M` deletes, `aN M` adds, counted in the old lines."""
    result: list[bytes] = []
    done = 0
    commands = _split(script)
    index = 0
    while index < len(commands):
        match = _EDIT.fullmatch(commands[index])
        if match is None:
            raise RcsError("an edit script has a line that is no edit")
        index += 1
        start, count = int(match[2]), int(match[3])
        if match[1] == b"d":
            result += lines[done : start - 1]
            done = start - 1 + count
        else:
            result += lines[done:start]
            done = max(done, start)
            result += commands[index : index + count]
            index += count
    return result + lines[done:]
