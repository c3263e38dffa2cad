"""Work opened again on a client: by name, or out of a shelf.

No content on disk changes: what people left there stays.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from provisioner.gateways.errors import PermanentGatewayError
from provisioner.gateways.owners import HOUR, works_on_files
from provisioner.gateways.perforce.batching import batches
from provisioner.gateways.perforce.changes.pending import DEFAULT_CHANGE, PendingChanges
from provisioner.gateways.perforce.connection import Connection, Reply
from provisioner.gateways.perforce.facet import Facet, form_of
from provisioner.gateways.perforce.paths import client_path_to_local
from provisioner.gateways.perforce.types import (
    NotDone,
    OpenedFile,
    ReopenReport,
    Shelf,
)

_KEPT_ASIDE = ".{name}.cloneyard-kept"


class Reopening(Facet):
    """Open files as they were opened before."""

    @works_on_files(within_seconds=4 * HOUR)
    def reopen(
        self,
        client: str,
        files: Sequence[OpenedFile],
        *,
        descriptions: Mapping[str, str],
        shelves: Sequence[Shelf] = (),
        empty_changes: Sequence[str] = (),
    ) -> ReopenReport:
        """Open these files again as our user had them opened. Local files.

        `files` are what `list_opened` returned then; those of other users are skipped.
        The client must have the same revisions as then. Pending changes that no longer
        exist are created again, with `descriptions` by their old numbers; so are
        `empty_changes`, which held no files. Files that cannot be opened by name, like
        a branch, come out of the shelf that holds them. No file on disk changes. Safe
        to repeat.

        Raises: NotFound (client), Refused (host, locked by another owner).
        Source: p4 edit -k, p4 add, p4 delete -k, p4 move -k, p4 reopen, p4 unshelve.
        """
        with self._connected(client) as connection:
            run = _Run(connection, client=client, descriptions=descriptions)
            run.make_changes(empty_changes)
            user = connection.account.user
            return run.run([file for file in files if file.user == user], shelves)

    def unshelve(
        self, client: str, *, change: int, into: str, files: Sequence[str]
    ) -> ReopenReport:
        """Open files of a shelf in the change `into`. Local files.

        `into` is "default" or a pending change of ours. A file that is on disk already
        keeps its content: it is renamed while the server's content arrives, and then
        takes its place again. A repeat after a kill puts it back first. Opened files
        are left alone.

        Raises: NotFound (client, change), Refused (host, locked by another owner).
        Source: p4 unshelve -s -c, p4 where.
        """
        with self._connected(client) as connection:
            changes = PendingChanges.on(connection)
            places = places_of(connection, files)
            _put_back(places.values())
            before = {file.depot_file for file in changes.list_opened(client)}
            remarks = dict.fromkeys(before, "It is opened already.")
            for some in batches([path for path in files if path not in before]):
                if not (named := [path for path in some if path in places]):
                    continue
                with _kept_aside([places[path] for path in named]):
                    command = ("unshelve", "-s", str(change), "-c", into)
                    try:
                        reply = connection.run(*command, *named, is_bulk=True)
                    except PermanentGatewayError as error:
                        remarks |= dict.fromkeys(named, error.sentence)
                    else:
                        remarks |= remarks_of(reply)
            opened = {file.depot_file for file in changes.list_opened(client)} - before
        return ReopenReport(
            opened=tuple(path for path in files if path in opened),
            not_opened=tuple(
                NotDone(
                    depot_file=path,
                    reason=remarks.get(path, "") or "It could not be unshelved.",
                )
                for path in files
                if path not in opened
            ),
            changes={},
        )


class _Run:
    """One run of `reopen`."""

    def __init__(
        self, connection: Connection, *, client: str, descriptions: Mapping[str, str]
    ) -> None:
        self._connection = connection
        self._open_changes = PendingChanges.on(connection)
        self._client = client
        self._user = connection.account.user
        self._descriptions = descriptions
        self._root = str(form_of(connection, client)["Root"])
        self._pending = [
            change
            for change in self._open_changes.list_pending(client)
            if connection.is_same_name(change.user, self._user)
        ]
        self._changes: dict[str, str] = {}
        self._remarks: dict[str, str] = {}

    def make_changes(self, empty: Sequence[str]) -> None:
        """Create the pending changes of these old numbers, which had no files."""
        for was in empty:
            self._change(was)

    def run(
        self, files: Sequence[OpenedFile], shelves: Sequence[Shelf]
    ) -> ReopenReport:
        opened = self._opened()
        # If an attempt ended in the middle of a move, its source is open for edit.
        self._open([file for file in files if not _is_opened(file, opened)])
        opened = self._opened()
        self._unshelve(
            [file for file in files if file.depot_file not in opened], shelves
        )
        opened = self._opened()
        self._correct(files, opened)
        opened = self._opened()
        return self._report(files, opened)

    def _opened(self) -> dict[str, OpenedFile]:
        files = self._open_changes.list_opened(self._client)
        return {file.depot_file: file for file in files}

    def _change(self, was: str) -> str:
        """Return the replacement for a pending change; create it if it is gone."""
        if was == DEFAULT_CHANGE or any(str(c.change) == was for c in self._pending):
            return was
        if was not in self._changes:
            description = self._descriptions.get(was) or f"Change {was}, restored."
            again = [
                str(change.change)
                for change in self._pending
                if change.change > int(was)
                and change.description == description
                and str(change.change) not in self._changes.values()
            ]
            self._changes[was] = (
                again[0]
                if again
                else str(
                    self._open_changes.create_pending(
                        self._client, description=description
                    )
                )
            )
        return self._changes[was]

    # -- by name

    def _open(self, files: list[OpenedFile]) -> None:
        groups: dict[tuple[str, str, str], list[OpenedFile]] = defaultdict(list)
        present = {file.depot_file: file for file in files}
        for file in files:
            if file.action in ("edit", "delete", "add"):
                key = (file.action, self._change(file.change), file.type)
                groups[key].append(file)
            elif file.action == "move/add" and file.moved_file in present:
                self._move(present[file.moved_file], file)
        for (action, change, kind), some in groups.items():
            self._open_alike(action, change, kind, some)

    def _open_alike(
        self, action: str, change: str, kind: str, files: list[OpenedFile]
    ) -> None:
        flags = {
            "edit": ("edit", "-k", "-c", change, "-t", kind),
            "delete": ("delete", "-k", "-c", change),
            "add": ("add", "-f", "-I", "-c", change, "-t", kind),
        }[action]
        for some in batches(files):
            paths = [
                self._local(file) if action == "add" else file.depot_file
                for file in some
            ]
            self._run(*flags, *paths)

    def _local(self, file: OpenedFile) -> str:
        return client_path_to_local(
            file.client_file, client=self._client, root=self._root
        )

    def _move(self, source: OpenedFile, target: OpenedFile) -> None:
        change = self._change(target.change)
        self._run("edit", "-k", "-c", change, source.depot_file)
        self._run(
            *("move", "-k", "-c", change, "-t", target.type),
            source.depot_file,
            target.depot_file,
        )

    def _run(self, *command: str) -> None:
        """Run a command and keep its messages; the caller checks the outcome."""
        try:
            reply = self._connection.run(*command, is_bulk=True)
        except PermanentGatewayError as error:
            self._remarks |= {path: error.sentence for path in command if "/" in path}
        else:
            self._remarks |= remarks_of(reply)

    # -- from shelves

    def _unshelve(self, files: list[OpenedFile], shelves: Sequence[Shelf]) -> None:
        wanted = {file.depot_file: file for file in files}
        for shelf in shelves:
            names: dict[str, list[str]] = defaultdict(list)
            for path in shelf.files:
                if path in wanted:
                    names[self._change(wanted[path].change)].append(path)
            for into, paths in names.items():
                report = Reopening.on(self._connection).unshelve(
                    self._client, change=shelf.change, into=into, files=paths
                )
                self._remarks |= {n.depot_file: n.reason for n in report.not_opened}

    # -- the end

    def _correct(
        self, files: Sequence[OpenedFile], opened: Mapping[str, OpenedFile]
    ) -> None:
        """Give opened files the change and type that they had."""
        groups: dict[tuple[str, str], list[str]] = defaultdict(list)
        for file in files:
            now = opened.get(file.depot_file)
            if now is None or now.action != file.action:
                continue
            if not self._connection.is_same_name(now.user, self._user):
                continue
            change = self._change(file.change)
            if (now.change, now.type) != (change, file.type):
                groups[change, file.type].append(file.depot_file)
        for (change, kind), paths in groups.items():
            for some in batches(paths):
                self._run("reopen", "-c", change, "-t", kind, *some)

    def _report(
        self, files: Sequence[OpenedFile], opened: Mapping[str, OpenedFile]
    ) -> ReopenReport:
        done, not_done = [], []
        for file in files:
            reason = self._why_not(file, opened.get(file.depot_file))
            if reason:
                not_done.append(NotDone(depot_file=file.depot_file, reason=reason))
            else:
                done.append(file.depot_file)
        return ReopenReport(
            opened=tuple(done), not_opened=tuple(not_done), changes=self._changes
        )

    def _why_not(self, file: OpenedFile, now: OpenedFile | None) -> str:
        said = self._remarks.get(file.depot_file, "")
        if now is None:
            return said or f"It could not be opened for {file.action} again."
        if now.action != file.action:
            return f"It is now opened for {now.action}, and was for {file.action}."
        if now.type != file.type:
            return f"It is now opened as {now.type}, and was as {file.type}."
        if now.change != self._change(file.change):
            return f"It is now opened in change {now.change}, and was in {file.change}."
        return ""


def _is_opened(file: OpenedFile, opened: Mapping[str, OpenedFile]) -> bool:
    now = opened.get(file.depot_file)
    return now is not None and now.action == file.action


def places_of(connection: Connection, paths: Sequence[str]) -> dict[str, str]:
    """Return the local path of each depot file.

    Source: p4 where.
    """
    places = {}
    for some in batches(list(paths)):
        for record in connection.run("where", *some, is_bulk=True).records:
            if "unmap" not in record:
                places[record["depotFile"]] = record["path"]
    return places


@contextmanager
def _kept_aside(paths: Sequence[str]) -> Iterator[None]:
    """Clear these paths for the block, then put back what was there."""
    for path in paths:
        if os.path.lexists(path):
            os.rename(path, _aside(path))
    try:
        yield
    finally:
        _put_back(paths)


def _put_back(paths: Iterable[str]) -> None:
    for path in paths:
        if os.path.lexists(_aside(path)):
            os.replace(_aside(path), path)


def _aside(path: str) -> str:
    directory, name = os.path.split(path)
    return os.path.join(directory, _KEPT_ASIDE.format(name=name))


def remarks_of(reply: Reply) -> dict[str, str]:
    """Return the remarks on single files, by depot path."""
    texts = [*reply.texts, *(message.text for message in reply.messages)]
    return {
        path: text
        for text in texts
        if text.startswith("//")
        for path, dash, _ in [text.partition(" - ")]
        if dash
    }
