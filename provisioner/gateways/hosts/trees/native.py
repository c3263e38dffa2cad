"""The compiled walk, if it was built: `compiled/*.c` for this machine.

`make` builds it into the environment of this interpreter. Anyone who can put a program
there can also replace the interpreter, so it needs no additional trust. Its name holds
the hash of its source, so a build of another source never runs.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

SOURCE = Path(__file__).with_name("compiled")
PLACE = Path(sys.prefix, "libexec", "cloneyard")
OLDEST_LINUX = (5, 8)
"""The first Linux with STATX_MNT_ID, which tells mounts apart. Source: statx(2)."""

USAGE_STATUS = 2
"""Its exit code without arguments, which proves that it runs here."""

FLAGS = (
    "-O2",
    "-std=gnu11",
    "-Wall",
    "-Wextra",
    "-fstack-protector-strong",
    "-pthread",
)


class BuildFailed(Exception):
    """Why there is no compiled walk; the sequential one runs instead."""


def program_path() -> Path:
    """Return the path of the program for this source."""
    digest = hashlib.sha256()
    for path in sorted(SOURCE.glob("*.[ch]")):
        digest.update(path.read_bytes())
    return PLACE / f"walk-{digest.hexdigest()[:32]}"


def find_program() -> Path | None:
    """Return the program if it is built, runs here, and only we may change it."""
    program = program_path()
    if _linux() < OLDEST_LINUX or not os.access(program, os.X_OK):
        return None
    return program if _is_trusted(program) and _is_trusted(program.parent) else None


def build() -> Path:
    """Compile the program if it is missing; return its path.

    Raises: BuildFailed.
    """
    found = find_program()
    if found is not None:
        return found
    compiler = shutil.which("cc")
    if compiler is None:
        raise BuildFailed("no C compiler (cc) was found")
    PLACE.mkdir(mode=0o755, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=PLACE) as directory:
        made = Path(directory, "walk")
        sources = sorted(map(str, SOURCE.glob("*.c")))
        _run([compiler, *FLAGS, "-o", str(made), *sources], status=0)
        made.chmod(0o755)
        _run([str(made)], status=USAGE_STATUS)
        made.replace(program_path())
    for older in PLACE.glob("walk-*"):
        if older != program_path():
            older.unlink()
    program = find_program()
    if program is None:
        raise BuildFailed(
            f"{program_path()} cannot be used: it needs Linux 5.8, and only root or "
            "this user may own and write it"
        )
    return program


def _linux() -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2])


def _is_trusted(path: Path) -> bool:
    found = path.lstat()
    others_may_write = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return found.st_uid in (0, os.geteuid()) and not others_may_write


def _run(command: list[str], *, status: int) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != status:
        raise BuildFailed(f"{' '.join(command)} failed: {done.stderr.strip()}")


def main(output: IO[str]) -> None:
    """Build it if it is missing, and report which walk will run."""
    if find_program() is not None:
        return
    try:
        output.write(f"Compiled the tree walk: {build()}\n")
    except (BuildFailed, OSError) as error:
        output.write(f"Chown and removal will be slow, one file at a time: {error}.\n")


if __name__ == "__main__":
    main(sys.stderr)
