"""Write a checkpoint: the lab's state as the rows of a Perforce database.

It has what a restore reads. What the lab keeps and no row of such a table holds is
named to the caller, so that nobody takes the file for more than it is.

Source: Perforce server schema (db.* tables); p4d -jd. Inferred: the order of the
columns of db.trigger.
"""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from provisioner.lab.perforce import filetypes, octets
from provisioner.lab.perforce.database import Database
from provisioner.lab.perforce.protections import table_lines
from provisioner.lab.perforce.restore import ACTIONS, HOW
from provisioner.lab.perforce.restored_specs import (
    DEPOT_TYPES,
    LEVELS,
    MAP_FLAGS,
    STREAM_TYPES,
    USER_TYPES,
)
from provisioner.lab.perforce.specstore import StoredSpec, all_specs, find_spec
from provisioner.lab.perforce.views import parse_view_line, split_words

_KINDS_HELD = frozenset(
    {"client", "depot", "label", "stream", "user", "group", "protect", "triggers"}
)
_STORAGE = {"rcs": 0, "full": 1, "compressed": 3}
_LIMITS = ("MaxResults", "MaxScanRows", "MaxLockTime")

Value = str | int
Row = tuple[str, int, tuple[Value, ...]]


def write_checkpoint(
    database: Database,
    path: Path,
    *,
    admin_user: str,
    tables: Collection[str] = (),
    is_compressed: bool = False,
) -> list[str]:
    """Write the rows of these tables, or of all; return what is left out.

    The file appears whole or not at all.

    Raises: OSError.
    """
    new = path.with_name(f".{path.name}.new")
    kind: type[Any] = gzip.GzipFile if is_compressed else io.FileIO
    with kind(new, "wb") as file, database.reading():
        for table, version, values in _rows(database, admin_user=admin_user):
            if not tables or table in tables:
                file.write(line("pv", version, table, values))
    os.replace(new, path)
    kinds = database.rows("SELECT DISTINCT kind FROM specs ORDER BY kind")
    left = [str(kind) for (kind,) in kinds if str(kind) not in _KINDS_HELD]
    for table in ("fixes", "resolves"):
        if database.rows(f"SELECT 1 FROM {table} LIMIT 1"):  # noqa: S608 - ours
            left.append(table)
    of_files = database.rows(
        "SELECT type FROM revisions UNION SELECT type FROM shelved"
        " UNION SELECT type FROM opened"
    )
    unknown = [
        str(each) for (each,) in of_files if filetypes.to_bits(str(each)) is None
    ]
    left += [f"files of type {each}" for each in unknown]
    return [] if tables else left


def line(operation: str, version: int, table: str, values: tuple[Value, ...]) -> bytes:
    """Return one record of a journal."""
    words = [f"@{operation}@", str(version), f"@{table}@", *map(_word, values)]
    return octets.bytes_of(" ".join(words)) + b" \n"


def _word(value: Value) -> str:
    if isinstance(value, int):
        return str(value)
    return "@" + value.replace("@", "@@") + "@"


def _rows(database: Database, *, admin_user: str) -> Iterator[Row]:
    yield from _settings(database)
    for name, value in database.rows("SELECT name, value FROM counters ORDER BY name"):
        yield "db.counters", 1, (str(name), str(value))
    yield from _people(database, admin_user=admin_user)
    for kind in ("client", "depot", "label", "stream"):
        for spec in all_specs(database, kind=kind):
            yield from _domain(kind, spec)
    yield from _revisions(database)
    yield from _changes(database)
    yield from _work(database)


def _settings(database: Database) -> Iterator[Row]:
    for name, value in database.rows("SELECT name, value FROM settings ORDER BY name"):
        server, _, bare = str(name).rpartition("#")
        yield "db.config", 1, (server or "any", bare, str(value))
    spec = find_spec(database, kind="triggers", name="triggers")
    for number, text in enumerate(spec.lines("Triggers") if spec else []):
        words = split_words(text)
        if len(words) == 4:
            yield "db.trigger", 1, (number, *words)


def _people(database: Database, *, admin_user: str) -> Iterator[Row]:
    rows = database.rows("SELECT user, hash FROM passwords")
    hashes = {str(user): str(found) for user, found in rows}
    for user in all_specs(database, kind="user"):
        kind = USER_TYPES_BACK[user.text("Type") or "standard"]
        yield (
            "db.user",
            7,
            (
                *(user.name, user.text("Email"), "", user.updated, user.accessed),
                *(user.text("FullName"), hashes.get(user.name, ""), 1, ""),
                *(0, kind, 0, 0, 0, 0),
            ),
        )
    for group in all_specs(database, kind="group"):
        limits = [_limit(group.text(tag)) for tag in _LIMITS]
        timeout = _limit(group.text("Timeout"))
        for role, tag in enumerate(("Users", "Subgroups", "Owners")):
            for member in group.lines(tag):
                yield (
                    "db.group",
                    8,
                    (member, group.name, role, *limits, 0, timeout),
                )
    if find_spec(database, kind="protect", name="protect") is None:
        return
    for number, text in enumerate(table_lines(database, admin_user=admin_user)):
        level, whose, name, host, path = split_words(text)[:5]
        flag = path[0] if path[0] in "-+&" else ""
        yield (
            "db.protect",
            5,
            (
                *(number, int(whose == "group"), name, host, LEVELS_BACK[level]),
                *(MAP_FLAGS_BACK[flag], path.removeprefix(flag), "", 10),
            ),
        )


def _limit(text: str) -> int:
    return int(text) if text.isdecimal() else {"unlimited": -2}.get(text, 0)


_DOMAIN_KINDS = {"client": 99, "depot": 100, "label": 108, "stream": 115}


