"""Small trees of files."""

from __future__ import annotations

import os
from pathlib import Path

NOT_TEXT = os.fsdecode(b"caf\xe9.c")


def tree(root: Path, files: dict[str, str]) -> Path:
    """Write files below a root, by their paths; return the root."""
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root
