"""What P4IGNORE patterns exclude, as Perforce's own client decides."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from provisioner.gateways.perforce.connection import ignore_check
from provisioner.gateways.perforce.library import as_bytes
from provisioner.gateways.perforce.paths import ignore_file_text


@contextmanager
def ignore_file(patterns: tuple[str, ...], *, root: str) -> Iterator[str]:
    """Write the patterns to a file outside the tree; without patterns it is empty.

    Raises: Refused (a pattern that is not text).
    """
    with tempfile.TemporaryDirectory(prefix="cloneyard-ignore-") as place:
        path = Path(place) / "ignore"
        text = ignore_file_text(patterns, root=root)
        path.write_bytes(as_bytes(text))
        yield str(path)


@contextmanager
def ignoring(
    patterns: tuple[str, ...], *, root: str
) -> Iterator[Callable[[bytes], bool]]:
    """Provide a function that tells whether the patterns exclude a path from the root.

    Bytes that are not UTF-8 count as one arbitrary character each.

    Source: p4 help ignore; P4Python is_ignored.
    """
    with ignore_file(patterns, root=root) as path:
        is_ignored = ignore_check(path)
        place = root.rstrip("/")
        yield lambda inside: is_ignored(f"{place}/{inside.decode(errors='replace')}")
