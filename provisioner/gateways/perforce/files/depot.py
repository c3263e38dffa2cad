"""What the depot holds, whether or not a client has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from provisioner.gateways.perforce.batching import batches
from provisioner.gateways.perforce.connection import NEUTRAL_CLIENT, Connection
from provisioner.gateways.perforce.facet import Facet
from provisioner.gateways.perforce.library import Record, ViewMap
from provisioner.gateways.perforce.specs import split_view_line
from provisioner.gateways.perforce.types import ViewSurvey
from provisioner.lib.storable import shown

_MOST_CLASHES = 20


class DepotFiles(Facet):
    """Questions about depot paths."""

    def exist(self, paths: tuple[str, ...], *, change: int) -> bool:
        """Return whether any file exists (not deleted) under the paths at the change.

        Source: p4 files -e -m 1.
        """
        with self._connected() as connection:
            return any(
                connection.run(
                    *("files", "-e", "-m", "1", f"{path}@{change}"), is_bulk=True
                ).records
                for path in paths
            )

    def find(
        self,
        paths: tuple[str, ...],
        *,
        change: int,
        is_wanted: Callable[[str], bool],
    ) -> str | None:
        """Return a depot path under the paths that `is_wanted`, or None.

        Only files that exist (not deleted) at the change count. `is_wanted` may get the
        same depot path more than once.

        Source: p4 files -e.
        """
        found: list[str] = []

        def check(record: Record) -> None:
            if not found and is_wanted(record["depotFile"]):
                found.append(record["depotFile"])

        with self._connected() as connection:
            for some in batches(list(paths)):
                connection.run(
                    *("files", "-e", *(f"{path}@{change}" for path in some)),
                    each=check,
                    is_bulk=True,
                )
                if found:
                    return found[0]
        return None

    def survey(
        self, view: Sequence[str], *, stream: str = "", most_names: int
    ) -> ViewSurvey:
        """Count what a view holds, and find names in it that differ only in case.

        With `stream`: the view that the stream's clients get. Names are compared only
        if no line maps more than `most_names` files. Saves nothing.

        Raises: NotFound (stream, depot), Refused (limits of the server).
        Source: p4 sizes -s, p4 files -e, p4 client -S -o.
        """
        with self._connected() as connection:
            if stream:
                command = ("client", "-S", stream, "-o", NEUTRAL_CLIENT)
                [form] = connection.run(*command).records
                view = list(form.get("View", ()))
            sides = [split_view_line(line) for line in view]
            paths = [side.depot for side in sides if side.flag != "-"]
            depots = sorted({f"//{path.split('/')[2]}/..." for path in paths})
            depot_files = sum(files for files, _ in _sizes(connection, depots))
            sizes = _sizes(connection, paths)
            names: _Names | None = None
            if max((files for files, _ in sizes), default=0) <= most_names:
                names = _Names(view)
                connection.run(*("files", "-e", *paths), each=names.take, is_bulk=True)
        return ViewSurvey(
            files=len(names.seen) if names else sum(files for files, _ in sizes),
            size_bytes=sum(size for _, size in sizes),
            depot_files=depot_files,
            clashes=tuple(names.clashes) if names else (),
            names_were_compared=names is not None,
        )


def _sizes(connection: Connection, paths: Sequence[str]) -> list[tuple[int, int]]:
    """Return number and bytes of the files under each path."""
    records = connection.run("sizes", "-s", *paths, is_bulk=True).records
    return [
        (int(record.get("fileCount", 0)), int(record.get("fileSize", 0)))
        for record in records
    ]


class _Names:
    """Collects names on disk that differ only in case, as a view maps them."""

    def __init__(self, view: Sequence[str]) -> None:
        self.seen: set[int] = set()
        self.clashes: list[tuple[str, str]] = []
        self._spelled: dict[str, str] = {}
        self._map = ViewMap(view)

    def take(self, record: Record) -> None:
        path = record["depotFile"]
        place = self._map.translate(path)
        if not place or hash(path) in self.seen:
            return
        self.seen.add(hash(path))
        parts = place.split("/")[3:]
        for end in range(1, len(parts) + 1):
            name = "/".join(parts[:end])
            other = self._spelled.setdefault(name.casefold(), name)
            if other != name:
                if len(self.clashes) < _MOST_CLASHES:
                    self.clashes.append((shown(other), shown(name)))
                return
