"""Restore a checkpoint: the rows of a Perforce database become the lab's state.

Rows that the lab stores are taken over; others are counted by table, so that nobody
takes a partial restore for a whole one.

Source: Perforce server schema (db.* tables).
"""

# ruff: noqa: S608 - statements are composed of our own constants; values are bound
from __future__ import annotations

import base64
import json
import shutil
import tarfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from provisioner.lab.perforce import archives, filetypes
from provisioner.lab.perforce.journal import Record, records
from provisioner.lab.perforce.restored_mode import RestoredMode
from provisioner.lab.perforce.restored_specs import RestoredSpecs
from provisioner.lab.perforce.specstore import find_spec
from provisioner.lab.perforce.state import (
    PerforceConfig,
    ServerState,
    initialize,
    make_administrator,
    open_state,
)

ACTIONS = (
    *("add", "edit", "delete", "branch", "integrate", "import", "purge"),
    *("move/delete", "move/add", "archive"),
)
HOW = (
    *("merge from", "merge into", "branch from", "branch into"),
    *("copy from", "copy into", "ignored", "ignored by"),
    *("delete from", "delete into", "edit into", "add into", "edit from", "add from"),
    *("moved from", "moved into"),
)
_STATUS = {0: "pending", 1: "submitted", 2: "pending"}
# Tables that say again what others say, or what only holds while a server runs.
_REDUNDANT = frozenset(
    [
        *("db.revcx", "db.revdx", "db.revhx", "db.workingx"),
        *("db.locks", "db.monitor", "db.user.rp"),
    ]
)


@dataclass(frozen=True, kw_only=True)
class Restored:
    """The result of a restore: rows by table, and revisions without an archive.

    `warnings` say where this server differs from the one that wrote the checkpoint.
    """

    restored: dict[str, int]
    redundant: dict[str, int]
    not_understood: dict[str, int]
    without_archive: int = 0
    warnings: list[str] = field(default_factory=list)


class _NotUnderstood(Exception):
    """A row has something that the lab lacks; the argument says what."""


def restore(config: PerforceConfig, *, checkpoint: Path) -> Restored:
    """Restore a checkpoint, all or nothing, replacing rows with the same keys.

    The lab's administrator stays super and keeps the password, or nobody might be able
    to sign in.

    Raises: JournalError, OSError.
    """
    initialize(config)
    state = open_state(config)
    try:
        with state.database.writing():
            restoring = _Restore(state)
            result = restoring.run(checkpoint)
        make_administrator(state)
        return replace(result, without_archive=restoring.count_without_archive())
    finally:
        state.database.close()


def unpack(depots: Path, *, root: Path) -> None:
    """Copy depot directories below the root, from a tar file or as they are.

    Raises: OSError, tarfile.TarError.
    """
    if depots.is_dir():
        shutil.copytree(depots, root, symlinks=True, dirs_exist_ok=True)
        return
    with tarfile.open(depots) as tar:
        tar.extractall(root, filter="data")


