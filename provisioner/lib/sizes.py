"""Sizes in bytes as text, in powers of 1024."""

from __future__ import annotations

import re
from fractions import Fraction

UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_WRITTEN = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGTP]i?B?|B)?", re.IGNORECASE)


def size_text(size_bytes: int) -> str:
    """Return a size with its largest unit: "512 B", "1.5 GiB", "100 GiB"."""
    size, power = float(size_bytes), 0
    while size >= 1024 and power < len(UNITS) - 1:
        size, power = size / 1024, power + 1
    return f"{size:.1f}".removesuffix(".0") + f" {UNITS[power]}"


def exact_size_text(size_bytes: int) -> str:
    """Return a size that `parse_size` reads back as exactly the same number."""
    power = 0
    while size_bytes and size_bytes % 1024 == 0 and power < len(UNITS) - 1:
        size_bytes, power = size_bytes // 1024, power + 1
    return f"{size_bytes} {UNITS[power]}"


def parse_size(text: str) -> int:
    """Return the bytes of "100 GiB", "1.5T", "20m" or plain bytes.

    Raises: ValueError.
    """
    written = _WRITTEN.fullmatch(text.strip())
    if written is None:
        raise ValueError(f"“{text}” is not a size.")
    number, unit = written.groups()
    power = "BKMGTP".index((unit or "B")[0].upper())
    return int(Fraction(number) * 1024**power)
