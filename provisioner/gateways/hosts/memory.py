"""How much memory this host has."""

from __future__ import annotations

import os


def memory_bytes() -> int:
    """Return the size of this host's memory. Source: sysconf(3)."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
