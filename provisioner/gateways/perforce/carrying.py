"""Work of one client copied to another, by way of shelves; the first stays as it is.

A stand-in, a client with the first one's root and view, opens what is opened there and
shelves it. So neither changelists nor shelves nor opened files of the first change.
"""

from __future__ import annotations

import dataclasses
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from provisioner.gateways.errors import PermanentGatewayError
from provisioner.gateways.perforce.connection import Connection, Reply
from provisioner.gateways.perforce.paths import client_path_to_local, escape_path
from provisioner.gateways.perforce.pending import (
    DEFAULT_CHANGE,
    create_change,
    form_of,
    list_opened,
    list_pending_changes,
    list_shelved_files,
)
from provisioner.gateways.perforce.restoring import places_of, remarks_of, reopen
from provisioner.gateways.perforce.shelving import batches, shelve_opened
from provisioner.gateways.perforce.submitted import DepotView
from provisioner.gateways.perforce.types import (
    NotDone,
    OpenedFile,
    Part,
    PendingChange,
    Shelf,
)

AS_OPENED = {"branch": "add", "integrate": "edit"}
"""How files are opened in the copy that no command opens as they were."""

ARRIVES_NEW = ("add", "move/add", "branch")
_MARK = "Copied by Cloneyard from {client} (change {was}): "
# `reopen` takes the default change for what it is; a copy of it needs a number.
_NUMBER_OF_DEFAULT = "0"


@dataclass(frozen=True, kw_only=True)
class CopyReport:
    """`shelves` name the changes that files were opened in; they are the stand-in's."""

    shelves: tuple[Shelf, ...]
    not_copied: tuple[NotDone, ...]


@dataclass(frozen=True, kw_only=True)
class OpenReport:
    """What came out of shelves.

    `changes` gives the change that stands for each old one. `put_aside` has [path,
    new path], local syntax, of what lay where a new file belongs.
    """

    changes: dict[str, str]
    put_aside: tuple[tuple[str, str], ...]
    not_opened: tuple[NotDone, ...]


@dataclass(frozen=True, kw_only=True)
class ToResolve:
    """A file that a person has to bring together with what others did to it."""

    depot_file: str
    path: str
    from_file: str
    from_revision: str


@dataclass(frozen=True, kw_only=True)
class MergeReport:
    """`merged` are depot paths that were brought together without a conflict.

    `changed` have another revision than the one they are opened at, and cannot be
    merged, as they are deleted or moved here; `gone` are deleted there: both by path
    the change that they were compared at.
    """

    merged: tuple[str, ...]
    to_resolve: tuple[ToResolve, ...]
    changed: Mapping[str, int]
    gone: Mapping[str, int]


def as_edits(
    connection: Connection, *, client: str, user: str, paths: Sequence[str]
) -> list[OpenedFile]:
    """Return files of the have list as if they were opened for edit.

    Source: p4 have, p4 files path#revision.
    """
    files = []
    for some in batches(list(paths)):
        have = connection.run("have", *some, is_bulk=True).records
        had = {record["depotFile"]: int(record["haveRev"]) for record in have}
        if not had:
            continue
        places = {record["depotFile"]: record["clientFile"] for record in have}
        named = [f"{path}#{revision}" for path, revision in had.items()]
        for record in connection.run("files", *named, is_bulk=True).records:
            path = record["depotFile"]
            files.append(
                OpenedFile(
                    depot_file=path,
                    client_file=places[path],
                    action="edit",
                    change=DEFAULT_CHANGE,
                    user=user,
                    client=client,
                    type=record["type"],
                    revision=had[path],
                )
            )
    return files


def to_resolve(connection: Connection, *, client: str) -> list[ToResolve]:
    """Return what the user has to resolve on the client.

    Source: p4 resolve -n.
    """
    records = connection.run(
        "resolve", "-n", f"//{escape_path(client)}/...", is_bulk=True
    ).records
    places = {record["clientFile"]: record for record in records}
    if not places:
        return []
    found = []
    for some in batches([escape_path(place) for place in places]):
        for where in connection.run("where", *some, is_bulk=True).records:
            record = places.get(where["path"])
            if record is not None and "unmap" not in where:
                found.append(
                    ToResolve(
                        depot_file=where["depotFile"],
                        path=where["path"],
                        from_file=record["fromFile"],
                        from_revision=record.get("endFromRev", ""),
                    )
                )
    return found


