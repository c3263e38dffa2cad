"""Check some entries of a tree to learn whether all have the right owner."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from provisioner.gateways.hosts.descent import directories
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.gateways.snapshot_directories import SNAPSHOTS

PER_DIRECTORY = 8
PER_REMOTE_DIRECTORY = 20
PATH_BYTES = 4096  # including the NUL at its end. Source: PATH_MAX, limits.h
NAME_BYTES = 255  # Source: NAME_MAX, limits.h


@dataclass(frozen=True, kw_only=True)
class OwnershipSample:
    """`mismatches` are paths with the owner that was found instead."""

    checked: int
    mismatches: tuple[str, ...]


def sample_ownership(
    root: Path, *, uid: int, gid: int, sample_size: int
) -> OwnershipSample:
    """Check the root and up to `sample_size` entries at several depths.

    Deterministic: the same tree gives the same sample. Links are checked, not followed.
    """
    checked, mismatches = 0, []
    for path, status in _sampled(root):
        checked += 1
        if (status.st_uid, status.st_gid) != (uid, gid):
            mismatches.append(f"{path} belongs to {status.st_uid}:{status.st_gid}")
        if checked > sample_size:
            break
    return OwnershipSample(checked=checked, mismatches=tuple(mismatches))


def sample_ownership_remotely(
    ontap: OntapGateway, volume_uuid: str, *, uid: int, gid: int, sample_size: int
) -> OwnershipSample:
    """Do as sample_ownership, but ask ONTAP: for volumes that no host sees.

    Directories with a dot in their names are not entered, as a dot has another meaning
    in the URL.

    Raises: NotFound, Refused (our account may not ask, or the release cannot answer).
    """
    checked, mismatches = 0, []
    waiting = deque([""])
    while waiting and checked <= sample_size:
        directory = waiting.popleft()
        for entry in ontap.list_directory(
            volume_uuid, directory, at_most=PER_REMOTE_DIRECTORY
        ):
            if entry.name in ("..", SNAPSHOTS):
                continue
            checked += 1
            path = os.path.join(directory, entry.name)
            if (entry.uid, entry.gid) != (uid, gid):
                mismatches.append(f"{path} belongs to {entry.uid}:{entry.gid}")
            if entry.is_directory and "." not in entry.name:
                waiting.append(path)
    return OwnershipSample(checked=checked, mismatches=tuple(mismatches))


def _sampled(root: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield a few entries of each directory, directories breadth first.

    Directories deeper than the longest possible path come last, depth first.
    """
    yield str(root), os.lstat(root)
    waiting, deep = deque([str(root)]), []
    while waiting:
        directory = waiting.popleft()
        if len(os.fsencode(directory)) + 1 + NAME_BYTES >= PATH_BYTES:
            deep.append(directory)
            continue
        with os.scandir(directory) as listing:
            files, below = _sorted(e for e in listing if e.name != SNAPSHOTS)
        waiting += [entry.path for entry in below]
        for entry in _spread(files) + _spread(below):
            yield entry.path, entry.stat(follow_symlinks=False)
    for directory in deep:
        yield from _sampled_by_descriptors(directory)


def _sampled_by_descriptors(root: str) -> Iterator[tuple[str, os.stat_result]]:
    for directory in directories(Path(root)):
        files, below = _sorted(directory.entries)
        for entry in _spread(files) + _spread(below):
            status = os.stat(entry.name, dir_fd=directory.fd, follow_symlinks=False)
            yield f"{root}/{directory.path_of(entry.name)}", status


def _sorted(
    entries: Iterable[os.DirEntry[str]],
) -> tuple[list[os.DirEntry[str]], list[os.DirEntry[str]]]:
    """Return the entries that are not directories, and the directories, by name."""
    files: list[os.DirEntry[str]] = []
    below: list[os.DirEntry[str]] = []
    for entry in sorted(entries, key=lambda entry: entry.name):
        (below if entry.is_dir(follow_symlinks=False) else files).append(entry)
    return files, below


def _spread(entries: list[os.DirEntry[str]]) -> list[os.DirEntry[str]]:
    """Return a few of the entries, including the first and the last."""
    if len(entries) <= PER_DIRECTORY:
        return entries
    last = len(entries) - 1
    return [entries[n * last // (PER_DIRECTORY - 1)] for n in range(PER_DIRECTORY)]
