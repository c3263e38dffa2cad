"""Names and descriptions of a server that is not in Unicode mode: bytes.

Here they are text that every database, file and log accepts. A byte that is not UTF-8
becomes one of 128 private letters (U+10FE80 to U+10FEFF); the bytes of such a letter
itself are encoded the same way. Either way the same bytes come out again.
"""

from __future__ import annotations

_FIRST = 0x10FE80
_BYTES = range(0x80, 0x100)
_LETTER = {byte: chr(_FIRST + byte - 0x80) for byte in _BYTES}

_INTO_LETTERS = {
    **{0xDC00 + byte: letter for byte, letter in _LETTER.items()},
    **{
        ord(letter): "".join(_LETTER[byte] for byte in letter.encode())
        for letter in _LETTER.values()
    },
}
_INTO_BYTES = {ord(letter): 0xDC00 + byte for byte, letter in _LETTER.items()}


def text_of(data: bytes) -> str:
    """Return bytes as text."""
    text = data.decode("utf-8", "surrogateescape")
    return text if text.isascii() else text.translate(_INTO_LETTERS)


def bytes_of(text: str) -> bytes:
    """Return the bytes that a text represents."""
    if text.isascii():
        return text.encode()
    return text.translate(_INTO_BYTES).encode("utf-8", "surrogateescape")


def is_utf8(text: str) -> bool:
    """Return whether a text represents bytes that are UTF-8."""
    return text.isascii() or not any(ord(letter) in _INTO_BYTES for letter in text)
