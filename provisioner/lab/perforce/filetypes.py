"""File types: the words that people write and the codes that the client gets.

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


def normalize(word: str) -> str | None:
    """Return a type in its long form, `base` or `base+modifiers`; None if unknown."""
    base, plus, modifiers = word.partition("+")
    base, _, implied = _ALIASES.get(base, base).partition("+")
    if base not in _BASES or (plus and not modifiers):
        return None
    letters = sorted(set(implied + modifiers), key=_modifier_order)
    if not _MODIFIERS.issuperset(letters):
        return None
    return f"{base}+{''.join(letters)}" if letters else base


def normalize_partial(word: str) -> str | None:
    """Return a type as `normalize` does, also accepting only `+modifiers`."""
    return normalize(f"text{word}" if word.startswith("+") else word)


def _modifier_order(letter: str) -> tuple[bool, str]:
    return letter.islower(), letter


def changed(old: str, wanted: str) -> str | None:
    """Return the type after `-t wanted` on a file of type `old`; None if unknown.

    `+x` alone adds to the old type; a base replaces it.
    """
    if not wanted.startswith("+"):
        return normalize(wanted)
    base, _, modifiers = old.partition("+")
    return normalize(f"{base}+{modifiers}{wanted[1:]}")


def base_of(file_type: str) -> str:
    """Return the type without its modifiers."""
    return file_type.partition("+")[0]


def modifiers_of(file_type: str) -> str:
    """Return the letters behind the plus."""
    return file_type.partition("+")[2]


def is_text(file_type: str) -> bool:
    """Return whether content is sent as text with normalized line ends."""
    return base_of(file_type) in ("text", "unicode", "utf8", "utf16", "symlink")


def wire_code(file_type: str, *, line_end: str) -> str:
    """Return the type as `client-OpenFile` and similar messages want it."""
    base, _, modifiers = file_type.partition("+")
    code = _CODES[base]["x" in modifiers]
    ends = "0" if base in ("binary", "symlink") else _LINE_ENDS.get(line_end, "0")
    return code + ends


# How a database stores types: bits of the client's view of the file and of storage.
_BASE_BITS = {0x0: "text", 0x10000: "binary", 0x40000: "symlink", 0x80000: "unicode"}
_MODIFIER_BITS = {
    0x200000: "m",
    0x100000: "w",
    0x20000: "x",
    0x20: "k",
    0x10: "ko",
    0x40: "l",
}
_KNOWN_BITS = 0x3F0000 | 0xFFF


def from_bits(bits: int) -> str | None:
    """Return a type from its number in a database; None if it is not known.

    Source: db.rev, FileType in the server schema.
    """
    base = _BASE_BITS.get(bits & 0xD0000)
    if base is None or bits & ~_KNOWN_BITS:
        return None
    letters = "".join(m for bit, m in _MODIFIER_BITS.items() if bits & bit)
    storage = bits & 0xF
    if storage == 1:
        letters += "F"
    elif storage == 3 and base != "binary":
        letters += "C"
    if bits & 0x80:
        letters += "S"
    return normalize(f"{base}+{letters}" if letters else base)


def to_bits(file_type: str) -> int | None:
    """Return the number of a type in a database; None if it has none here.

    What a restore makes the type of again.
    """
    base, modifiers = base_of(file_type), modifiers_of(file_type)
    bits = next((bit for bit, name in _BASE_BITS.items() if name == base), None)
    if bits is None:
        return None
    for bit, letters in _MODIFIER_BITS.items():
        if letters in modifiers and not (letters == "k" and "ko" in modifiers):
            bits |= bit
    if "F" in modifiers:
        bits |= 1
    elif "C" in modifiers or base == "binary":
        bits |= 3
    bits |= 0x80 if "S" in modifiers else 0
    return bits if from_bits(bits) == file_type else None
