"""Duplicate blocks of 4 KiB in the files of a tree: found by hash, shared if possible.

Every block is read and hashed. Holes of sparse files are not blocks, so they save
nothing.

Source: ioctl_fideduperange(2), whose kernel side compares the bytes itself before it
shares them; lseek(2) for SEEK_DATA and SEEK_HOLE.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import stat
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

BLOCK_BYTES = 4096

_FIDEDUPERANGE = 0xC0189436
_RANGE_BYTES = 16 << 20
_CHUNK_BYTES = 1 << 20
_DIGEST_BYTES = 16
# A place is one number: the file's in the upper bits, the offset in the lower ones.
_OFFSET_BITS = 48
_FILES_PER_LOOK = 1000

GoOn = Callable[[float], bool]


@dataclass(frozen=True)
class Scan:
    """The result of a scan: all bytes of files, and how many are duplicates."""

    scanned_bytes: int = 0
    duplicate_bytes: int = 0
    shared_bytes: int = 0


class Stopped(Exception):
    """The scan was stopped."""


def scan(root: Path, *, share: bool, go_on: GoOn) -> Scan:
    """Find duplicate blocks in the files of a tree.

    share: let the filesystem store them once. `go_on` is called now and then with the
    share of the work that is done. Raises: Stopped if it returns False.
    """
    paths: list[str] = []
    total = 0
    for path, size in _files(root):
        paths.append(path)
        total += size
        if len(paths) % _FILES_PER_LOOK == 0 and not go_on(0.0):
            raise Stopped
    return _Scanner(paths, share=share, go_on=go_on, total_bytes=total).run()


def _files(root: Path) -> Iterator[tuple[str, int]]:
    """Yield the regular files with the space they take, hard links once."""
    seen: set[int] = set()
    pending = [str(root)]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(status.st_mode):
                        pending.append(entry.path)
                    elif (
                        stat.S_ISREG(status.st_mode)
                        and status.st_size > 0
                        and status.st_ino not in seen
                    ):
                        if status.st_nlink > 1:
                            seen.add(status.st_ino)
                        yield entry.path, status.st_blocks * 512
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            continue  # somebody is working in it, or it is closed to us


@dataclass
class _Run:
    """Consecutive blocks of a file that are duplicates.

    Either they equal the blocks from `source` on, or each `repeats` the one block
    there.
    """

    source: int
    offset: int
    length: int
    repeats: bool = False

    def takes(self, source: int, offset: int, length: int) -> bool:
        """Extend the run by a block if that continues it; return whether it did."""
        if offset != self.offset + self.length:
            return False
        if source == self.source and length == BLOCK_BYTES:
            if not self.repeats and self.length > BLOCK_BYTES:
                return False
            self.repeats = True
        elif self.repeats or source != self.source + self.length:
            return False
        self.length += length
        return True


class _Scanner:
    def __init__(
        self, paths: list[str], *, share: bool, go_on: GoOn, total_bytes: int
    ) -> None:
        self._paths = paths
        self._share = share
        self._go_on = go_on
        self._total = max(1, total_bytes)
        self._places: dict[bytes, int] = {}
        self._scanned = self._duplicate = self._shared = 0

    def run(self) -> Scan:
        """Read every file."""
        for number, path in enumerate(self._paths):
            with contextlib.suppress(OSError):  # somebody is working in it
                descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
                try:
                    self._scan_file(descriptor, number << _OFFSET_BITS)
                finally:
                    os.close(descriptor)
        return Scan(self._scanned, self._duplicate, self._shared)

    def _scan_file(self, descriptor: int, place: int) -> None:
        run: _Run | None = None
        for offset, data in self._chunks(descriptor):
            view = memoryview(data)
            for begin in range(0, len(data), BLOCK_BYTES):
                block = view[begin : begin + BLOCK_BYTES]
                here = place + offset + begin
                digest = hashlib.blake2b(block, digest_size=_DIGEST_BYTES).digest()
                source = self._places.setdefault(digest, here)
                if source == here:
                    continue
                self._duplicate += len(block)
                if run is None or not run.takes(source, offset + begin, len(block)):
                    self._settle(run, descriptor)
                    run = _Run(source, offset + begin, len(block))
            self._scanned += len(data)
        self._settle(run, descriptor)

    def _chunks(self, descriptor: int) -> Iterator[tuple[int, bytes]]:
        """Yield the data of a file, piece by piece, without its holes."""
        for begin, end in _data_ranges(descriptor):
            offset = begin
            while offset < end:
                if not self._go_on(min(1.0, self._scanned / self._total)):
                    raise Stopped
                data = os.pread(descriptor, min(_CHUNK_BYTES, end - offset), offset)
                if not data:
                    return
                yield offset, data
                offset += len(data)

    def _settle(self, run: _Run | None, descriptor: int) -> None:
        """Let the filesystem store a run's blocks once."""
        if run is None or not self._share:
            return
        path = self._paths[run.source >> _OFFSET_BITS]
        offset = run.source & ((1 << _OFFSET_BITS) - 1)
        length = BLOCK_BYTES if run.repeats else run.length
        with contextlib.suppress(OSError):  # it changed meanwhile
            source = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                done = _dedupe(source, offset, descriptor, run.offset, length)
            finally:
                os.close(source)
            while run.repeats and 0 < done < run.length:
                # What is shared by now is twice as long each time.
                more = min(done, run.length - done)
                added = _dedupe(
                    descriptor, run.offset, descriptor, run.offset + done, more
                )
                if added == 0:
                    break
                done += added
            self._shared += done


def _data_ranges(descriptor: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of a file with data, aligned to blocks."""
    end = os.fstat(descriptor).st_size
    position = 0
    while position < end:
        try:
            begin = os.lseek(descriptor, position, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return  # only a hole follows
            raise
        begin -= begin % BLOCK_BYTES
        position = min(end, os.lseek(descriptor, begin, os.SEEK_HOLE))
        yield begin, position


def _dedupe(
    source: int, source_offset: int, target: int, target_offset: int, length: int
) -> int:
    """Share a range of an open file with another's blocks; return the shared bytes."""
    done = 0
    while done < length:
        request = bytearray(
            struct.pack(
                "QQHHI",
                source_offset + done,
                min(_RANGE_BYTES, length - done),
                1,
                0,
                0,
            )
            + struct.pack("qQQiI", target, target_offset + done, 0, 0, 0)
        )
        fcntl.ioctl(source, _FIDEDUPERANGE, request)
        _fd, _offset, deduped, status, _ = struct.unpack_from("qQQiI", request, 24)
        if status != 0 or deduped == 0:
            break
        done += int(deduped)
    return done
