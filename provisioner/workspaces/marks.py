"""Marks: a unique mark in its description identifies a workspace's client."""

from __future__ import annotations

import re
import secrets

ANOTHER_NAME = r"-r[0-9a-f]{8}"
"""The end of a client's name, as a pattern, where the name itself was taken."""

_MARK = re.compile(r"Cloneyard mark ([0-9a-f]{8,16})\.")


def new_mark() -> str:
    return secrets.token_hex(8)


def new_suffix() -> str:
    """Return an unguessable suffix for a name."""
    return f"-r{secrets.token_hex(4)}"


def mark_text(mark: str) -> str:
    """Return the description of a client with this mark."""
    return f"Cloneyard mark {mark}."


def mark_in(description: str) -> str:
    """Return the mark in a description, "" without one."""
    match = _MARK.search(description)
    return match[1] if match else ""


def marked(description: str, *, mark: str) -> str:
    """Return a description with this mark instead of its own, or appended."""
    text = mark_text(mark)
    if mark_in(description):
        return _MARK.sub(text, description)
    return f"{description.rstrip()}\n{text}\n"
