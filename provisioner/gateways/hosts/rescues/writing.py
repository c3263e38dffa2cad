"""Write an archive: a tar file, a manifest, checksums, and instructions.

The tar file is not compressed. Much of what people leave is compressed or binary
already, and storage compresses as well. Plain `tar` can read it, and a damaged one is
readable again from the next header on.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import os
import stat
import tarfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from provisioner.gateways.hosts.rescues.reading import (
    BehindLink,
    CannotRead,
    Found,
    NotThere,
    Tree,
)

Json = dict[str, Any]

TAR, MANIFEST, SUMS, README = "work.tar", "manifest.json", "SHA256SUMS", "README.txt"
FORMAT = 1
STORED = "stored"
"""`state` of an entry whose content is in the tar file. All others say why it is not:
missing, vanished (after it had been found), unreadable, special, directory,
behind_link. A torn entry is stored, but changed while it was read, twice."""

_PROBLEMS = {
    "vanished": "It was found at first, but is gone now.",
    "unreadable": "It cannot be read.",
    "torn": "It changed while it was read, twice.",
    "special": "It is not a file but a device, socket or pipe.",
}
_FOUND_ON_DISK = ("changed", "untracked")

BLOCK_BYTES = 1 << 20
TELL_EVERY_SECONDS = 0.2
_NEW = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class _Summed(io.RawIOBase):
    """A new file in a directory, with the SHA-256 of its content."""

    def __init__(self, directory: int, name: str) -> None:
        self.name_in_directory = name
        self.sha256 = hashlib.sha256()
        fd = os.open(name, os.O_RDWR | _NEW, 0o600, dir_fd=directory)
        self._file = os.fdopen(fd, "wb", buffering=BLOCK_BYTES)

    def tell(self) -> int:
        return self._file.tell()

    def write(self, data: Any) -> int:
        self.sha256.update(data)
        return self._file.write(data)

    def mark(self) -> tuple[int, Any]:
        """Return the current position, for `go_back`."""
        return self.tell(), self.sha256.copy()

    def go_back(self, mark: tuple[int, Any]) -> None:
        """Forget what was written since the mark."""
        offset, sha256 = mark
        self._file.seek(offset)
        self._file.truncate()
        self.sha256 = sha256

    def finish(self) -> str:
        """Flush it to disk; return its checksum."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return self.sha256.hexdigest()

    def abandon(self) -> None:
        """Close it, whatever it contains."""
        with contextlib.suppress(OSError):
            self._file.close()


class _Exactly:
    """Reads as many bytes as a header promised; pads a shorter file with zeros."""

    def __init__(self, fd: int, tell: Callable[[], None]) -> None:
        self._fd = fd
        self._tell = tell
        self.sha256 = hashlib.sha256()
        self.bytes_read = 0

    def read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            try:
                some = os.read(self._fd, min(size - len(data), BLOCK_BYTES))
            except OSError as error:
                raise CannotRead(f"{os.strerror(error.errno or 0)}.") from error
            if not some:
                break
            data += some
        self.sha256.update(data)
        self.bytes_read += len(data)
        self._tell()
        return data.ljust(size, b"\0")

    def finish(self) -> None:
        """Do nothing: all of it has been read."""


Piece = tuple[int, int]
"""Offset and length of data in a file."""


def data_of(fd: int, status: os.stat_result) -> list[Piece] | None:
    """Return where a file has data, None if it has no significant holes.

    Source: lseek(2), SEEK_DATA and SEEK_HOLE.
    """
    if status.st_blocks * 512 >= status.st_size:
        return None
    pieces: list[Piece] = []
    at = 0
    try:
        while at < status.st_size:
            begin = os.lseek(fd, at, os.SEEK_DATA)
            at = min(os.lseek(fd, begin, os.SEEK_HOLE), status.st_size)
            pieces.append((begin, at - begin))
    except OSError as error:
        if error.errno != errno.ENXIO:  # no more data
            return None
    finally:
        os.lseek(fd, 0, os.SEEK_SET)
    return pieces


