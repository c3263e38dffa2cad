"""Work of one client copied to another through shelves. The source does not change.

A stand-in, a client with the source's root and view, opens what is opened there and
shelves it. So no changelist, shelf or opened file of the source changes.
"""

from __future__ import annotations

import dataclasses
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from provisioner.gateways.errors import PermanentGatewayError
from provisioner.gateways.owners import HOUR, works_on_files
from provisioner.gateways.perforce.batching import batches
from provisioner.gateways.perforce.changes.pending import DEFAULT_CHANGE, PendingChanges
from provisioner.gateways.perforce.connection import Connection, Reply
from provisioner.gateways.perforce.facet import Facet, form_of
from provisioner.gateways.perforce.paths import escape_path
from provisioner.gateways.perforce.shelves.reopening import (
    Reopening,
    places_of,
    remarks_of,
)
from provisioner.gateways.perforce.shelves.shelving import Shelving
from provisioner.gateways.perforce.types import (
    CopyReport,
    NotDone,
    OpenedFile,
    OpenReport,
    PendingChange,
    Shelf,
)

AS_OPENED = {"branch": "add", "integrate": "edit"}
"""How the copy opens files whose own action no command can repeat."""

_ARRIVES_NEW = ("add", "move/add", "branch")
_MARK = "Copied by Cloneyard from {client} (change {was}): "
# `reopen` uses the default change as it is, but a copy of it needs a number.
_NUMBER_OF_DEFAULT = "0"


class Copies(Facet):
    """Shelve for a copy, and open the copy."""

    @works_on_files(within_seconds=4 * HOUR)
    def shelve_copies(
        self,
        client: str,
        *,
        source: str,
        files: Sequence[OpenedFile],
        descriptions: Mapping[str, str],
    ) -> CopyReport:
        """Shelve what our user has opened on the client `source`, through a stand-in.

        Local files, which are only read. The stand-in `client` has the source's root
        and view, the revisions at which the `files` were opened, and nothing opened or
        pending. Changelists, shelves and opened files of the source do not change. A
        file that only one client may open (+l) is reported in `not_copied`.

        Raises: NotFound (client), Refused (host).
        Source: p4 edit -k, p4 add, p4 delete -k, p4 move -k, p4 shelve.
        """
        with self._connected(client) as connection:
            theirs = [file for file in files if file.user == connection.account.user]
            marked = {
                _numbered(was): _MARK.format(client=source, was=was)
                + descriptions.get(was, "")
                for was in {file.change for file in theirs}
            }
            reopened = Reopening.on(connection).reopen(
                client,
                [_as_copied(file, client=client, source=source) for file in theirs],
                descriptions=marked,
            )
            shelved = Shelving.on(connection).shelve_opened(client, workspace=source)
        was = {number: _named(old) for old, number in reopened.changes.items()}
        # Half of a refused move is open, too.
        done = set(reopened.opened)
        refused = {item.depot_file for item in reopened.not_opened}
        return CopyReport(
            shelves=tuple(
                dataclasses.replace(
                    shelf,
                    was=was[shelf.was],
                    files=tuple(path for path in shelf.files if path in done),
                    made_by_us=True,
                )
                for shelf in shelved.shelves
            ),
            not_copied=reopened.not_opened
            + tuple(n for n in shelved.not_shelved if n.depot_file not in refused),
        )

    @works_on_files(within_seconds=4 * HOUR)
    def open_copies(
        self,
        client: str,
        *,
        shelves: Sequence[Shelf],
        descriptions: Mapping[str, str],
        label: str,
    ) -> OpenReport:
        """Open what our shelves hold on a new client, with its content. Local files.

        Each change that a shelf `was`, or that has a description, gets a pending change
        with that description. What is in the way of a new file is renamed: `label` is
        appended to its name. Files of the have list are overwritten. Safe to repeat.

        Raises: NotFound (client), Refused (host, locked by another owner).
        Source: p4 change -i, p4 unshelve -s -f -c.
        """
        with self._connected(client) as connection:
            form_of(connection, client)
            pending = PendingChanges.on(connection)
            changes = _changes(
                connection,
                client=client,
                wanted={shelf.was for shelf in shelves} | set(descriptions),
                descriptions=descriptions,
            )
            put_aside: list[tuple[str, str]] = []
            remarks: dict[str, str] = {}
            for shelf in shelves:
                opened = {file.depot_file for file in pending.list_opened(client)}
                missing = [path for path in shelf.files if path not in opened]
                if not missing:
                    continue
                put_aside += _make_room(
                    connection, change=shelf.change, paths=missing, label=label
                )
                remarks |= _unshelve(
                    connection, shelf.change, into=changes[shelf.was], paths=missing
                )
            opened = {file.depot_file for file in pending.list_opened(client)}
        return OpenReport(
            changes=changes,
            put_aside=tuple(put_aside),
            not_opened=tuple(
                NotDone(
                    depot_file=path,
                    reason=remarks.get(path) or "The server did not open it.",
                )
                for shelf in shelves
                for path in shelf.files
                if path not in opened
            ),
        )