def _domain(kind: str, spec: StoredSpec) -> Iterator[Row]:
    host = spec.text("Host") if kind == "client" else spec.text("Revision")
    roots = [*spec.lines("AltRoots"), "", ""][:2] if kind == "client" else ["", ""]
    yield (
        "db.domain",
        7,
        (
            *_all(spec.name, _DOMAIN_KINDS[kind], host, spec.text("Root"), *roots),
            *_all(spec.text("Owner"), spec.updated, spec.accessed, 0),
            *_all(spec.text("Description"), _stream_of(kind, spec), "", 0),
        ),
    )
    if kind in ("client", "label"):
        for number, text in enumerate(spec.lines("View")):
            view = parse_view_line(text) if kind == "client" else None
            left = view.left if view else text
            right = view.right if view else ""
            flag = MAP_FLAGS_BACK[view.flag if view else ""]
            yield "db.view", 1, (spec.name, number, flag, right, left)
    elif kind == "depot":
        depot = DEPOT_TYPES.index(spec.text("Type") or "local")
        yield "db.depot", 1, (spec.name, depot, "", spec.text("Map"))
    elif kind == "stream":
        number = STREAM_TYPES.index(spec.text("Type") or "mainline")
        parent, title = spec.text("Parent"), spec.text("Name")
        yield "db.stream", 1, (spec.name, parent, title, number)
        for order, text in enumerate(spec.lines("Paths")):
            path = text.removeprefix("share ")
            yield "db.template", 1, (spec.name, 0, order, 0, 0, 0, path)


def _stream_of(kind: str, spec: StoredSpec) -> str:
    return spec.text("Stream") if kind == "client" else ""


def _revisions(database: Database) -> Iterator[Row]:
    query = (
        "SELECT r.path, r.revision, r.change, r.action, r.type, r.time, r.modified,"
        " r.digest, r.size, a.file, a.revision, a.storage FROM revisions r"
        " LEFT JOIN archives a USING (digest) ORDER BY r.path, r.revision DESC"
    )
    for row in database.rows(query):
        yield from _revision("db.rev", row)
    query = (
        "SELECT s.path, s.revision, s.change, s.action, s.type, 0, s.modified,"
        " s.digest, s.size, a.file, a.revision, a.storage FROM shelved s"
        " LEFT JOIN archives a USING (digest) ORDER BY s.path, s.change"
    )
    for row in database.rows(query):
        yield from _revision("db.revsh", row)


def _revision(table: str, row: tuple[object, ...]) -> Iterator[Row]:
    path, number, change, action, kind = row[:5]
    bits = filetypes.to_bits(str(kind))
    if bits is not None:
        what = (str(path), _int(number), bits, ACTIONS.index(str(action)))
        yield table, 9, (*what, _int(change), *_stored(row[5:]))


def _stored(row: tuple[object, ...]) -> tuple[Value, ...]:
    """Return the columns of a revision from its time on."""
    time, modified, digest, size, file, revision, storage = row
    # Content that no archive file holds lies in the store, by its digest.
    where = (str(file), str(revision)) if file else (f"content/{digest}", "1.1")
    kind = _STORAGE[str(storage)] if storage else _STORAGE["full"]
    return (_int(time), _int(modified), str(digest), _int(size), 0, 0, *where, kind)


def _changes(database: Database) -> Iterator[Row]:
    columns = "change, client, user, time, status, type, description, path"
    for row in database.rows(f"SELECT {columns} FROM changes ORDER BY change"):  # noqa: S608 - ours
        number, client, user, time, status, kind, text, path = row
        flags = int(status == "submitted") | (4 if kind == "restricted" else 0)
        yield (
            "db.change",
            3,
            (
                *(_int(number), _int(number), str(client), str(user), _int(time)),
                *(flags, str(text)[:31].rstrip("\n"), str(path)),
            ),
        )
    for number, text in database.rows("SELECT change, description FROM changes"):
        # As a restore has them: each ends with a line end.
        yield "db.desc", 1, (_int(number), str(text).removesuffix("\n") + "\n")


def _work(database: Database) -> Iterator[Row]:
    for row in database.rows(
        "SELECT client_path, path, revision, synced FROM have ORDER BY client, path"
    ):
        client_path, path, number, synced = row
        values = (str(client_path), str(path), _int(number), 0, _int(synced))
        yield "db.have", 3, values
    for label, path, number in database.rows("SELECT * FROM label_files"):
        yield "db.label", 1, (str(label), str(path), _int(number))
    columns = "client_path, path, client, user, revision, type, action, change"
    for row in database.rows(f"SELECT {columns} FROM opened"):  # noqa: S608 - ours
        client_path, path, client, user, number, kind, action, change = row
        bits = filetypes.to_bits(str(kind))
        if bits is not None:
            whose = (str(client_path), str(path), str(client), str(user))
            done = (ACTIONS.index(str(action)), _int(change))
            yield "db.working", 10, (*whose, _int(number), 0, 0, bits, *done)
    columns = "path, other, other_start, other_end, start, end, how, change"
    for row in database.rows(f"SELECT {columns} FROM integrations"):  # noqa: S608 - ours
        path, other, *numbers, how, change = row
        yield (
            "db.integed",
            0,
            (
                *_all(str(path), str(other), *map(_int, numbers)),
                *(HOW.index(str(how)), _int(change)),
            ),
        )


def _all(*values: Value) -> tuple[Value, ...]:
    return values


def _int(value: object) -> int:
    return int(str(value))


USER_TYPES_BACK = {word: number for number, word in USER_TYPES.items()}
MAP_FLAGS_BACK = {flag: number for number, flag in MAP_FLAGS.items()}
LEVELS_BACK = {word: number for number, word in LEVELS.items()}
