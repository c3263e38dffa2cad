"""Verify an archive: every checksum, and every file against the manifest."""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
from collections.abc import Callable, Iterator
from typing import IO, Any

from provisioner.gateways.hosts.rescues.writing import (
    BLOCK_BYTES,
    FORMAT,
    MANIFEST,
    STORED,
    SUMS,
    TAR,
)

Json = dict[str, Any]
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC


class Damaged(Exception):
    """The archive is not as it was written; the argument says where."""


def verify(
    directory: int, *, beat: Callable[[], None] = lambda: None
) -> dict[str, str]:
    """Read the whole archive; return the checksums of its files.

    Calls `beat` for every block that it has read.

    Raises: Damaged.
    """
    try:
        sums = _check_sums(directory, beat)
        with _file(directory, TAR) as work, _file(directory, MANIFEST) as manifest:
            _compare(_rows(manifest), _members(work, beat))
    except (OSError, tarfile.TarError, ValueError, KeyError) as error:
        raise Damaged(f"It cannot be read: {error}.") from error
    return sums


def _file(directory: int, name: str) -> IO[bytes]:
    fd = os.open(name, _READ, dir_fd=directory)
    # Read from the disk what was written a moment ago.
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    return os.fdopen(fd, "rb", buffering=BLOCK_BYTES)


def _check_sums(directory: int, beat: Callable[[], None]) -> dict[str, str]:
    with _file(directory, SUMS) as lines:
        told = [
            line.rstrip("\n").partition("  ")
            for line in lines.read().decode().splitlines()
        ]
    sums = {name: digest for digest, _, name in told}
    if not {TAR, MANIFEST} <= sums.keys() or any("/" in name for name in sums):
        raise Damaged(f"{SUMS} does not list the required files.")
    for name, expected in sums.items():
        with _file(directory, name) as file:
            if _sha256(file, beat) != expected:
                raise Damaged(
                    f"{name} does not have the checksum with which it was written."
                )
    return sums


def _rows(manifest: IO[bytes]) -> Iterator[Json]:
    """Yield the entries, one per line, between the first line and the last."""
    head = manifest.readline()
    if json.loads(head + b"]}")["format"] != FORMAT:
        raise Damaged(f"{MANIFEST} has an unknown format.")
    for line in manifest:
        if line == b"]}\n":
            return
        row: Json = json.loads(line.rstrip(b",\n"))
        yield row
    raise Damaged(f"{MANIFEST} is truncated.")


def _members(
    work: IO[bytes], beat: Callable[[], None]
) -> Iterator[tuple[tarfile.TarInfo, str]]:
    """Yield the members with the SHA-256 of their contents, "" for links."""
    with tarfile.open(
        fileobj=work, mode="r:", encoding="utf-8", errors="surrogateescape"
    ) as tar:
        while (member := tar.next()) is not None:
            tar.members = []  # type: ignore[attr-defined]  # it would keep all
            content = tar.extractfile(member) if member.isreg() else None
            yield member, _sha256(content, beat) if content is not None else ""


def _compare(
    rows: Iterator[Json], members: Iterator[tuple[tarfile.TarInfo, str]]
) -> None:
    for row in rows:
        if row["state"] not in (STORED, "torn"):
            continue
        member, digest = next(members, (None, ""))
        if member is None:
            raise Damaged(f"{TAR} ends before {row['path']!r}.")
        same_name = member.name == row["path"]
        same_link = (member.linkname or "") == row.get("link_target", "")
        is_torn = row["state"] == "torn"
        if not (same_name and same_link) or not (
            is_torn or digest == row.get("sha256", "")
        ):
            raise Damaged(f"{TAR} has another entry instead of {row['path']!r}.")
    if next(members, None) is not None:
        raise Damaged(f"{TAR} has more entries than {MANIFEST}.")


def _sha256(file: Any, beat: Callable[[], None]) -> str:
    digest = hashlib.sha256()
    while block := file.read(BLOCK_BYTES):
        digest.update(block)
        beat()
    return digest.hexdigest()
