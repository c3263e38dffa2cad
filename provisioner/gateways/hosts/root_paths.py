"""Build output that contains the template's own directory, which is wrong in a clone.

A sample, limited in time, files and bytes. Build output is recognized by its mode:
versioned files are read-only unless they are opened or the client says allwrite.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from provisioner.gateways.hosts.tree_remarks import TreeRemark, as_text
from provisioner.gateways.snapshot_directories import SNAPSHOTS

SECONDS = 10.0
FILES = 2000
FILES_OF_A_DIRECTORY = 20
BYTES = 128 * 2**20
BYTES_OF_A_FILE = 512 * 1024
NAMED = 20


def sample_root_paths(root: Path, *, seconds: float = SECONDS) -> list[TreeRemark]:
    """Return those of the sampled files that contain the path of the tree's root.

    Directories are taken in an order that is the same every time. Links are not
    followed, and unreadable entries are skipped.
    """
    needle = re.compile(re.escape(os.fsencode(root)) + rb"(?![\w.-])")
    ends = time.monotonic() + seconds
    found: list[str] = []
    looked = left = 0
    budget = BYTES
    for path in _writable_files(root):
        if looked == FILES or budget <= 0 or time.monotonic() > ends:
            left = 1
            break
        data = _beginning(path)
        looked += 1
        budget -= len(data)
        if needle.search(data):
            found.append(as_text(os.path.relpath(path, root)))
    if not found:
        return []
    findings = [
        TreeRemark(
            kind="absolute_root",
            path=path,
            sentence=f"{path} contains the path {root}: in a clone it still leads into "
            "the template. Let the build write relative paths.",
        )
        for path in found[:NAMED]
    ]
    more = f", of which {NAMED} are named" if len(found) > NAMED else ""
    part = "a sample of " if left else ""
    findings.append(
        TreeRemark(
            kind="absolute_root",
            path="",
            sentence=f"absolute_root: {len(found):,} of {part}{looked:,} writable "
            f"files{more}.",
        )
    )
    return findings


def _writable_files(root: Path) -> Iterator[str]:
    """Yield some files of each directory, directories in a shuffled order."""
    shuffled = random.Random(0)
    waiting = [str(root)]
    while waiting:
        place = shuffled.randrange(len(waiting))
        waiting[place], waiting[-1] = waiting[-1], waiting[place]
        taken = 0
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name != SNAPSHOTS:
                        waiting.append(entry.path)
                elif taken < FILES_OF_A_DIRECTORY and _is_writable_file(entry):
                    taken += 1
                    yield entry.path


def _is_writable_file(entry: os.DirEntry[str]) -> bool:
    with contextlib.suppress(OSError):
        mode = entry.stat(follow_symlinks=False).st_mode
        return stat.S_ISREG(mode) and bool(mode & 0o222)
    return False


def _beginning(path: str) -> bytes:
    """Read the first part of a regular file; "" if it is no longer one."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b""
    with open(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return b""
        return file.read(BYTES_OF_A_FILE)
