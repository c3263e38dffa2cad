"""Checkpoints of a Perforce database as files: read, kept, removed, as their owner.

A checkpoint is made in a directory of its own below the one in which it is kept, named
by a tag, and is moved out of it when it is whole. So what a killed worker left is found
by the tag. No link is followed.

Source: "Checkpoint files" of the Helix Core administrator's guide; db.counters,
db.change, db.user, db.have and db.rev of the server schema. That the MD5 is that of the
plain text is said by "Uncompress a checkpoint in Windows" of Perforce's knowledge base.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import stat
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from provisioner.gateways.errors import Refused
from provisioner.gateways.owners import HOUR, works_on_files

WORK_PREFIX = ".cloneyard-"
MD5 = ".md5"
CHUNK = 1 << 20
LONGEST_LINE = 1 << 20
LONGEST_HEAD = 1 << 16
_GZIP = 16 + zlib.MAX_WBITS
_BITS = 1 << 128
_STARTS = (b"@pv@ ", b"@rv@ ")
_CHANGE = re.compile(
    rb"@[pr]v@ \d+ @db\.change@ (?P<number>\d+) \d+ @(?:[^@]|@@)*@ @(?:[^@]|@@)*@ \d+ "
    rb"(?P<status>\d+) "
)
_JOURNAL = re.compile(rb"@[pr]v@ \d+ @db\.counters@ @journal@ @?(?P<number>\d+)")
_DIGEST = re.compile(r"\b[0-9A-Fa-f]{32}\b")


@dataclass(frozen=True, kw_only=True)
class Table:
    """The records of a table: how many, and a sum of their digests in any order."""

    records: int
    digest: str


@dataclass(frozen=True, kw_only=True)
class CheckpointContents:
    """What a checkpoint holds.

    `sha256` is of the compressed file, `md5` of its plain text, `said_md5` what p4d
    wrote beside it, "" for none. `change` is the highest submitted change, `journal`
    the number of the journal that continues it; None where it says none.
    """

    size_bytes: int
    plain_bytes: int
    sha256: str
    md5: str
    said_md5: str
    change: int | None
    journal: int | None
    tables: dict[str, Table]

    @property
    def is_as_said(self) -> bool:
        """Whether its MD5 is the one that p4d wrote, if it wrote one."""
        return self.said_md5 in ("", self.md5)


def work_directory(directory: Path, tag: str) -> Path:
    """Return where the checkpoint with this tag is made."""
    return directory / f"{WORK_PREFIX}{tag}"


@works_on_files(within_seconds=HOUR)
def require_directory(directory: Path) -> None:
    """Raises: Refused (no such directory on this host, or not ours to write)."""
    if not directory.is_dir() or directory.is_symlink():
        raise _refused(f"{directory} is not a directory on this host.")
    if not os.access(directory, os.W_OK | os.X_OK):
        raise _refused(f"uid {os.geteuid()} may not write to {directory}.")


@works_on_files(within_seconds=HOUR)
def begin_work(directory: Path, tag: str, needed_bytes: int) -> Path:
    """Make an empty directory in which a checkpoint is made; return it.

    Raises: Refused (no such directory, not ours to write, too little room).
    """
    require_directory(directory)
    end_work(directory, tag)
    room = os.statvfs(directory)
    free = room.f_bavail * room.f_frsize
    if free < needed_bytes:
        raise _refused(
            f"{directory} has {free:,} bytes free. The checkpoint and its trial replay "
            f"need up to {needed_bytes:,}."
        )
    work = work_directory(directory, tag)
    with _in_our_words(directory):
        work.mkdir(mode=0o700)
    return work


@works_on_files(within_seconds=HOUR)
def end_work(directory: Path, tag: str) -> None:
    """Remove what was made with a tag and not kept. Nothing is success."""
    with _in_our_words(directory), contextlib.suppress(FileNotFoundError):
        shutil.rmtree(work_directory(directory, tag))


@works_on_files(within_seconds=HOUR)
def empty_directory(path: Path) -> None:
    """Ensure an empty directory, such as the root for a trial replay."""
    with _in_our_words(path):
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(path)
        path.mkdir(mode=0o700)


@works_on_files(within_seconds=HOUR)
def database_bytes(root: Path) -> int:
    """Return the size of a database: of all files db.* of its root."""
    with os.scandir(root) as entries:
        return sum(
            entry.stat(follow_symlinks=False).st_size
            for entry in entries
            if entry.name.startswith("db.")
        )


@works_on_files(within_seconds=24 * HOUR)
def read_checkpoint(path: Path) -> CheckpointContents:
    """Read a compressed checkpoint to its end.

    Raises: Refused (torn, or not compressed).
    """
    reading = _Reading()
    packed, plain = hashlib.sha256(), hashlib.md5(usedforsecurity=False)
    plain_bytes = 0
    for data in _unpacked(path, packed.update):
        plain.update(data)
        plain_bytes += len(data)
        reading.take(data)
    reading.end()
    return CheckpointContents(
        size_bytes=path.stat().st_size,
        plain_bytes=plain_bytes,
        sha256=packed.hexdigest(),
        md5=plain.hexdigest().upper(),
        said_md5=_said_md5(path),
        change=reading.change,
        journal=reading.journal,
        tables=reading.tables(),
    )


@works_on_files(within_seconds=HOUR)
def keep_checkpoint(made: Path, name: str, md5: str) -> Path:
    """Move a checkpoint out of its directory, with its MD5; return its path.

    Safe to repeat: one that was moved is found by its name.
    """
    kept = made.parents[1] / name
    with _in_our_words(kept.parent):
        if made.exists():
            beside = made.parent / f"{name}{MD5}"
            beside.write_text(f"MD5 ({name}) = {md5}\n")
            with open(made, "rb") as file:
                os.fsync(file.fileno())
            os.replace(beside, kept.with_name(beside.name))
            os.replace(made, kept)
        elif not kept.exists():
            raise _refused(f"Neither {made} nor {kept} is there.")
    return kept


@works_on_files(within_seconds=HOUR)
def not_there(files: list[tuple[str, int]]) -> list[str]:
    """Return which of these paths are no plain files of these sizes."""
    return [path for path, size in files if _size_of(path) != size]


@works_on_files(within_seconds=HOUR)
def remove_checkpoint(path: Path) -> None:
    """Remove a checkpoint with its MD5. One that is gone is success."""
    with _in_our_words(path.parent):
        for each in (path, path.with_name(f"{path.name}{MD5}")):
            each.unlink(missing_ok=True)


def differences(
    one: CheckpointContents, other: CheckpointContents, *, volatile: Sequence[str]
) -> list[str]:
    """Return the tables in which two checkpoints differ, as sentences.

    `volatile` tables say when something ran, and not what there is.
    """
    none = Table(records=0, digest="")
    found = []
    for name in sorted({*one.tables, *other.tables} - {*volatile}):
        had, has = one.tables.get(name, none), other.tables.get(name, none)
        if had.records != has.records:
            found.append(f"{name} has {has.records:,} records of {had.records:,}.")
        elif had.digest != has.digest:
            found.append(f"{name} has {has.records:,} records, but not the same.")
    return found


def _size_of(path: str) -> int | None:
    with contextlib.suppress(OSError):
        status = os.stat(path, follow_symlinks=False)
        return status.st_size if stat.S_ISREG(status.st_mode) else None
    return None


def _unpacked(path: Path, take_packed: Callable[[bytes], None]) -> Iterator[bytes]:
    """Yield the plain text in pieces; `take_packed` gets every compressed byte.

    A piece has at most CHUNK bytes, however well they were compressed.

    Raises: Refused.
    """
    unpack = zlib.decompressobj(_GZIP)
    try:
        with open(path, "rb") as file:
            while data := file.read(CHUNK):
                take_packed(data)
                has_more = True
                while has_more:
                    if unpack.eof:
                        unpack = zlib.decompressobj(_GZIP)
                    piece = unpack.decompress(data, CHUNK)
                    yield piece
                    data = unpack.unconsumed_tail or unpack.unused_data
                    # What it has taken in may be more than it has given out.
                    has_more = bool(data) or (len(piece) == CHUNK and not unpack.eof)
    except (zlib.error, FileNotFoundError) as error:
        raise _refused(f"{path} is no compressed checkpoint: {error}.") from error
    if not unpack.eof:
        raise _refused(f"{path} ends in the middle.")


def _said_md5(path: Path) -> str:
    """Return the MD5 that p4d wrote beside a checkpoint, "" if it wrote none.

    With ".gz" or without it, as releases differ.
    """
    for name in (f"{path.name}{MD5}", f"{path.stem}{MD5}"):
        with contextlib.suppress(FileNotFoundError):
            # The name in it may itself look like a digest.
            said = _DIGEST.findall(path.with_name(name).read_text(errors="replace"))
            return said[-1].upper() if said else ""
    return ""


@dataclass
class _Sum:
    records: int = 0
    total: int = 0


@dataclass
class _Reading:
    """Adds up records as they come; one may go on over several lines.

    Of a record its first line is kept, `_head`, which says what it is about.
    """

    change: int | None = None
    journal: int | None = None
    _sums: dict[bytes, _Sum] = field(default_factory=dict)
    _head: bytes = b""
    _digest: hashlib.blake2b | None = None
    _rest: bytes = b""
    _is_in_line: bool = False

    def take(self, data: bytes) -> None:
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            self._take_line(line)
        if len(self._rest) > LONGEST_LINE:
            self._take_line(self._rest)
            self._rest, self._is_in_line = b"", True

    def end(self) -> None:
        if self._rest:
            self._take_line(self._rest)
        self._close()

    def tables(self) -> dict[str, Table]:
        return {
            name.decode(errors="replace"): Table(
                records=found.records, digest=f"{found.total:032x}"
            )
            for name, found in self._sums.items()
        }

    def _take_line(self, line: bytes) -> None:
        """Take a line, or what follows of one that was too long to be kept."""
        if self._is_in_line:
            self._is_in_line = False
            if self._digest is not None:
                self._digest.update(line)
        # An @ of a text is doubled, so no line of one begins like a record.
        elif line[:1] == b"@" and line[1:3].isalpha() and line[3:5] == b"@ ":
            self._close()
            if line.startswith(_STARTS):
                self._head = line[:LONGEST_HEAD]
                self._digest = hashlib.blake2b(line, digest_size=16)
        elif self._digest is not None:
            self._digest.update(b"\n" + line)

    def _close(self) -> None:
        if self._digest is None:
            return
        table = self._head.split(b"@", 4)[3]
        found = self._sums.setdefault(table, _Sum())
        found.records += 1
        number = int.from_bytes(self._digest.digest(), "big")
        found.total = (found.total + number) % _BITS
        self._digest = None
        if table == b"db.change":
            self._note_change(self._head)
        elif table == b"db.counters" and (said := _JOURNAL.match(self._head)):
            self.journal = int(said["number"])

    def _note_change(self, head: bytes) -> None:
        said = _CHANGE.match(head)
        if said is not None and int(said["status"]) & 1:
            self.change = max(self.change or 0, int(said["number"]))


@contextlib.contextmanager
def _in_our_words(directory: Path) -> Iterator[None]:
    """Raises: Refused for what the file system refuses."""
    try:
        yield
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise _refused(f"{error.filename or directory}: {why}.") from error


def _refused(sentence: str) -> Refused:
    return Refused(sentence, system="host", operation="checkpoint")
