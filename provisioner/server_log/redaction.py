"""What is removed from arguments and messages before they are stored."""

from __future__ import annotations

import re

HIDDEN = "***"
# Their arguments are passwords, keys, or text of people.
_HIDDEN_WHOLE = frozenset(
    f"user-{name}"
    for name in (
        *("passwd", "login", "login2", "trust", "configure", "property", "key"),
        *("keys", "extension"),
    )
)
_TICKET_LENGTH = 32
_TICKET = re.compile(r"\b[0-9A-F]{32}\b")
_IN_ADDRESS = re.compile(r"(://)[^/@\s]+@")
_NAMED = re.compile(
    r"(?i)\b(\w*(?:passw(?:or)?d|secret|token|ticket|api_?key)\w*\s*[=:]\s*)\S+"
)
# As far as they are without a choice.
_WORDS = ("passw", "secret", "token", "ticket", "api")
_CALL = re.compile(r"'([\w-]+)(?: .*)")
_OPTION = re.compile(r"(?<!\S)(-P\s*|--password[ =])\S+")


def redacted(command: str, arguments: str) -> str:
    """Return the arguments of a command without what may be secret."""
    if not arguments:
        return ""
    return HIDDEN if command in _HIDDEN_WHOLE else redacted_text(arguments)


def redacted_text(text: str) -> str:
    """Return text, such as a torn line of a log, without what may be secret.

    Most text has nothing of it; to look for a word costs less than a pattern.
    """
    if "'" in text and (call := _CALL.search(text)) and call[1] in _HIDDEN_WHOLE:
        text = f"{text[: call.end(1)]} {HIDDEN}"
    if len(text) >= _TICKET_LENGTH:
        text = _TICKET.sub(HIDDEN, text)
    if "://" in text:
        text = _IN_ADDRESS.sub(rf"\1{HIDDEN}@", text)
    if "-P" in text or "--password" in text:
        text = _OPTION.sub(rf"\1{HIDDEN}", text)
    folded = text.casefold()
    if any(word in folded for word in _WORDS):
        text = _NAMED.sub(rf"\1{HIDDEN}", text)
    return text
