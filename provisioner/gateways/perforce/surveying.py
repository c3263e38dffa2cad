"""How large a view is, and which of its files would clash, before a sync."""

from __future__ import annotations

from collections.abc import Sequence

from provisioner.gateways.perforce.connection import Connection
from provisioner.gateways.perforce.library import ViewMap
from provisioner.gateways.perforce.specs import split_view_line
from provisioner.gateways.perforce.types import ViewSurvey
from provisioner.lib.storable import shown

MOST_CLASHES = 20


def survey_view(
    connection: Connection, view: Sequence[str], *, most_names: int
) -> ViewSurvey:
    """Count what a view holds and its depots hold, and find names that clash."""
    sides = [split_view_line(line) for line in view]
    paths = [side.depot for side in sides if side.flag != "-"]
    depots = sorted({f"//{path.split('/')[2]}/..." for path in paths})
    depot_files = sum(files for files, _ in _sizes(connection, depots))
    roughly = _sizes(connection, paths)
    most = max((files for files, _ in roughly), default=0)
    clashes: list[tuple[str, str]] = []
    counted: int | None = None
    if most <= most_names:
        names = _Names(view)
        connection.run(
            "files",
            "-e",
            *paths,
            each=lambda record: names.add(record["depotFile"]),
            is_bulk=True,
        )
        counted = len(names.seen)
        clashes = names.clashes
    return ViewSurvey(
        files=sum(files for files, _ in roughly) if counted is None else counted,
        size_bytes=sum(size for _, size in roughly),
        depot_files=depot_files,
        clashes=tuple(clashes),
        names_were_compared=counted is not None,
    )


def generated_view(connection: Connection, stream: str, *, client: str) -> list[str]:
    """Return the view that a client of a stream would have; nothing is saved."""
    [form] = connection.run("client", "-S", stream, "-o", client).records
    return list(form.get("View", ()))


def _sizes(connection: Connection, paths: Sequence[str]) -> list[tuple[int, int]]:
    """Return number and bytes of the files under each path, as the server adds up."""
    records = connection.run("sizes", "-s", *paths, is_bulk=True).records
    return [
        (int(record.get("fileCount", 0)), int(record.get("fileSize", 0)))
        for record in records
    ]


class _Names:
    """Names as a view puts them on disk; those that differ in case alone are kept."""

    def __init__(self, view: Sequence[str]) -> None:
        self.seen: set[int] = set()
        self.clashes: list[tuple[str, str]] = []
        self._spelled: dict[str, str] = {}
        self._map = ViewMap(view)

    def add(self, path: str) -> None:
        place = self._map.translate(path)
        if not place or hash(path) in self.seen:
            return
        self.seen.add(hash(path))
        parts = place.split("/")[3:]
        for end in range(1, len(parts) + 1):
            name = "/".join(parts[:end])
            other = self._spelled.setdefault(name.casefold(), name)
            if other != name:
                if len(self.clashes) < MOST_CLASHES:
                    self.clashes.append((shown(other), shown(name)))
                return
