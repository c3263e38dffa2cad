"""The part of a restore that makes forms: rows of several tables become one spec."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable

from provisioner.lab.perforce.clients import DEFAULT_OPTIONS, DEFAULT_SUBMIT_OPTIONS
from provisioner.lab.perforce.database import Database
from provisioner.lab.perforce.journal import Record
from provisioner.lab.perforce.specs import Fields
from provisioner.lab.perforce.views import ViewLine, format_view_line

MAP_FLAGS = {0: "", 1: "-", 2: "+", 5: "&"}
_DOMAIN_KINDS = {99: "client", 100: "depot", 108: "label", 115: "stream"}
DEPOT_TYPES = (
    *("local", "remote", "spec", "stream", "archive", "unload", "tangent", "graph"),
)
STREAM_TYPES = ("mainline", "release", "development", "virtual", "task")
USER_TYPES = {0: "standard", 1: "service", 2: "operator"}
# The level each number of db.protect's perm grants: a level has those below it.
LEVELS = {1: "list", 3: "read", 15: "open", 31: "write", 191: "admin", 255: "super"}
_LIMITS = ("MaxResults", "MaxScanRows", "MaxLockTime")


class RestoredSpecs:
    """Collects rows and saves the forms that they make up."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._specs: dict[tuple[str, str], tuple[Fields, int, int]] = {}
        self._views: dict[str, dict[int, tuple[str, str, str]]] = {}
        self._protections: dict[int, str] = {}
        self._unknown = Counter[str]()
        self.handlers: dict[str, Callable[[Record], None]] = {
            "db.domain": self._domain,
            "db.view": self._view,
            "db.depot": self._depot,
            "db.stream": self._stream,
            "db.template": self._stream_path,
            "db.user": self._user,
            "db.group": self._group,
            "db.protect": self._protection,
        }

    def save(self) -> Counter[str]:
        """Save what was collected; return what was left out, by table."""
        for name, lines in self._views.items():
            self._give_view(name, [lines[number] for number in sorted(lines)])
        if self._protections:
            table = [text for _, text in sorted(self._protections.items())]
            self._specs["protect", "protect"] = ({"Protections": table}, 0, 0)
        for (kind, name), (fields, updated, accessed) in self._specs.items():
            self._database.execute(
                "INSERT OR REPLACE INTO specs VALUES (?,?,?,?,?)",
                *(kind, name, json.dumps(fields), updated, accessed),
            )
        return self._unknown

    def _fields(self, kind: str, name: str) -> Fields:
        """Return the fields collected for a spec; its rows come in any order."""
        return self._specs.setdefault((kind, name), ({}, 0, 0))[0]

    # --- domains: clients, depots, labels, streams

    def _domain(self, record: Record) -> None:
        name, kind = record.text(0), _DOMAIN_KINDS[record.integer(1)]
        fields = self._fields(kind, name)
        self._specs[kind, name] = (fields, record.integer(7), record.integer(8))
        description = record.text(10).rstrip("\n") + "\n"
        fields |= {kind.capitalize(): name, "Description": description}
        if record.text(6):
            fields["Owner"] = record.text(6)
        if kind == "client":
            self._client(record, fields)
        elif kind == "label":
            fields["Options"] = "unlocked noautoreload"
            if record.text(2):
                fields["Revision"] = record.text(2)

    def _client(self, record: Record, fields: Fields) -> None:
        fields |= {
            **({"Host": record.text(2)} if record.text(2) else {}),
            "Root": record.text(3),
            "Options": DEFAULT_OPTIONS,
            "SubmitOptions": DEFAULT_SUBMIT_OPTIONS,
            "LineEnd": "local",
        }
        roots = [record.text(index) for index in (4, 5) if record.text(index)]
        if roots:
            fields["AltRoots"] = roots
        if record.text(11):
            fields["Stream"] = record.text(11)
        if record.integer(9):
            self._unknown[f"db.domain (options {record.integer(9):#x})"] += 1

    def _view(self, record: Record) -> None:
        flag = MAP_FLAGS[record.integer(2)]
        lines = self._views.setdefault(record.text(0), {})
        lines[record.integer(1)] = (flag, record.text(4), record.text(3))

    def _give_view(self, name: str, lines: list[tuple[str, str, str]]) -> None:
        if ("client", name) in self._specs:
            self._fields("client", name)["View"] = [
                format_view_line(ViewLine(flag=flag, left=left, right=right))
                for flag, left, right in lines
            ]
        elif ("label", name) in self._specs:
            self._fields("label", name)["View"] = [left for _, left, _ in lines]
        else:
            self._unknown["db.view (of an unknown domain)"] += len(lines)

    def _depot(self, record: Record) -> None:
        fields = self._fields("depot", record.text(0))
        fields |= {
            "Depot": record.text(0),
            "Type": DEPOT_TYPES[record.integer(1)],
            "Map": record.text(3),
        }

    def _stream(self, record: Record) -> None:
        fields = self._fields("stream", record.text(0))
        fields |= {
            "Stream": record.text(0),
            "Parent": record.text(1),
            "Name": record.text(2),
            "Type": STREAM_TYPES[record.integer(3)],
            "Options": "allsubmit unlocked toparent fromparent mergedown",
        }

    def _stream_path(self, record: Record) -> None:
        if record.integer(4) or record.integer(5):
            raise ValueError("another path type than share")
        paths = self._fields("stream", record.text(0)).setdefault("Paths", [])
        assert isinstance(paths, list)
        paths.append(f"share {record.text(6)}")

    # --- people

    def _user(self, record: Record) -> None:
        name = record.text(0)
        fields = self._fields("user", name)
        self._specs["user", name] = (fields, record.integer(3), record.integer(4))
        kind = int(record.text(10) or 0)
        fields |= {
            "User": name,
            "Email": record.text(1),
            "FullName": record.text(5) or name,
            "Type": USER_TYPES[kind],
            "AuthMethod": "perforce",
        }
        if record.text(6):
            self._database.execute(
                "INSERT OR REPLACE INTO passwords VALUES (?,?)", name, record.text(6)
            )

    def _group(self, record: Record) -> None:
        name, role = record.text(1), record.integer(2)
        fields = self._fields("group", name)
        fields["Group"] = name
        for tag, index in zip(_LIMITS, (3, 4, 5), strict=True):
            fields[tag] = _limit(record.integer(index))
        fields["Timeout"] = _limit(record.integer(6 if record.version < 8 else 7))
        tag = ("Users", "Subgroups", "Owners")[role]
        members = fields.setdefault(tag, [])
        assert isinstance(members, list)
        members.append(record.text(0))

    def _protection(self, record: Record) -> None:
        kind = "group" if record.integer(1) else "user"
        flag = MAP_FLAGS[record.integer(5)]
        if record.text(7):
            raise ValueError("a sub-path")
        path = flag + record.text(6)
        path = f'"{path}"' if " " in path else path
        self._protections[record.integer(0)] = (
            f"{LEVELS[record.integer(4)]} {kind} {record.text(2)} {record.text(3)}"
            f" {path}"
        )


def _limit(number: int) -> str:
    """Return a limit as its form shows it."""
    return {0: "unset", -1: "unlimited", -2: "unlimited"}.get(number, str(number))
