"""File content by digest, below the root. Nothing here knows depot paths.

Content is stored in the form in which it is sent (line ends normalized), named by its
MD5, so equal files are stored once and the name proves the digest.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

CHUNK = 128 * 1024


class Content:
    """The content files of one server; threads and processes may share it."""

    def __init__(self, root: Path) -> None:
        self._root = root / "content"
        self._prefix = f"{self._root}/"
        self._incoming = root / "incoming"
        self._root.mkdir(parents=True, exist_ok=True)
        self._incoming.mkdir(exist_ok=True)
        # Asked for content that is not here yet; it adds what it finds.
        self.fetch: Callable[[str], None] | None = None

    def path(self, digest: str) -> Path:
        return self._root / digest[:2] / digest

    def chunks(self, digest: str, *, likely_size: int = CHUNK) -> Iterator[bytes]:
        """Yield the content in pieces; nothing for an empty file.

        A caller that knows the size spares memory: allocating a whole piece for each of
        many small files costs more than reading them.
        """
        wanted = min(max(likely_size, 0) + 1, CHUNK)
        descriptor = self._open(digest)
        try:
            while data := os.read(descriptor, wanted):
                yield data
                if len(data) < wanted:
                    return  # files never grow: this was the end
                wanted = CHUNK
        finally:
            os.close(descriptor)

    def piece(self, digest: str, *, size: int) -> bytes | None:
        """Return content of this size as one piece; None if the size differs."""
        if not 0 < size < CHUNK:
            return None
        descriptor = self._open(digest)
        try:
            data = os.read(descriptor, size + 1)
        finally:
            os.close(descriptor)
        return data if len(data) == size else None

    def read(self, digest: str) -> bytes:
        return b"".join(self.chunks(digest))

    def _open(self, digest: str) -> int:
        # Text, not a Path: a sync of many small files opens each of them.
        path = f"{self._prefix}{digest[:2]}/{digest}"
        try:
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            if self.fetch is None:
                raise
        self.fetch(digest)
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def new(self) -> NewContent:
        """Return a place to write content to as it arrives."""
        return NewContent(self._incoming, store=self)

    def add(self, data: bytes) -> tuple[str, int]:
        """Store bytes; return their digest and size."""
        new = self.new()
        new.write(data)
        return new.keep()


class NewContent:
    """Incoming content. Small content stays in memory until it is kept."""

    def __init__(self, directory: Path, *, store: Content) -> None:
        self._store = store
        self._hash = hashlib.md5(usedforsecurity=False)
        self._size = 0
        self._memory: list[bytes] = []
        self._file: BinaryIO | None = None
        self._directory = directory
        self._name = ""

    def write(self, data: bytes) -> None:
        self._hash.update(data)
        self._size += len(data)
        if self._file is None and self._size > 4 * CHUNK:
            self._spill()
        if self._file is None:
            self._memory.append(data)
        else:
            self._file.write(data)

    @property
    def digest(self) -> str:
        return self._hash.hexdigest().upper()

    def keep(self) -> tuple[str, int]:
        """Move the content into the store; return its digest and size in bytes."""
        target = self._store.path(self.digest)
        if target.exists():
            self.discard()
        else:
            target.parent.mkdir(exist_ok=True)
            if self._file is None:
                self._spill()
            assert self._file is not None
            self._file.close()
            os.replace(self._name, target)
        return self.digest, self._size

    def discard(self) -> None:
        """Drop the content. Safe to repeat."""
        self._memory.clear()
        if self._file is not None:
            self._file.close()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._name)
            self._file = None

    def _spill(self) -> None:
        handle, self._name = tempfile.mkstemp(dir=self._directory)
        self._file = os.fdopen(handle, "wb")
        self._file.write(b"".join(self._memory))
        self._memory.clear()
