"""Find processes of this host that hold files of a tree open for writing.

Source: proc(5), /proc/PID/fd and fdinfo. Without root, processes of other users are not
visible.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Writer:
    """A process that writes. `path` is relative to the root of the tree."""

    pid: int
    program: str
    uid: int
    path: str

    def __str__(self) -> str:
        return f"process {self.pid} ({self.program}, uid {self.uid}) writes {self.path}"


def find_writers(root: Path) -> Iterator[Writer]:
    """Yield each process with the first file below `root` that it may write to."""
    for process in list(Path("/proc").glob("[0-9]*")):
        with contextlib.suppress(OSError):
            path = next(_open_for_writing(process, root), None)
            if path is not None:
                yield Writer(
                    pid=int(process.name),
                    program=_shown((process / "comm").read_text().strip()),
                    uid=process.stat().st_uid,
                    path=_shown(path),
                )


def _open_for_writing(process: Path, root: Path) -> Iterator[str]:
    below = f"{root}/"
    for descriptor in (process / "fd").iterdir():
        with contextlib.suppress(OSError):
            target = os.readlink(descriptor)
            if target.startswith(below) and _may_write(process, descriptor.name):
                yield target.removeprefix(below)


def _may_write(process: Path, descriptor: str) -> bool:
    for line in (process / "fdinfo" / descriptor).read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "flags":
            return int(value, 8) & os.O_ACCMODE != os.O_RDONLY
    return False


def _shown(text: str) -> str:
    return os.fsencode(text).decode("utf-8", "backslashreplace")