class _Sparse:
    """Reads a map of a file's data, and then the data; holes count as zeros.

    Source: GNU tar, "Storing Sparse Files", PAX format, version 1.0.
    """

    def __init__(
        self, fd: int, pieces: list[Piece], *, size: int, tell: Callable[[], None]
    ) -> None:
        self._fd = fd
        self._tell = tell
        self._size = size
        ends = pieces[-1][0] + pieces[-1][1] if pieces else 0
        listed = pieces if ends == size else [*pieces, (size, 0)]
        lines = [len(listed), *(number for piece in listed for number in piece)]
        table = "".join(f"{number}\n" for number in lines).encode()
        self._table = table.ljust(
            -(-len(table) // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE, b"\0"
        )
        self._left = list(pieces)
        self._hashed_to = 0
        self.stored_bytes = len(self._table) + sum(length for _, length in pieces)
        self.sha256 = hashlib.sha256()
        self.bytes_read = 0

    def read(self, size: int) -> bytes:
        data, self._table = self._table[:size], self._table[size:]
        while len(data) < size and self._left:
            begin, length = self._left.pop(0)
            try:
                wanted = min(size - len(data), length, BLOCK_BYTES)
                some = os.pread(self._fd, wanted, begin)
            except OSError as error:
                raise CannotRead(f"{os.strerror(error.errno or 0)}.") from error
            if not some:
                break
            if len(some) < length:
                self._left.insert(0, (begin + len(some), length - len(some)))
            self._hash_zeros(begin)
            self.sha256.update(some)
            self._hashed_to = begin + len(some)
            data += some
            self._tell()
        return data.ljust(size, b"\0")

    def finish(self) -> None:
        """Count the rest as a hole, which it is unless the file has changed."""
        if not self._left:
            self._hash_zeros(self._size)
        self.bytes_read = self._hashed_to

    def _hash_zeros(self, end: int) -> None:
        while self._hashed_to < end:
            count = min(end - self._hashed_to, BLOCK_BYTES)
            self.sha256.update(_ZEROS[:count])
            self._hashed_to += count


_ZEROS = bytes(BLOCK_BYTES)


def _is_text(name: str) -> bool:
    """Return whether a name is UTF-8, as the name of a sparse file must be."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _as_sparse(info: tarfile.TarInfo, source: _Sparse, *, size: int) -> None:
    """Mark a member's header as that of a sparse file of this size."""
    directory, _, name = info.name.rpartition("/")
    stored_as = "/".join(part for part in (directory, "GNUSparseFile.0", name) if part)
    info.pax_headers = {
        "path": stored_as,  # first, as tarfile uses the last value of a name
        "GNU.sparse.major": "1",
        "GNU.sparse.minor": "0",
        "GNU.sparse.name": info.name,
        "GNU.sparse.realsize": str(size),
    }
    info.name = stored_as
    info.size = source.stored_bytes


class Archive:
    """Writes one archive into an open, empty directory."""

    def __init__(
        self,
        directory: int,
        tree: Tree,
        *,
        metadata: Json,
        tell: Callable[[int], None],
    ) -> None:
        self._tree = tree
        self._directory = directory
        self._metadata = metadata
        self._tell = tell
        self._told_at = 0.0
        self._files = 0
        self.counts: dict[str, Counter[str]] = {}
        self.problems: list[list[str]] = []
        self.sums: dict[str, str] = {}
        self._open: list[_Summed] = []

    @property
    def lacks_content(self) -> bool:
        """Whether existing content is missing from it."""
        return any(state != "special" for _, state, _ in self.problems)

    def write(self, entries: Iterable[Json]) -> None:
        """Write everything, and flush it to disk."""
        try:
            self._write_work(entries)
            self._write_text(README, readme(self._metadata))
            lines = [f"{digest}  {name}\n" for name, digest in self.sums.items()]
            self._write_text(SUMS, "".join(lines))
            del self.sums[SUMS]
            os.fsync(self._directory)
        finally:
            for file in self._open:
                file.abandon()

    def _new(self, name: str) -> _Summed:
        file = _Summed(self._directory, name)
        self._open.append(file)
        return file

    def _finish(self, file: _Summed) -> None:
        self.sums[file.name_in_directory] = file.finish()

    def _write_text(self, name: str, text: str) -> None:
        file = self._new(name)
        file.write(text.encode("utf-8", "surrogateescape"))
        self._finish(file)

    def _write_work(self, entries: Iterable[Json]) -> None:
        work, manifest = self._new(TAR), self._new(MANIFEST)
        head = {"format": FORMAT, "metadata": self._metadata}
        manifest.write(f'{json.dumps(head)[:-1]}, "entries": ['.encode())
        separator = b"\n"
        with tarfile.TarFile(
            fileobj=work,
            mode="w",
            format=tarfile.PAX_FORMAT,
            encoding="utf-8",
            errors="surrogateescape",
            copybufsize=BLOCK_BYTES,
        ) as tar:
            for row in self._rows(entries, tar=tar, work=work):
                manifest.write(separator + json.dumps(row).encode())
                separator = b",\n"
                self._count(row)
        manifest.write(b"\n]}\n")
        self._finish(work)
        self._finish(manifest)
        self._show(is_last=True)

    def _rows(
        self, entries: Iterable[Json], *, tar: tarfile.TarFile, work: _Summed
    ) -> Iterator[Json]:
        """Store the entries, and any link that is in the way of one."""
        links: set[str] = set()
        for entry in entries:
            row = self._store(entry, tar=tar, work=work)
            if "link_target" in row:
                links.add(row["path"])
            yield row
            link = row.get("behind", "")
            if link and link not in links:
                links.add(link)
                yield self._store(
                    {"path": link, "kind": "untracked"}, tar=tar, work=work
                )

    # -- one entry

    def _store(self, entry: Json, *, tar: tarfile.TarFile, work: _Summed) -> Json:
        """Add one entry to the tar file; return its row of the manifest."""
        mark, offset = work.mark(), tar.offset

        def go_back() -> None:
            work.go_back(mark)
            tar.offset = offset

        for is_last in (False, True):
            try:
                with self._tree.opened(entry["path"]) as found:
                    row = entry | _seen(found)
                    if not (found.is_file or found.is_link):
                        return row | _not_stored(found.status, kind=entry["kind"])
                    row |= self._add(entry["path"], found, tar=tar)
            except NotThere:
                is_odd = entry["kind"] in _FOUND_ON_DISK
                return entry | {"state": "vanished" if is_odd else "missing"}
            except BehindLink as way:
                return entry | {
                    "state": "behind_link",
                    "behind": way.link,
                    "reason": f"{way.link} on the way to it is a symbolic link.",
                }
            except CannotRead as failure:
                go_back()
                return entry | {"state": "unreadable", "reason": str(failure)}
            if row["state"] == STORED or is_last:
                return row
            go_back()
        raise AssertionError  # the loop always returns

    def _add(self, path: str, found: Found, *, tar: tarfile.TarFile) -> Json:
        info = tarfile.TarInfo(path)
        info.mode = stat.S_IMODE(found.status.st_mode)
        info.uid, info.gid = found.status.st_uid, found.status.st_gid
        info.mtime = found.status.st_mtime
        tar.members = []  # type: ignore[attr-defined]  # it would keep every one
        if found.is_link:
            info.type, info.linkname = tarfile.SYMTYPE, found.link_target
            tar.addfile(info)
            return {"state": STORED}
        size = info.size = found.status.st_size
        source: _Exactly | _Sparse = _Exactly(found.fd, self._show)
        pieces = data_of(found.fd, found.status) if _is_text(info.name) else None
        if pieces is not None:
            source = _Sparse(found.fd, pieces, size=size, tell=self._show)
            _as_sparse(info, source, size=size)
        tar.addfile(info, source)  # type: ignore[arg-type]  # it asks for read
        source.finish()
        has_changed = source.bytes_read != size or _moment(
            os.fstat(found.fd)
        ) != _moment(found.status)
        return {
            "state": "torn" if has_changed else STORED,
            "sha256": source.sha256.hexdigest(),
        }

    # -- how far it is

    def _show(self, *, is_last: bool = False) -> None:
        now = time.monotonic()
        if is_last or now - self._told_at > TELL_EVERY_SECONDS:
            self._told_at = now
            self._tell(self._files)

    def _count(self, row: Json) -> None:
        self._files += 1
        self._show()
        is_stored = row["state"] in (STORED, "torn")
        counts = self.counts.setdefault(row["kind"], Counter())
        counts["count"] += 1
        counts["stored"] += is_stored
        counts["bytes"] += row.get("size", 0) if is_stored else 0
        if row["state"] in _PROBLEMS:
            reason = row.get("reason") or _PROBLEMS[row["state"]]
            self.problems.append([row["path"], row["state"], reason])


def _moment(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _seen(found: Found) -> Json:
    seen: Json = {
        "mode": f"{stat.S_IMODE(found.status.st_mode):04o}",
        "mtime_ns": found.status.st_mtime_ns,
        "uid": found.status.st_uid,
    }
    if found.is_link:
        return seen | {"size": 0, "link_target": found.link_target}
    return seen | {"size": found.status.st_size}


def _not_stored(status: os.stat_result, *, kind: str) -> Json:
    if stat.S_ISDIR(status.st_mode):
        if kind == "untracked":
            # Such directories are found through their contents.
            return {"state": "unreadable", "reason": "Its content cannot be listed."}
        return {"state": "directory", "reason": "A directory has this name."}
    return {"state": "special", "reason": _PROBLEMS["special"]}


def readme(metadata: Json) -> str:
    """Return instructions to restore the work."""
    root = metadata.get("root") or "the workspace"
    shelves = [
        f"    p4 unshelve -s {shelf['change']}        # was change {shelf['was']}\n"
        for shelf in metadata.get("shelves", [])
    ]
    return (
        f"What was not submitted in the workspace {metadata.get('workspace', '')}\n"
        f"when it was retired at {metadata.get('at', '')}.\n"
        "\n"
        f"{TAR} has the files, {MANIFEST} says what each of them was.\n"
        "In a new workspace of the same template:\n"
        "\n"
        + ("    # what was opened, from its shelved changes\n" if shelves else "")
        + "".join(shelves)
        + "    sha256sum -c SHA256SUMS\n"
        f"    tar -xpf {TAR} -C /path/to/the/new/workspace\n"
        "    cd /path/to/the/new/workspace && p4 reconcile -n ...\n"
        "\n"
        "Without -n, reconcile opens what differs. Files that had been deleted are\n"
        f"missing in {MANIFEST}; delete them again.\n"
        f"The workspace was at {root}.\n"
    )
