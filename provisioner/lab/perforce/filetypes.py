"""File types: the words people write and the codes the client is sent.

Source: p4 help filetypes.
"""

from __future__ import annotations

_ALIASES = {
    "xtext": "text+x",
    "xbinary": "binary+x",
    "xunicode": "unicode+x",
    "xutf8": "utf8+x",
    "xutf16": "utf16+x",
    "ubinary": "binary+F",
    "uxbinary": "binary+Fx",
    "ktext": "text+k",
    "kxtext": "text+kx",
    "ltext": "text+F",
    "xltext": "text+Fx",
    "ctext": "text+C",
    "cxtext": "text+Cx",
    "tempobj": "binary+FSw",
    "ctempobj": "binary+Sw",
}
_BASES = ("text", "binary", "symlink", "unicode", "utf8", "utf16")
_MODIFIERS = frozenset("xwklCDFXSmo")
_CODES = {
    "text": ("0", "2"),
    "binary": ("1", "3"),
    "symlink": ("4", "4"),
    "unicode": ("8", "A"),
    "utf8": ("K", "M"),
    "utf16": ("O", "Q"),
}
_LINE_ENDS = {"local": "0", "unix": "1", "mac": "2", "win": "3", "share": "4"}


def normalise(word: str) -> str | None:
    """Return a type in its long form, `base` or `base+modifiers`; None if unknown."""
    base, plus, modifiers = word.partition("+")
    base, _, implied = _ALIASES.get(base, base).partition("+")
    if base not in _BASES or (plus and not modifiers):
        return None
    letters = sorted(set(implied + modifiers), key=_modifier_order)
    if not _MODIFIERS.issuperset(letters):
        return None
    return f"{base}+{''.join(letters)}" if letters else base


def _modifier_order(letter: str) -> tuple[bool, str]:
    return letter.islower(), letter


def changed(old: str, wanted: str) -> str | None:
    """Return the type after `-t wanted` on a file of type `old`; None if unknown.

    `+x` alone adds to the old type; a base replaces it.
    """
    if not wanted.startswith("+"):
        return normalise(wanted)
    base, _, modifiers = old.partition("+")
    return normalise(f"{base}+{modifiers}{wanted[1:]}")


def base_of(file_type: str) -> str:
    """Return the type without its modifiers."""
    return file_type.partition("+")[0]


def modifiers_of(file_type: str) -> str:
    """Return the letters behind the plus."""
    return file_type.partition("+")[2]


def is_text(file_type: str) -> bool:
    """Tell if content travels as text with normalised line ends."""
    return base_of(file_type) in ("text", "unicode", "utf8", "utf16", "symlink")


def wire_code(file_type: str, *, line_end: str) -> str:
    """Return the type as `client-OpenFile` and its like want it."""
    base, _, modifiers = file_type.partition("+")
    code = _CODES[base]["x" in modifiers]
    ends = "0" if base in ("binary", "symlink") else _LINE_ENDS.get(line_end, "0")
    return code + ends