def _numbered(was: str) -> str:
    return _NUMBER_OF_DEFAULT if was == DEFAULT_CHANGE else was


def _named(number: str) -> str:
    return DEFAULT_CHANGE if number == _NUMBER_OF_DEFAULT else number


def _as_copied(file: OpenedFile, *, client: str, source: str) -> OpenedFile:
    place = file.client_file.removeprefix(f"//{escape_path(source)}/")
    return dataclasses.replace(
        file,
        client=client,
        client_file=f"//{escape_path(client)}/{place}" if place else "",
        action=AS_OPENED.get(file.action, file.action),
        change=_numbered(file.change),
    )


def _unshelve(
    connection: Connection, change: int, *, into: str, paths: Sequence[str]
) -> dict[str, str]:
    """Open files of a shelf with their content; return remarks by depot path."""
    remarks: dict[str, str] = {}
    command = ("unshelve", "-s", str(change), "-f", "-c", into)
    for some in batches(list(paths)):
        try:
            reply = connection.run(*command, *some, is_bulk=True)
            remarks |= _named_in(reply, some) | remarks_of(reply)
        except PermanentGatewayError as error:
            remarks |= dict.fromkeys(some, error.sentence)
    return remarks


def _named_in(reply: Reply, paths: Sequence[str]) -> dict[str, str]:
    """Return the messages that name a path in the middle of a sentence."""
    return {
        path: message.text
        for message in reply.messages
        for path in paths
        if f" {path} " in message.text
    }


def _changes(
    connection: Connection,
    *,
    client: str,
    wanted: Iterable[str],
    descriptions: Mapping[str, str],
) -> dict[str, str]:
    """Return the pending change that replaces each old one; create those missing.

    In order of their numbers, so that two with the same description keep their order.
    """
    pending = PendingChanges.on(connection)
    there: dict[str, list[PendingChange]] = defaultdict(list)
    for change in pending.list_pending(client):
        if connection.is_same_name(change.user, connection.account.user):
            there[change.description].append(change)
    for alike in there.values():
        alike.sort(key=lambda change: change.change)
    changes = {DEFAULT_CHANGE: DEFAULT_CHANGE}
    for was in sorted((w for w in wanted if w != DEFAULT_CHANGE), key=int):
        text = descriptions.get(was) or f"Change {was}, transferred."
        alike = there[text]
        changes[was] = str(
            alike.pop(0).change
            if alike
            else pending.create_pending(client, description=text)
        )
    return changes


def _make_room(
    connection: Connection, *, change: int, paths: Sequence[str], label: str
) -> list[tuple[str, str]]:
    """Rename what is in the way of new files of a shelf; return old and new paths."""
    actions = {
        file.depot_file: file.action
        for file in Shelving.on(connection).list_files(change)
    }
    new = [path for path in paths if actions.get(path) in _ARRIVES_NEW]
    for some in batches(new):
        # The server refuses to add what others have added, so their file must stay.
        have = connection.run("have", *some, is_bulk=True).records
        had = {record["depotFile"] for record in have}
        new = [path for path in new if path not in had]
    moved = []
    for place in places_of(connection, new).values():
        aside = f"{place}.{label}"
        # One that exists already was renamed by an attempt that was killed.
        if os.path.lexists(place) and not os.path.lexists(aside):
            os.rename(place, aside)
        if os.path.lexists(aside):
            moved.append((place, aside))
    return moved