def shelve_copies(
    connection: Connection,
    *,
    client: str,
    source: str,
    user: str,
    files: Sequence[OpenedFile],
    descriptions: Mapping[str, str],
) -> CopyReport:
    """Open on the stand-in `client` what the user has opened on `source`; shelve it.

    The stand-in has the revisions that the files were opened at, and nothing opened
    or pending. Files are read from where they are, and stay as they are.

    Source: p4 edit -k, p4 add, p4 delete -k, p4 move -k, p4 shelve.
    """
    theirs = [file for file in files if file.user == user]
    marked = {
        _numbered(was): _MARK.format(client=source, was=was) + descriptions.get(was, "")
        for was in {file.change for file in theirs}
    }
    reopened = reopen(
        connection,
        client=client,
        user=user,
        files=[_as_copied(file, client=client, source=source) for file in theirs],
        descriptions=marked,
        shelves=(),
    )
    shelved = shelve_opened(connection, client=client, user=user, workspace=source)
    was = {number: _named(old) for old, number in reopened.changes.items()}
    # Half of a move that was refused is open, too.
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


def open_copies(
    connection: Connection,
    *,
    client: str,
    user: str,
    shelves: Sequence[Shelf],
    descriptions: Mapping[str, str],
    label: str,
) -> OpenReport:
    """Open the files of the user's shelves on the client, with their content.

    Each change that is described gets one of the same description. What lies where a
    new file belongs gets `label` behind its name; other files on disk are overwritten:
    the client is new. Safe to repeat after a kill.

    Source: p4 change -i, p4 unshelve -s -f -c.
    """
    changes = _changes(
        connection,
        client=client,
        user=user,
        wanted={shelf.was for shelf in shelves} | set(descriptions),
        descriptions=descriptions,
    )
    put_aside: list[tuple[str, str]] = []
    remarks: dict[str, str] = {}
    for shelf in shelves:
        opened = {file.depot_file for file in list_opened(connection, client=client)}
        missing = [path for path in shelf.files if path not in opened]
        if not missing:
            continue
        put_aside += _make_room(
            connection, change=shelf.change, paths=missing, label=label
        )
        command = ("unshelve", "-s", str(shelf.change), "-f", "-c", changes[shelf.was])
        for some in batches(missing):
            try:
                reply = connection.run(*command, *some, is_bulk=True)
                remarks |= _named_in(reply, some) | remarks_of(reply)
            except PermanentGatewayError as error:
                remarks |= dict.fromkeys(some, error.sentence)
    opened = {file.depot_file for file in list_opened(connection, client=client)}
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


def _named_in(reply: Reply, paths: Sequence[str]) -> dict[str, str]:
    """Return what was said in sentences that have a path in their middle."""
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
    user: str,
    wanted: Iterable[str],
    descriptions: Mapping[str, str],
) -> dict[str, str]:
    """Return the change that stands for each old one, made where it is not there yet.

    They are made in order, so that two with one description are told apart.
    """
    there: dict[str, list[PendingChange]] = defaultdict(list)
    for change in list_pending_changes(connection, client=client):
        if connection.is_same_name(change.user, user):
            there[change.description].append(change)
    for alike in there.values():
        alike.sort(key=lambda change: change.change)
    changes = {DEFAULT_CHANGE: DEFAULT_CHANGE}
    for was in sorted((w for w in wanted if w != DEFAULT_CHANGE), key=int):
        text = descriptions.get(was) or f"Change {was}, brought forward."
        alike = there[text]
        changes[was] = str(
            alike.pop(0).change
            if alike
            else create_change(connection, client=client, description=text)
        )
    return changes


