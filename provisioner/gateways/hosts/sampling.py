"""Look at some entries of a tree to learn whether all have the right owner."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from provisioner.gateways.hosts.descent import SNAPSHOTS
from provisioner.gateways.ontap.gateway import OntapGateway

PER_DIRECTORY = 8
PER_REMOTE_DIRECTORY = 20
PATH_BYTES = 4096  # with the NUL at its end. Source: PATH_MAX, limits.h


@dataclass(frozen=True, kw_only=True)
class OwnershipSample:
    """`mismatches` are paths with the owner that was found instead."""

    checked: int
    mismatches: tuple[str, ...]


def sample_ownership(
    root: Path, *, uid: int, gid: int, sample_size: int
) -> OwnershipSample:
    """Look at the root and at up to `sample_size` entries at several depths.

    Deterministic: the same tree gives the same sample. Links are looked at, never
    through.
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
    """Look as sample_ownership does, but ask ONTAP: for where no host sees the volume.

    Directories with a dot in their names are not gone into: in an URL, a dot stands
    for something else there.

    Raises: NotFound, Refused (our account may not look, or the release cannot).
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
    """Yield a few entries of each directory, directories breadth first."""
    yield str(root), os.lstat(root)
    waiting = [str(root)]
    while waiting:
        directory = waiting.pop(0)
        entries = _listed(directory)
        directories = [e for e in entries if e.is_dir(follow_symlinks=False)]
        others = [e for e in entries if not e.is_dir(follow_symlinks=False)]
        waiting += [entry.path for entry in directories]
        for entry in _spread(others) + _spread(directories):
            yield entry.path, entry.stat(follow_symlinks=False)


def _listed(directory: str) -> list[os.DirEntry[str]]:
    """Return what is in a directory, but for what lies too deep for a path."""
    with os.scandir(directory) as listing:
        found = [entry for entry in listing if entry.name != SNAPSHOTS]
    within = [e for e in found if len(os.fsencode(e.path)) < PATH_BYTES]
    return sorted(within, key=lambda entry: entry.name)


def _spread(entries: list[os.DirEntry[str]]) -> list[os.DirEntry[str]]:
    """Return a few of the entries, the first and the last among them."""
    if len(entries) <= PER_DIRECTORY:
        return entries
    last = len(entries) - 1
    return [entries[n * last // (PER_DIRECTORY - 1)] for n in range(PER_DIRECTORY)]
