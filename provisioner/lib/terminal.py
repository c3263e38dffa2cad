"""Terminal output of programs as text that is safe to show anywhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

# CSI (colors, cursor), OSC (titles, links), other strings, and escapes of two or three
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


QUOTES_LOG = " of the log:\n"
"""Between what a message says and the lines of a log that it quotes."""

# The same, but for the end of a line: what a page shows may have it in forms.
_HARMFUL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def harmless_page(page: bytes) -> bytes:
    """Return a UTF-8 page with visible symbols for characters that steer a terminal.

    People copy from pages, and others choose the names of files and the descriptions
    there.
    """
    text = page.decode(errors="surrogateescape")
    if _HARMFUL.search(text) is None:
        return page  # as nearly all
    harmless = _HARMFUL.sub(lambda found: found[0].translate(_CONTROLS), text)
    return harmless.encode(errors="surrogateescape")


def shown_text(printed: str) -> str:
    """Return what a terminal would show, without colors and cursor movements.

    An overwritten line keeps its last text. Remaining control characters become visible
    symbols, and those that reverse the direction of text become a mark.
    """
    text = _ESCAPES.sub("", printed).replace("\r\n", "\n")
    if "\r" in text:
        text = "\n".join(_last_written(line) for line in text.split("\n"))
    return text.translate(_CONTROLS)


def _last_written(line: str) -> str:
    return line.rstrip("\r").rpartition("\r")[2]


class Span(NamedTuple):
    """Text of a line, with its color and styles as CSS class names, "" for none."""

    text: str
    looks: str


_COLORS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_SGR = re.compile(r"\x1b\[([0-9;:]{0,64})m")
_STEEPEST = 255


@dataclass(frozen=True, kw_only=True)
class _Looks:
    """The current colors. Backgrounds are ignored, as few pairs are readable."""

    color: str = ""
    is_bold: bool = False
    is_dim: bool = False
    is_italic: bool = False
    is_underlined: bool = False

    def __str__(self) -> str:
        names = (
            f"ansi-{self.color}" if self.color else "",
            "ansi-bold" if self.is_bold else "",
            "ansi-dim" if self.is_dim and not self.color else "",
            "ansi-italic" if self.is_italic else "",
            "ansi-underline" if self.is_underlined else "",
        )
        return " ".join(name for name in names if name)

    def after(self, printed: str) -> _Looks:
        """Return the colors and styles after all escapes of a text."""
        looks = self
        for found in _SGR.finditer(printed):
            looks = looks.changed(found[1])
        return looks

    def changed(self, parameters: str) -> _Looks:
        """Return the colors and styles after one Select Graphic Rendition.

        Source: ECMA-48, section 8.3.117; ITU-T T.416, section 13.1.8, for 38.
        """
        codes = [int(code or 0) for code in parameters.replace(":", ";").split(";")]
        looks = self
        while codes:
            code = codes.pop(0)
            if code in (38, 48):
                color = _extended(codes)
                looks = replace(looks, color=color) if code == 38 else looks
            else:
                looks = looks._with(code)
        return looks

    def _with(self, code: int) -> _Looks:
        if code == 0:
            return _Looks()
        if 30 <= code <= 37 or 90 <= code <= 97:
            return replace(self, color=_COLORS[code % 10])
        changes: dict[int, dict[str, bool | str]] = {
            1: {"is_bold": True},
            2: {"is_dim": True},
            3: {"is_italic": True},
            4: {"is_underlined": True},
            22: {"is_bold": False, "is_dim": False},
            23: {"is_italic": False},
            24: {"is_underlined": False},
            39: {"color": ""},
        }
        return replace(self, **changes.get(code, {}))  # type: ignore[arg-type]


def _extended(codes: list[int]) -> str:
    """Take an extended color from the codes; return the nearest of the eight."""
    kind = codes.pop(0) if codes else 0
    if kind == 5 and codes:
        number = codes.pop(0)
        if number < 16:
            return _COLORS[number % 8]
        if number >= 232:
            return ""  # grays
        steps = number - 16
        return _nearest(steps // 36, steps // 6 % 6, steps % 6, most=5)
    if kind == 2 and len(codes) >= 3:
        red, green, blue = codes[:3]
        del codes[:3]
        return _nearest(red, green, blue, most=_STEEPEST)
    return ""


def _nearest(red: int, green: int, blue: int, *, most: int) -> str:
    strongest = max(red, green, blue)
    if strongest * 4 < most or min(red, green, blue) * 4 > strongest * 3:
        return ""  # next to black, or gray
    bits = ((red, 1), (green, 2), (blue, 4))
    return _COLORS[sum(bit for value, bit in bits if value * 2 > strongest)]


def painted_lines(printed: str) -> Iterator[list[Span]]:
    """Yield the lines that a terminal would show, each with its colors.

    As in `shown_text`, overwritten text and control characters are gone.
    """
    looks = _Looks()
    for line in printed.split("\n"):
        written_over, _, shown = line.rstrip("\r").rpartition("\r")
        looks = looks.after(written_over)
        spans, at = [], 0
        for found in _SGR.finditer(shown):
            spans.append(Span(shown_text(shown[at : found.start()]), str(looks)))
            looks, at = looks.changed(found[1]), found.end()
        spans.append(Span(shown_text(shown[at:]), str(looks)))
        yield [span for span in spans if span.text]