def _make_room(
    connection: Connection, *, change: int, paths: Sequence[str], label: str
) -> list[tuple[str, str]]:
    """Rename what lies where new files of a shelf belong."""
    actions = {
        file.depot_file: file.action
        for file in list_shelved_files(connection, change=change)
    }
    new = [path for path in paths if actions.get(path) in ARRIVES_NEW]
    for some in batches(new):
        # The server refuses to add what others added; theirs has to stay then.
        have = connection.run("have", *some, is_bulk=True).records
        had = {record["depotFile"] for record in have}
        new = [path for path in new if path not in had]
    moved = []
    for place in places_of(connection, new).values():
        aside = f"{place}.{label}"
        # One that is there already was put there by a try that was killed.
        if os.path.lexists(place) and not os.path.lexists(aside):
            os.rename(place, aside)
        if os.path.lexists(aside):
            moved.append((place, aside))
    return moved


def merge_opened(
    connection: Connection,
    *,
    client: str,
    user: str,
    change: int,
    parts: Sequence[Part] = (),
) -> MergeReport:
    """Bring what the user has opened on the client to its revisions at the change.

    But for `parts`: what lies there to its revisions at theirs. Only what has no
    conflict is merged; the rest is left to be resolved. Files that are opened at a
    later revision stay there. Safe to repeat.

    Source: p4 files path@change, p4 sync path@change, p4 resolve -am, p4 resolve -n,
    p4 resolved.
    """
    form_of(connection, client)
    opened = {
        file.depot_file: file
        for file in list_opened(connection, client=client)
        if connection.is_same_name(file.user, user)
    }
    based = [path for path, file in opened.items() if file.revision]
    pinned = _pinned(connection, based, change=change, parts=parts)
    behind, changed, gone = [], [], []
    for path, (revision, action) in _at(connection, pinned).items():
        file = opened[path]
        if revision <= file.revision:
            continue
        if "delete" in action:
            gone.append(path)
        elif file.action == "edit":
            behind.append(path)
        else:
            changed.append(path)
    for some in batches([f"{path}@{pinned[path]}" for path in behind]):
        connection.run("sync", *some, is_bulk=True)
    scheduled = {item.depot_file for item in to_resolve(connection, client=client)}
    if scheduled:
        for some in batches(sorted(scheduled)):
            connection.run("resolve", "-am", *some, is_bulk=True)
    left = to_resolve(connection, client=client)
    unmerged = {item.depot_file for item in left}
    merged = _merged(connection, client=client) & opened.keys() - unmerged
    return MergeReport(
        merged=tuple(sorted(merged)),
        to_resolve=tuple(left),
        changed={path: pinned[path] for path in changed},
        gone={path: pinned[path] for path in gone},
    )


def _merged(connection: Connection, *, client: str) -> set[str]:
    """Return what was brought together with later revisions of itself."""
    records = connection.run(
        "resolved", f"//{escape_path(client)}/...", is_bulk=True
    ).records
    return {r["toFile"] for r in records if r["fromFile"] == r["toFile"]}


def _pinned(
    connection: Connection, paths: Sequence[str], *, change: int, parts: Sequence[Part]
) -> dict[str, int]:
    """Return the change of each path: that of the last of the parts that it lies in."""
    is_exact = connection.is_case_sensitive
    views = {
        part: DepotView([f'"{part.path}" "{part.path}"'], is_case_sensitive=is_exact)
        for part in reversed(parts)
    }

    def change_of(path: str) -> int:
        having = (part for part, view in views.items() if view.touches([path]))
        return next((part.change for part in having), change)

    return {path: change_of(path) for path in paths}


def _at(
    connection: Connection, pinned: Mapping[str, int]
) -> dict[str, tuple[int, str]]:
    found = {}
    for some in batches([f"{path}@{change}" for path, change in pinned.items()]):
        for record in connection.run("files", *some, is_bulk=True).records:
            found[record["depotFile"]] = (int(record["rev"]), record["action"])
    return found


def local_place(file: OpenedFile, *, client: str, root: str) -> str:
    """Return where a file of a client is, from its root; "" where it is not mapped."""
    if not file.client_file:
        return ""
    local = client_path_to_local(file.client_file, client=client, root=root)
    return local.removeprefix(root.rstrip("/") + "/")
