"""Commands over a whole client, split so that none holds locks for long."""

from __future__ import annotations

import math
import os
import random
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from provisioner.gateways.perforce.connection import Connection
from provisioner.gateways.perforce.facet import form_of
from provisioner.gateways.perforce.paths import escape_path
from provisioner.gateways.perforce.specs import split_view_line
from provisioner.gateways.snapshot_directories import SNAPSHOTS
from provisioner.lib.shares import grown, halved

T = TypeVar("T")

FILES_PER_COMMAND = 500
# How often directories are split, and from how many on they are split no further.
_DEEPEST = 3
_ENOUGH = 4
# The highest number of commands: more directories than that share commands.
_MOST = 100
# A pause between batches is at most as long as the batch before it, and as this.
LONGEST_REST_SECONDS = 1.0

_POSITIONAL = re.compile(r"%%[0-9]")


def batches(items: list[T]) -> Iterator[list[T]]:
    """Yield the items in lists that are short enough for one command."""
    for start in range(0, len(items), FILES_PER_COMMAND):
        yield items[start : start + FILES_PER_COMMAND]


def with_rests(batches: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
    """Yield batches, with a pause between them in which others get the locks."""
    took = 0.0
    for number, files in enumerate(batches):
        if number:
            time.sleep(random.uniform(0, min(took, LONGEST_REST_SECONDS)))
        began = time.monotonic()
        yield files
        took = time.monotonic() - began


class Batches:
    """Paths in as many commands as are allowed, in more of them while others wait."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths
        self._most = max(1, math.ceil(len(paths) / _MOST))
        self._share = self._most

    def __iter__(self) -> Iterator[Sequence[str]]:
        at = 0
        while at < len(self._paths):
            batch = self._paths[at : at + self._share]
            at += len(batch)
            yield batch

    def adapt(self, *, others_wait: bool) -> None:
        """Say whether others waited after the last command."""
        self._share = (
            halved(self._share)
            if others_wait
            else grown(self._share, by=1, most=self._most)
        )


def batches_of(
    connection: Connection, *, client: str, change: int | None = None
) -> list[str]:
    """Return file arguments that cover a client's view by depot directories.

    With a change: directories that have files at the change. Without: those of which
    the client has files. Some may hold nothing for the client, as its view excludes
    them.

    Source: p4 dirs, p4 dirs -H.
    """
    view = form_of(connection, client).get("View", [])
    found: list[str] = []
    for line in map(split_view_line, view):
        if line.flag != "-":
            # A file argument may not contain %%1 to %%9.
            depot = _POSITIONAL.sub("*", line.depot)
            found += _batches_below(connection, depot, change=change)
    return found


def local_batches_of(connection: Connection, *, client: str, root: str) -> list[str]:
    """Return file arguments that cover a client's root by directories on disk.

    Directories whose names the server cannot be told are left out, and what a file
    server shows of its snapshots. One that cannot be listed is not split.
    """
    whole, listed = [""], list[str]()
    for _ in range(_DEEPEST):
        if len(whole) >= _ENOUGH:
            break
        below = {place: _directories_in(os.path.join(root, place)) for place in whole}
        if not any(below.values()):
            break
        listed += [place for place in whole if below[place] is not None]
        whole = [
            inside
            for place, names in below.items()
            for inside in (
                [place]
                if names is None
                else [f"{place}{n}/" for n in names if connection.can_name(n)]
            )
        ]
    return [
        *(_in_client(client, place) + "..." for place in whole),
        *(_in_client(client, place) + "*" for place in listed),
    ]


def _in_client(client: str, directory: str) -> str:
    return f"//{escape_path(client)}/{escape_path(directory)}"


def _directories_in(directory: str) -> list[str] | None:
    """Return the directories in a directory, None if it cannot be listed."""
    try:
        with os.scandir(directory) as entries:
            return sorted(
                entry.name
                for entry in entries
                if entry.is_dir(follow_symlinks=False) and entry.name != SNAPSHOTS
            )
    except OSError:
        return None


def _batches_below(
    connection: Connection, depot: str, *, change: int | None
) -> list[str]:
    """Return the depot path itself, or its directories and the files beside them."""
    at = "" if change is None else f"@{change}"
    flags = ("-H",) if change is None else ()
    parents, files = [depot], []
    for _ in range(_DEEPEST):
        if len(parents) >= _ENOUGH or not all(p.endswith("/...") for p in parents):
            break
        tops = [parent.removesuffix("...") for parent in parents]
        listed = connection.run(
            "dirs", *flags, *(f"{top}*{at}" for top in tops), is_bulk=True
        )
        below = [f"{record['dir']}/..." for record in listed.records]
        if not below:
            break
        files += [f"{top}*" for top in tops]
        parents = below
    return [f"{path}{at}" for path in (*parents, *files)]
