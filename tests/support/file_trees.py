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


def as_written(file: Path) -> tuple[int, ...]:
    """Return all of a file's status but when it was read, which reading changes."""
    status = file.stat()
    return (
        *(status.st_mode, status.st_ino, status.st_dev, status.st_nlink),
        *(status.st_uid, status.st_gid, status.st_size),
        *(status.st_mtime_ns, status.st_ctime_ns),
    )
