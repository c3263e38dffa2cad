"""What the lister and its workers send each other: one datagram per batch.

A batch is a few directories (their descriptors travel as SCM_RIGHTS) with the names
to act on in each; an outcome is what became of those names. Names are counted through
the whole batch: `position` 0 is the first name of the first directory.
"""

from __future__ import annotations

import array
import json
import mmap
import os
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

MOST_DIRECTORIES = 16
"""Directories in one batch; the kernel allows 253 descriptors in a datagram."""

MOST_BYTES = 1 << 18
"""Larger than any batch: 512 names of 255 bytes, twice."""

CHANGE_OWNER, UNLINK, RMDIR = range(3)
"""What a batch asks for."""

_BATCH = struct.Struct("<IBBHI")
_OUTCOME = struct.Struct("<IIIIIf")


@dataclass(frozen=True, slots=True)
class Batch:
    """`threads` is how many the receiving process should have from now on.

    `links` other than 0 says that all names of this one inode were found in the tree:
    act on it although it has that many.
    """

    number: int
    operation: int
    threads: int
    links: int
    directories: list[tuple[int, list[bytes]]]


@dataclass(slots=True)
class Outcome:
    """`failed` has (position, errno); `linked` (position, inode, number of names).

    `privileged` counts the changed files whose setuid or setgid bit that cleared;
    `waited_seconds` is the time per name in which the thread was not computing.
    """

    number: int
    done: int = 0
    already: int = 0
    privileged: int = 0
    vanished: int = 0
    waited_seconds: float = 0.0
    failed: list[tuple[int, int]] = field(default_factory=list)
    skipped: list[int] = field(default_factory=list)
    linked: list[tuple[int, int, int]] = field(default_factory=list)


def send_batch(
    channel: socket.socket,
    *,
    number: int,
    operation: int,
    threads: int,
    links: int,
    directories: Sequence[tuple[int, Sequence[str]]],
) -> None:
    """Queue a batch for whichever worker is free; wait while the queue is full."""
    parts = [os.fsencode("\0".join(names)) for _, names in directories]
    sizes = array.array("I", map(len, parts))
    header = _BATCH.pack(number, operation, len(parts), threads, links)
    descriptors = array.array("i", [fd for fd, _ in directories])
    channel.sendmsg(
        [header, sizes, *parts],
        [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)],
    )


def receive_batch(channel: socket.socket, buffer: mmap.mmap) -> Batch:
    """Wait for a batch; its descriptors are the receiver's to close."""
    size, ancillary, _, _ = channel.recvmsg_into(
        [buffer], socket.CMSG_SPACE(MOST_DIRECTORIES * 4)
    )
    descriptors = array.array("i")
    for _, _, data in ancillary:
        descriptors.frombytes(data[: len(data) - len(data) % 4])
    number, operation, count, threads, links = _BATCH.unpack_from(buffer)
    sizes = array.array("I")
    start = _BATCH.size + count * sizes.itemsize
    sizes.frombytes(buffer[_BATCH.size : start])
    directories = []
    for descriptor, length in zip(descriptors, sizes, strict=True):
        names = buffer[start : start + length].split(b"\0")
        directories.append((descriptor, names))
        start += length
    assert start == size
    return Batch(number, operation, threads, links, directories)


def encode_outcome(outcome: Outcome) -> bytes:
    """Return the datagram for an outcome; the rare parts travel as JSON after it."""
    head = _OUTCOME.pack(
        outcome.number,
        outcome.done,
        outcome.already,
        outcome.privileged,
        outcome.vanished,
        outcome.waited_seconds,
    )
    rare = (outcome.failed, outcome.skipped, outcome.linked)
    return head + json.dumps(rare).encode() if any(rare) else head


def decode_outcome(data: bytes) -> Outcome:
    """Read what `encode_outcome` wrote."""
    outcome = Outcome(*_OUTCOME.unpack_from(data))
    if len(data) > _OUTCOME.size:
        rare: list[Any] = json.loads(data[_OUTCOME.size :])
        outcome.failed = [(position, error) for position, error in rare[0]]
        outcome.skipped = rare[1]
        outcome.linked = [(position, inode, n) for position, inode, n in rare[2]]
    return outcome
