"""A clone brought from one submitted change to another, without a have list.

`sync -p` reads no have list and writes none, so it cannot know what a clone holds and
would send every file. Here the server is asked which files changed between the two
changes, and only those are fetched. `sync -p` deletes nothing: files that do not exist
at the wanted change are removed by us.

Source: p4 help sync, p4 help files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence

from provisioner.gateways.errors import PermanentGatewayError
from provisioner.gateways.fence import require_leave
from provisioner.gateways.owners import HOUR, works_on_files
from provisioner.gateways.perforce.batching import batches
from provisioner.gateways.perforce.changes.submitted import SubmittedChanges
from provisioner.gateways.perforce.connection import Connection
from provisioner.gateways.perforce.errors import LEFT_BEHIND_BY_SYNC
from provisioner.gateways.perforce.facet import Facet, form_of
from provisioner.gateways.perforce.paths import escape_path
from provisioner.gateways.perforce.types import PopulateReport

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Populating(Facet):
    """Bring files to another change without a have list."""

    @works_on_files(within_seconds=12 * HOUR)
    def populate(
        self,
        client: str,
        *,
        since: int,
        change: int,
        on_progress: Callable[[int, int], None],
    ) -> PopulateReport:
        """Bring files below the client's root from one change to another. Local files.

        All of them must be at `since`, which may be later or earlier than `change`. No
        have list is read or written. Writable files are overwritten if the client has
        clobber. `on_progress` gets the number of files written, and the total. Safe to
        repeat.

        Raises: NotFound (client or change), Refused (files that could not be written).
        Source: p4 files //client/...@A,@B, p4 sync -p path#revision.
        """
        with self._connected(client) as connection:
            SubmittedChanges.on(connection).require_submitted(change)
            root = str(form_of(connection, client)["Root"])
            differing = _differing(connection, client=client, one=since, other=change)
            wanted = _existing(connection, differing, change=change)
            gone = sorted(set(differing) - set(wanted))
            # First: a directory may take the place of a file, and a file that of one.
            removed = _remove(root, _places(connection, gone))
            written = 0
            for some in batches(list(wanted.items())):
                on_progress(written, len(wanted))
                _write(connection, some, change=change)
                written += len(some)
            on_progress(written, len(wanted))
        return PopulateReport(written=written, removed=removed)


def _write(
    connection: Connection, files: Sequence[tuple[str, str]], *, change: int
) -> None:
    """Fetch depot paths at revisions.

    Raises: PermanentGatewayError if the server did not send all of them.
    """
    records = connection.run(
        *("sync", "-p", *(f"{path}#{revision}" for path, revision in files)),
        is_bulk=True,
        also_failures=LEFT_BEHIND_BY_SYNC,
    ).records
    said = {record["depotFile"] for record in records if "depotFile" in record}
    missing = sorted({path for path, _ in files} - said)
    if missing:
        raise PermanentGatewayError(
            f"The server did not send these files at change {change}: "
            f"{', '.join(missing[:10])}",
            system="perforce",
            operation="sync -p",
        )


def _differing(
    connection: Connection, *, client: str, one: int, other: int
) -> list[str]:
    """Return the depot paths of the view that were submitted between two changes."""
    low, high = sorted((one, other))
    found: list[str] = []
    if low < high:
        connection.run(
            *("files", f"//{escape_path(client)}/...@{low + 1},@{high}"),
            each=lambda record: found.append(record["depotFile"]),
            is_bulk=True,
        )
    return found


def _existing(
    connection: Connection, paths: Sequence[str], *, change: int
) -> dict[str, str]:
    """Return the revisions of those paths that exist at a change."""
    found: dict[str, str] = {}
    for some in batches(list(paths)):
        records = connection.run(
            *("files", "-e", *(f"{path}@{change}" for path in some)), is_bulk=True
        ).records
        found |= {record["depotFile"]: record["rev"] for record in records}
    return found


def _places(connection: Connection, paths: Sequence[str]) -> list[str]:
    """Return the local paths of these depot paths."""
    found: list[str] = []
    for some in batches(list(paths)):
        records = connection.run("where", *some, is_bulk=True).records
        found += [r["path"] for r in records if "unmap" not in r]
    return found


def _remove(root: str, places: Iterable[str]) -> int:
    """Remove files below a root, then directories left empty; return how many files.

    Missing files are skipped. A directory that became a symlink is not followed.
    """
    removed = 0
    top = os.open(root, _DIRECTORY)
    try:
        for place in places:
            names = os.path.relpath(place, root).split(os.sep)
            if os.pardir not in names:
                removed += _remove_one(top, names)
    finally:
        os.close(top)
    return removed


def _remove_one(top: int, names: Sequence[str]) -> bool:
    require_leave()
    *directories, name = names
    opened = [top]
    try:
        for directory in directories:
            opened.append(os.open(directory, _DIRECTORY, dir_fd=opened[-1]))
        os.unlink(name, dir_fd=opened[-1])
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return False  # gone between the two changes, or replaced by something else
    except OSError as error:
        raise PermanentGatewayError(
            f"{'/'.join(names)} could not be removed: {error.strerror}.",
            system="host",
            operation="remove file",
            remote_code=str(error.errno),
        ) from error
    else:
        _remove_empty(opened, directories)
        return True
    finally:
        for directory_fd in opened[1:]:
            os.close(directory_fd)


def _remove_empty(opened: Sequence[int], directories: Sequence[str]) -> None:
    """Remove directories from the innermost outwards while they are empty."""
    for parent, directory in zip(opened[-2::-1], directories[::-1], strict=True):
        try:
            os.rmdir(directory, dir_fd=parent)
        except OSError:
            return
