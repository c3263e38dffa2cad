"""Number and fingerprint of a have list, fed one row at a time."""

from __future__ import annotations

import hashlib

from provisioner.gateways.perforce.types import HaveList


class HaveDigest:
    """Collects rows in any order; the result does not depend on it.

    Sorted by the bytes of the names, whatever order a server sends: a case-insensitive
    server sorts otherwise. A row costs its text and about 40 bytes until the end.
    """

    def __init__(self) -> None:
        self._lines: list[bytes] = []

    def add(self, depot_file: str, *, revision: str) -> None:
        line = f"{depot_file}#{revision}\n"
        self._lines.append(line.encode("utf-8", "surrogateescape"))

    def result(self) -> HaveList:
        digest = hashlib.sha256()
        for line in sorted(self._lines):
            digest.update(line)
        return HaveList(count=len(self._lines), digest=digest.hexdigest())
