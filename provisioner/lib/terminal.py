"""What a program printed for a terminal, as text that is safe to show anywhere."""

from __future__ import annotations

import re

# CSI (colours, cursor), OSC (titles, links), other strings, and escapes of two or three
# characters. Source: ECMA-48, sections 5.3 to 5.6.
_ESCAPE = (
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"
    r"|\][^\x07\x1b]*(?:\x07|\x1b\\)"
    r"|[PX^_][^\x1b]*\x1b\\"
    r"|[ -/]+[0-~]|[0-OQ-WYZ\\`-~])"
)
ESCAPE_BYTES = re.compile(_ESCAPE.encode())
_ESCAPES = re.compile(_ESCAPE)
_CONTROLS = {code: 0x2400 + code for code in range(32) if code not in (9, 10)}
_CONTROLS |= {0x7F: 0x2421}
_CONTROLS |= dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
# They let a line look like another one: bidirectional overrides and isolates.
_CONTROLS |= dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)], 0xFFFD)
_CONTROLS |= dict.fromkeys([0x2028, 0x2029, *range(0xD800, 0xE000)], 0xFFFD)


# The same in UTF-8, but the end of a line: what a page shows may have it in forms.
_HARMFUL_BYTES = re.compile(
    rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]"
    rb"|\xe2\x80[\xa8-\xae]|\xe2\x81[\xa6-\xa9]"
)


def harmless_page(page: bytes) -> bytes:
    """Return a page in UTF-8 with pictures for what could steer a terminal.

    People copy from pages, and names of files and descriptions are others'.
    """

    def picture(found: re.Match[bytes]) -> bytes:
        return found[0].decode().translate(_CONTROLS).encode()

    return _HARMFUL_BYTES.sub(picture, page)


def shown_text(printed: str) -> str:
    """Return what a terminal would show, without colours and cursor movements.

    A line that was written over keeps what was written last. Control characters that
    are left become pictures of themselves, and what turns text around a mark.
    """
    text = _ESCAPES.sub("", printed).replace("\r\n", "\n")
    if "\r" in text:
        text = "\n".join(_last_written(line) for line in text.split("\n"))
    return text.translate(_CONTROLS)


def _last_written(line: str) -> str:
    return line.rstrip("\r").rpartition("\r")[2]
