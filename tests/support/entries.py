"""What is in a tree, without what ONTAP shows there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def entries_below(root: Path) -> Iterator[Path]:
    """Yield every entry of a tree but its snapshots, which are no part of it."""
    for directory, names, files in os.walk(root):
        if ".snapshot" in names:
            names.remove(".snapshot")
        for name in (*names, *files):
            yield Path(directory, name)
