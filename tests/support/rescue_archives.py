"""Archives of rescued files: made, unpacked and checked."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from provisioner.gateways.hosts.rescue_archive import (
    ArchiveEntry,
    ArchiveReport,
    archive_files,
)
from provisioner.gateways.hosts.rescues.verifying import verify

UID = 20123 if os.geteuid() == 0 else os.geteuid()


GID = 20124 if os.geteuid() == 0 else os.getegid()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "clone").mkdir()
    (tmp_path / "rescue").mkdir()
    return tmp_path / "clone"


def verified(directory: Path) -> dict[str, str]:
    """Read an archive back; return the checksums of its files."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return verify(fd)
    finally:
        os.close(fd)


def archive(root: Path, entries: Sequence[ArchiveEntry], **more: Any) -> ArchiveReport:
    arguments: dict[str, Any] = {
        "rescue_root": root.parent / "rescue",
        "owner": "alice",
        "workspace": "main-1",
        "tag": "abc123",
        "uid": UID,
        "gid": GID,
        "metadata": {},
    }
    report = archive_files(root, entries, **{**arguments, **more})
    assert report is not None
    return report


def untracked(*paths: str) -> list[ArchiveEntry]:
    return [ArchiveEntry(path=path, kind="untracked") for path in paths]


def rows_of(report: ArchiveReport) -> dict[str, dict[str, Any]]:
    manifest = json.loads((report.directory / "manifest.json").read_bytes())
    return {row["path"]: row for row in manifest["entries"]}


def unpacked(report: ArchiveReport, place: Path) -> Path:
    place.mkdir()
    subprocess.run(
        ["tar", "-xpf", report.directory / "work.tar", "-C", place], check=True
    )
    return place


def left_in_rescue(root: Path) -> list[str]:
    return sorted(str(p) for p in (root.parent / "rescue").rglob("*"))