class _Restore:
    def __init__(self, state: ServerState) -> None:
        self._database = state.database
        self._content = state.content
        self._archives = archives.Archives(
            state.config.files_root.resolve(),
            database=state.database,
            content=state.content,
        )
        self._config = state.config
        self._mode = RestoredMode()
        self._specs = RestoredSpecs(state.database)
        self._handlers: dict[str, Callable[[Record], None]] = {
            "db.rev": self._revision,
            "db.revsh": self._shelved,
            "db.change": self._change,
            "db.changex": self._change,
            "db.desc": self._description,
            "db.have": self._have,
            "db.label": self._label_file,
            "db.working": self._opened,
            "db.integed": self._integration,
            "db.counters": self._counter,
            "db.config": self._setting,
            "db.trigger": self._trigger,
            **self._specs.handlers,
        }
        self._descriptions: dict[int, list[int]] = {}
        spec = find_spec(state.database, kind="triggers", name="triggers")
        found = spec.lines("Triggers") if spec else []
        self._had_triggers = dict(enumerate(found))
        self._triggers = dict(self._had_triggers)

    def run(self, checkpoint: Path) -> Restored:
        restored, redundant = Counter[str](), Counter[str]()
        unknown = Counter[str]()
        for record in records(checkpoint):
            self._mode.see(record)
            handler = self._handlers.get(record.table)
            if record.operation == "dv" and record.table == "db.trigger":
                self._triggers.pop(record.integer(0), None)
                restored["db.trigger (dv)"] += 1
            elif record.operation not in ("pv", "rv"):
                unknown[f"{record.table} ({record.operation})"] += 1
            elif handler is not None:
                try:
                    handler(record)
                    restored[record.table] += 1
                except (_NotUnderstood, KeyError, IndexError, ValueError) as error:
                    unknown[f"{record.table} ({error})"] += 1
            elif record.table in _REDUNDANT:
                redundant[record.table] += 1
            else:
                unknown[record.table] += 1
        unknown.update(self._specs.save())
        self._save_triggers()
        return Restored(
            restored=dict(restored),
            redundant=dict(redundant),
            not_understood=dict(unknown),
            warnings=self._mode.warnings(self._config),
        )

    def count_without_archive(self) -> int:
        """Return how many revisions cannot be read, as their archive is missing."""
        rows = self._database.rows("SELECT file, revision, storage FROM archives")
        return sum(not self._archives.has(*map(str, row)) for row in rows)

    def _put(self, table: str, *values: object) -> None:
        marks = ",".join("?" * len(values))
        self._database.execute(
            f"INSERT OR REPLACE INTO {table} VALUES ({marks})", *values
        )

    # --- files

    def _revision(self, record: Record) -> None:
        values = self._stored_revision(record)
        self._put(
            "revisions",
            *(record.text(0), record.integer(1), record.integer(4), values[0]),
            *(values[1], record.integer(5), record.integer(6), *values[2:]),
        )

    def _shelved(self, record: Record) -> None:
        action, kind, digest, size = self._stored_revision(record)
        self._put(
            "shelved",
            *(record.integer(4), record.text(0), record.integer(1), action, kind),
            *(record.integer(6), digest, size),
        )

    def _stored_revision(self, record: Record) -> tuple[str, str, str, int]:
        """Return action, type, digest and size, and record where the content is."""
        action = ACTIONS[record.integer(3)]
        kind = _type(record.integer(2))
        if action in ("delete", "move/delete", "purge", "archive"):
            return action, kind, "", 0
        file, revision = record.text(11), record.text(12)
        storage = _storage(record.integer(13))
        digest, size = _digest(record.text(7)), record.integer(8)
        if not digest or size < 0:
            # Old servers kept neither: then the content itself has to tell.
            data = self._archives.read(file, revision, storage)
            if data is None:
                raise _NotUnderstood("neither digest nor archive")
            digest, size = self._content.add(data)
        self._put(
            "archives",
            *(digest, file, revision, storage, record.text(0), record.integer(1)),
        )
        return action, kind, digest, size

    def _have(self, record: Record) -> None:
        client_path = record.text(0)
        client = client_path[2:].partition("/")[0]
        synced = record.integer(4) if len(record.values) > 4 else 0
        self._put(
            "have", client, record.text(1), client_path, record.integer(2), synced
        )

    def _label_file(self, record: Record) -> None:
        self._put("label_files", record.text(0), record.text(1), record.integer(2))

    def _opened(self, record: Record) -> None:
        action = ACTIONS[record.integer(8)]
        number = 0 if action in ("add", "branch", "move/add") else record.integer(4)
        self._put(
            "opened",
            *(record.text(2), record.text(1), record.text(0), number, action),
            *(_type(record.integer(7)), record.text(3), record.integer(9)),
        )

    def _integration(self, record: Record) -> None:
        self._put(
            "integrations",
            *(record.text(0), record.text(1)),
            *(record.integer(index) for index in range(2, 6)),
            *(HOW[record.integer(6)], record.integer(7)),
        )

    # --- changes and counters

    def _change(self, record: Record) -> None:
        status = record.integer(5)
        number, path = record.integer(0), record.text(7)
        self._put(
            "changes",
            *(number, _STATUS[status & 3], record.text(3), record.text(2)),
            *(record.integer(4), "restricted" if status & 4 else "public"),
            *(record.text(6), path),
        )
        self._descriptions.setdefault(record.integer(1), []).append(number)

    def _description(self, record: Record) -> None:
        text = record.text(1)
        text = text if text.endswith("\n") else text + "\n"
        # Checkpoints have descriptions after the changes that own them.
        for number in self._descriptions.get(record.integer(0), ()):
            self._database.execute(
                "UPDATE changes SET description=? WHERE change=?", text, number
            )

    def _counter(self, record: Record) -> None:
        self._database.set_counter(record.text(0), record.text(1))

    def _setting(self, record: Record) -> None:
        server, name = record.text(0), record.text(1)
        full = name if server == "any" else f"{server}#{name}"
        self._put("settings", full, record.text(2))

    def _trigger(self, record: Record) -> None:
        words = [record.text(index) for index in range(1, 5)]
        self._triggers[record.integer(0)] = " ".join(
            f'"{word}"' if " " in word else word for word in words
        )

    def _save_triggers(self) -> None:
        if self._triggers == self._had_triggers:
            return
        lines = [text for _, text in sorted(self._triggers.items())]
        now = int(time.time())
        fields = json.dumps({"Triggers": lines})
        self._put("specs", "triggers", "triggers", fields, now, now)


def _type(bits: int) -> str:
    kind = filetypes.from_bits(bits)
    if kind is None:
        raise _NotUnderstood(f"file type {bits:#x}")
    return kind


def _storage(bits: int) -> str:
    storages = {0: archives.RCS, 1: archives.FULL, 3: archives.COMPRESSED}
    storage = storages.get(bits & 0xF)
    if storage is None:
        raise _NotUnderstood(f"storage {bits & 0xF:#x}")
    return storage


def _digest(text: str) -> str:
    """Return an MD5 as upper-case hex, from hex or base64; "" for none."""
    try:
        raw = bytes.fromhex(text) if len(text) == 32 else base64.b64decode(text + "==")
    except ValueError:
        return ""
    return raw.hex().upper() if len(raw) == 16 and any(raw) else ""
