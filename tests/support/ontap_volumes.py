"""Where the lab's volumes are, a tree to fill one with, and its shape."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

VOLUMES = "/api/storage/volumes"


def fill(directory: Path) -> None:
    """Make a tree with everything a build leaves behind."""
    (directory / "deep" / "er").mkdir(parents=True)
    program = directory / "deep" / "run"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o4755)
    (directory / "secret").write_text("x")
    (directory / "secret").chmod(0o600)
    os.link(directory / "secret", directory / "deep" / "linked")
    (directory / "link").symlink_to("deep/run")
    (directory / "dangling").symlink_to("/nowhere")
    (directory / "deep" / "er" / "naïve name").write_bytes(b"\0" * 5000)
    os.utime(directory / "secret", ns=(1_000_000_007, 2_000_000_009))
    os.utime(directory / "deep" / "er", ns=(3_000_000_000, 4_000_000_000))


def shape(directory: Path) -> dict[str, tuple[Any, ...]]:
    """Return what must be equal in a clone, for every entry."""
    found = {}
    for path in entries(directory):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        target = os.readlink(path) if path.is_symlink() else ""
        found[str(path.relative_to(directory))] = (
            status.st_mode,
            status.st_mtime_ns,
            status.st_nlink if not path.is_dir() else 0,
            content,
            target,
        )
    return found


def entries(directory: Path) -> list[Path]:
    """Return what is in the volume itself."""
    inside = (path.relative_to(directory) for path in directory.rglob("*"))
    return [directory / path for path in inside if ".snapshot" not in path.parts]


IMAGE_BYTES = 256 << 20


def makes_images() -> bool:
    """Return whether this host can mount a btrfs image."""
    return os.geteuid() == 0 and shutil.which("mkfs.btrfs") is not None


needs_image = pytest.mark.skipif(
    not makes_images(),
    reason="a btrfs image needs root and mkfs.btrfs",
)
