"""Content of restored revisions, from the archive files below the depot directories.

A file is unpacked when one of its revisions is read for the first time; from then on
the content store has it.

Source: p4 help filetypes; db.rev in the server schema.
"""

from __future__ import annotations

import gzip
import logging
import os
from collections.abc import Iterator
from pathlib import Path

from provisioner.lab.perforce import keywords, octets, rcs
from provisioner.lab.perforce.content import Content
from provisioner.lab.perforce.database import Database

log = logging.getLogger("provisioner.lab.perforce")

RCS, FULL, COMPRESSED = "rcs", "full", "compressed"


class Archives:
    """The archive files of one server."""

    def __init__(self, root: Path, *, database: Database, content: Content) -> None:
        self._root = root
        self._database = database
        self._content = content

    def fetch(self, digest: str) -> None:
        """Copy the content of a digest into the store, if an archive has it."""
        row = self._database.execute(
            "SELECT file, revision, storage, path, number FROM archives WHERE digest=?",
            digest,
        ).fetchone()
        if row is None:
            return
        file, revision, storage, path, number = row
        owner = self._describe(path, number)
        for name, data in self._contents(file, revision, storage):
            if name == revision and owner is not None:
                data = keywords.expanded(data, revision=owner)
            self._content.add(data)
        if not self._content.path(digest).exists():
            log.warning("the archive of %s %s is missing or different", file, revision)

    def has(self, file: str, revision: str, storage: str) -> bool:
        """Return whether the archive file of a revision exists."""
        return self._find(file, revision, storage) is not None

    def read(self, file: str, revision: str, storage: str) -> bytes | None:
        """Return one archived revision; None if it is missing."""
        return dict(self._contents(file, revision, storage)).get(revision)

    def _contents(
        self, file: str, revision: str, storage: str
    ) -> Iterator[tuple[str, bytes]]:
        """Yield a revision; of an RCS file all, as that costs no more than one."""
        path = self._find(file, revision, storage)
        if path is None:
            return
        data = path.read_bytes()
        if storage == RCS:
            yield from rcs.revisions(data)
        else:
            yield revision, gzip.decompress(data) if storage == COMPRESSED else data

    def _describe(self, path: str, number: int) -> keywords.Described | None:
        row = self._database.execute(
            "SELECT r.type, r.change, r.time, c.user FROM revisions r"
            " LEFT JOIN changes c USING (change) WHERE r.path=? AND revision=?",
            path,
            number,
        ).fetchone()
        if row is None:
            return None
        kind, change, submitted, author = row
        return keywords.Described(
            path=path,
            number=number,
            type=kind,
            change=change,
            submitted=submitted,
            author=author or "",
        )

    def _find(self, file: str, revision: str, storage: str) -> Path | None:
        # A server that ignores case keeps its archives under folded names.
        for name in (file, file.lower()):
            path = self._inside(name, revision, storage)
            if path is not None:
                return path
        return None

    def _inside(self, file: str, revision: str, storage: str) -> Path | None:
        relative = file.removeprefix("//")
        if storage == RCS:
            relative += ",v"
        else:
            relative += f",d/{revision}" + (".gz" if storage == COMPRESSED else "")
        path = (self._root / os.fsdecode(octets.bytes_of(relative))).resolve()
        return path if path.is_relative_to(self._root) and path.is_file() else None
