"""Scratch directories: made for a piece of work, found by its tag if that is killed.

They are below the host's directory for temporary files, where everybody may write. So
of those that have the name only the owner's and our own count.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from provisioner.gateways.owners import Owner

PREFIX = "cloneyard-scratch-"


@contextmanager
def scratch_directory(tag: str, owner: Owner) -> Iterator[Path]:
    """Have an empty directory that belongs to an owner of files, until the end."""
    with tempfile.TemporaryDirectory(
        prefix=f"{PREFIX}{tag}-", ignore_cleanup_errors=True
    ) as made:
        if os.geteuid() == 0:
            os.chown(made, owner.uid, owner.gid)
        yield Path(made)


def scratch_left(tag: str, owner: Owner) -> list[Path]:
    """Return the directories on this host whose tag is this one, or begins with it."""
    ours = {owner.uid, os.geteuid()}
    with os.scandir(tempfile.gettempdir()) as entries:
        return [
            Path(entry.path)
            for entry in entries
            if entry.name.startswith(f"{PREFIX}{tag}-")
            and entry.is_dir(follow_symlinks=False)
            and entry.stat(follow_symlinks=False).st_uid in ours
        ]


def remove_scratch(tag: str, owner: Owner) -> None:
    """Remove these directories: whoever made them was killed. None is success."""
    for path in scratch_left(tag, owner):
        shutil.rmtree(path, ignore_errors=True)
