"""Opened files put into shelved changes, as their owner.

Nothing that is shelved already is ever overwritten. A repeat after a kill continues
where the first attempt stopped: the changes it created say so in their descriptions.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest

from provisioner.gateways.errors import PermanentGatewayError
from provisioner.gateways.owners import HOUR, works_on_files
from provisioner.gateways.perforce.batching import batches
from provisioner.gateways.perforce.changes.pending import PendingChanges
from provisioner.gateways.perforce.connection import Connection
from provisioner.gateways.perforce.facet import Facet, form_of
from provisioner.gateways.perforce.library import Record, as_number
from provisioner.gateways.perforce.paths import client_path_to_local
from provisioner.gateways.perforce.types import (
    NotDone,
    OpenedFile,
    PendingChange,
    Shelf,
    ShelvedFile,
    ShelveReport,
)

_GONE = ("delete", "move/delete")
# Other types are stored otherwise than on disk, so their digests differ.
_PLAIN_TYPES = ("text", "binary", "symlink")
_RESCUED = "Rescued by Cloneyard from {workspace} (change {was}): "
_WAS = re.compile(r"\(change (default|[0-9]+)\): ")


class Shelving(Facet):
    """List shelves, and shelve opened files."""

    def list_files(self, change: int) -> list[ShelvedFile]:
        """Return the files shelved in a change; none if it has no shelf.

        Raises: NotFound (change).
        Source: p4 describe -S -s.
        """
        shelved = []
        with self._connected() as connection:
            records = connection.run(
                "describe", "-S", "-s", str(change), is_bulk=True
            ).records
        for record in records:
            columns = [
                _column(record, name)
                for name in ("depotFile", "action", "type", "rev", "fileSize", "digest")
            ]
            for path, action, kind, revision, size, digest in zip_longest(*columns):
                shelved.append(
                    ShelvedFile(
                        depot_file=path or "",
                        action=action or "",
                        type=kind or "",
                        revision=as_number(revision),
                        size_bytes=as_number(size),
                        digest=digest or "",
                    )
                )
        return shelved

    @works_on_files(within_seconds=4 * HOUR)
    def shelve_opened(self, client: str, *, workspace: str) -> ShelveReport:
        """Shelve what our user has opened on the client. Local files.

        Call it as each user who has files opened there. Files of a numbered change are
        shelved in that change, unless its shelf already holds something else. Files of
        such a change, and of the default change, are reopened into a new change
        "Rescued by Cloneyard from <workspace> (change <was>): <description>" and
        shelved there. All files stay opened. No existing shelf is overwritten. On an
        edge server the shelves are promoted.

        Both halves of a move are shelved together. A file that cannot be shelved is
        reported with the reason: missing on disk, unreadable, of another file type than
        it was opened as, unresolved, or whatever the server says.

        Safe to repeat: a second call continues, and shelves nothing twice.

        Raises: NotFound (client), Refused (host, locked by another owner).
        Source: p4 change -i, p4 reopen -c, p4 shelve -c, p4 describe -S.
        """
        with self._connected(client) as connection:
            return _Run(connection, client=client, workspace=workspace).run()


def _column(record: Record, name: str) -> list[str | None]:
    """Return a numbered field: the library leaves None where a file lacks it."""
    value = record.get(name, [])
    return list(value) if isinstance(value, list) else [value]


@dataclass(frozen=True, kw_only=True)
class _Target:
    """The change to shelve a file in, and the one in which it was opened."""

    change: int
    was: str
    made_by_us: bool


class _Run:
    """One run of `shelve_opened`."""

    def __init__(self, connection: Connection, *, client: str, workspace: str) -> None:
        self._connection = connection
        self._changes = PendingChanges.on(connection)
        self._client = client
        form = form_of(connection, client)
        self._root = str(form["Root"])
        self._has_other_line_ends = form.get("LineEnd") not in ("local", "unix")
        self._user = connection.account.user
        self._workspace = workspace
        self._not_done: dict[str, str] = {}
        self._pending = {
            str(change.change): change
            for change in self._changes.list_pending(client)
            if connection.is_same_name(change.user, self._user)
        }
        self._shelves: dict[str, dict[str, ShelvedFile]] = {}
        self._digests: dict[str, str] = {}
        self._local: dict[str, str] = {}

    def run(self) -> ShelveReport:
        opened = self._opened()
        readable = [file for file in opened if self._can_be_shelved(file)]
        self._leave_halves_together(opened)
        readable = [file for file in readable if file.depot_file not in self._not_done]
        targets = self._targets(readable)
        self._reopen(readable, targets)
        by_change: dict[int, list[OpenedFile]] = defaultdict(list)
        for file in self._opened():
            target = targets.get(file.depot_file)
            if target is None:
                continue
            if file.change == str(target.change):
                by_change[target.change].append(file)
            else:
                self._not_done[file.depot_file] = (
                    f"It could not be moved to change {target.change}."
                )
        flags = ("-p",) if self._is_on_an_edge() else ()
        for change, files in by_change.items():
            self._shelve(change, files, flags=flags)
        return ShelveReport(
            shelves=tuple(self._report(by_change, targets)),
            not_shelved=tuple(
                NotDone(depot_file=path, reason=reason)
                for path, reason in self._not_done.items()
            ),
            moved=self._moved(targets.values()),
        )

    def _opened(self) -> list[OpenedFile]:
        return [
            file
            for file in self._changes.list_opened(self._client)
            if self._connection.is_same_name(file.user, self._user)
        ]

    def _moved(self, targets: Iterable[_Target]) -> dict[str, str]:
        moved = {str(t.change): t.was for t in targets if t.made_by_us}
        for number, change in self._pending.items():
            marked = _WAS.search(change.description)
            if marked and self._is_ours(change):
                moved[number] = marked[1]
        return moved

    # -- what can be shelved

    def _can_be_shelved(self, file: OpenedFile) -> bool:
        """Return whether the content can be sent; if not, record the reason."""
        if file.action in _GONE:
            return True
        path = client_path_to_local(
            file.client_file, client=self._client, root=self._root
        )
        self._local[file.depot_file] = path
        reason = _why_not_readable(path, file_type=file.type)
        if reason:
            self._not_done[file.depot_file] = reason
        return not reason

    def _leave_halves_together(self, opened: list[OpenedFile]) -> None:
        for file in opened:
            other = file.moved_file
            if other in self._not_done and file.depot_file not in self._not_done:
                self._not_done[file.depot_file] = (
                    f"The other half of its move cannot be shelved: "
                    f"{self._not_done[other]}"
                )

    # -- where to

    def _targets(self, files: list[OpenedFile]) -> dict[str, _Target]:
        """Return where to shelve each file; create the changes that are missing."""
        by_change: dict[str, list[OpenedFile]] = defaultdict(list)
        for file in files:
            by_change[file.change].append(file)
        targets: dict[str, _Target] = {}
        for was, together in by_change.items():
            target = self._target(was, together)
            targets |= {file.depot_file: target for file in together}
        for file in files:
            if file.action == "move/add" and file.moved_file in targets:
                targets[file.moved_file] = targets[file.depot_file]
        return targets

    def _target(self, current: str, files: list[OpenedFile]) -> _Target:
        change = self._pending.get(current)
        marked = _WAS.search(change.description) if change else None
        is_ours = change is not None and self._is_ours(change)
        was = marked[1] if is_ours and marked else current
        if change is not None and self._takes(change, files):
            return _Target(change=change.change, was=was, made_by_us=is_ours)
        mark = _RESCUED.format(workspace=self._workspace, was=was)
        for other in self._pending.values():
            if other.description.startswith(mark) and self._takes(other, files):
                return _Target(change=other.change, was=was, made_by_us=True)
        text = change.description.removeprefix(mark) if change else "opened files"
        number = self._changes.create_pending(self._client, description=mark + text)
        return _Target(change=number, was=was, made_by_us=True)

    def _is_ours(self, change: PendingChange) -> bool:
        mark = _RESCUED.format(workspace=self._workspace, was="").removesuffix("): ")
        return change.description.startswith(mark)

    def _takes(self, change: PendingChange, files: Iterable[OpenedFile]) -> bool:
        """Return whether shelving these files there would overwrite nothing else.

        In a change of ours, files that cannot be compared are shelved again.
        """
        if not change.is_shelved:
            return True
        is_ours = self._is_ours(change)
        opened = {file.depot_file: file for file in files}
        return all(
            path in opened and self._is_same(opened[path], shelved, is_ours=is_ours)
            for path, shelved in self._shelf_of(str(change.change)).items()
        )

    def _is_same(
        self, file: OpenedFile, shelved: ShelvedFile, *, is_ours: bool
    ) -> bool:
        if (file.action, file.type) != (shelved.action, shelved.type):
            return False
        if file.action in _GONE:
            return True
        if not self._is_comparable(file):
            return is_ours
        return self._digest(file) == shelved.digest.lower()

    def _is_comparable(self, file: OpenedFile) -> bool:
        base, _, modifiers = file.type.partition("+")
        if base == "text" and self._has_other_line_ends:
            return False
        return base in _PLAIN_TYPES and "k" not in modifiers

    def _digest(self, file: OpenedFile) -> str:
        path = file.depot_file
        if path not in self._digests:
            self._digests[path] = _md5(self._local[path])
        return self._digests[path]

    def _shelf_of(self, change: str, *, anew: bool = False) -> dict[str, ShelvedFile]:
        if anew or change not in self._shelves:
            files = Shelving.on(self._connection).list_files(int(change))
            self._shelves[change] = {file.depot_file: file for file in files}
        return self._shelves[change]

    # -- doing it

    def _reopen(self, files: list[OpenedFile], targets: dict[str, _Target]) -> None:
        moves: dict[int, list[str]] = defaultdict(list)
        for file in files:
            change = targets[file.depot_file].change
            if file.change != str(change):
                moves[change].append(file.depot_file)
        for change, paths in moves.items():
            for some in batches(paths):
                self._connection.run("reopen", "-c", str(change), *some, is_bulk=True)

    def _is_on_an_edge(self) -> bool:
        [info] = self._connection.run("info").records
        return "edge" in info.get("serverServices", "")

    def _shelve(
        self, change: int, files: list[OpenedFile], *, flags: tuple[str, ...]
    ) -> None:
        """Shelve files that the shelf lacks; record those that the server refused."""
        known = self._shelf_of(str(change))
        missing = [file for file in files if file.depot_file not in known]
        again = [
            file
            for file in files
            if file.depot_file in known
            and file.action not in _GONE
            and not self._is_comparable(file)
        ]
        command = ("shelve", *flags, "-c", str(change))
        self._send(command, missing)
        self._send((*command, "-f"), again)
        shelved = self._shelf_of(str(change), anew=True)
        for file in files:
            if file.depot_file not in shelved:
                self._not_done.setdefault(
                    file.depot_file, "The server did not shelve it."
                )

    def _send(self, command: tuple[str, ...], files: list[OpenedFile]) -> None:
        for units in batches(_units(files)):
            paths = [path for unit in units for path in unit]
            try:
                self._connection.run(*command, *paths, is_bulk=True)
            except PermanentGatewayError:
                self._shelve_one_by_one(command, units)

    def _shelve_one_by_one(
        self, command: tuple[str, ...], units: list[tuple[str, ...]]
    ) -> None:
        for unit in units:
            try:
                self._connection.run(*command, *unit, is_bulk=True)
            except PermanentGatewayError as error:
                self._not_done |= dict.fromkeys(unit, error.sentence)

    def _report(
        self,
        by_change: dict[int, list[OpenedFile]],
        targets: dict[str, _Target],
    ) -> Iterator[Shelf]:
        for change, files in by_change.items():
            parts: dict[_Target, list[str]] = defaultdict(list)
            for file in files:
                if file.depot_file not in self._not_done:
                    parts[targets[file.depot_file]].append(file.depot_file)
            for target, paths in parts.items():
                yield Shelf(
                    change=change,
                    was=target.was,
                    files=tuple(paths),
                    made_by_us=target.made_by_us,
                )


def _units(files: list[OpenedFile]) -> list[tuple[str, ...]]:
    """Return the paths, both halves of a move as one unit."""
    present = {file.depot_file for file in files}
    units: list[tuple[str, ...]] = []
    for file in files:
        has_other = file.moved_file in present
        if has_other and file.action == "move/add":
            continue
        units.append(
            (file.depot_file, file.moved_file) if has_other else (file.depot_file,)
        )
    return units


def _why_not_readable(path: str, *, file_type: str) -> str:
    """Return why the file cannot be sent as the type it was opened as, or ""."""
    try:
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode) != file_type.startswith("symlink"):
            return "It is opened as another file type than it has on disk."
        if stat.S_ISLNK(found.st_mode):
            return ""
        if not stat.S_ISREG(found.st_mode):
            return "It is not a regular file on disk."
        os.close(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC))
    except OSError as error:
        return f"It cannot be read: {os.strerror(error.errno or 0)}."
    return ""


def _md5(path: str) -> str:
    """Return the digest that Perforce keeps: for a symlink, that of its target."""
    digest = hashlib.md5(usedforsecurity=False)
    if os.path.islink(path):
        digest.update(os.fsencode(os.readlink(path)) + b"\n")
        return digest.hexdigest()
    with open(path, "rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
