"""Configurables: settings of the server that `p4 configure` changes while it runs.

Those that affect the lab, and some that it only keeps and reports.

Source: p4 help configurables; "Server security levels" and "Configurables for
security" of the P4 Server administrator's guide.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from provisioner.lab.perforce.database import Database

DEFAULTS = {
    # Where the have lists of readonly and partitioned clients lie; unset, there are
    # no such clients. A real server starts without it.
    "client.readonly.dir": "client.readonly",
    # Seconds that a command must have run before it can be terminated.
    "db.monitor.minruntime": "10",
    # From 2 on, planning a sync or flush takes no locks on the tables it reads.
    "db.peeking": "2",
    # So many seconds apart, at least, the access dates of clients move.
    "dm.domain.accessupdate": "300",
    # 1, 2: nobody becomes a user by a first command.
    "dm.user.noautocreate": "0",
    # 0: a super user sets first passwords, and nobody sets his own.
    "dm.user.setinitialpasswd": "1",
    # 1: administrators may look at the protections of others, too.
    "dm.protects.allow.admin": "0",
    # 1: `p4 monitor` shows the commands that run.
    "monitor": "0",
    # How many connections a sync may have files sent through, at most and by itself,
    # how many files and bytes each gets at a time, and how many it takes to begin.
    "net.parallel.max": "0",
    "net.parallel.threads": "0",
    "net.parallel.batch": "8",
    "net.parallel.batchsize": "512K",
    "net.parallel.min": "9",
    "net.parallel.minsize": "576K",
    # Programs that are let in nowhere; see programs.
    "rejectList": "",
    # From 1 on a password is needed, from 3 on a ticket; from 4 on the user `remote`,
    # who needs none, is let in no more. A lab server starts with what it was given.
    "security": "0",
    # 1: a sync or flush holds a shared lock on its client.
    "server.locks.sync": "0",
    # 1: the log says of each command which tables it used.
    "track": "0",
    # Every sync of a client whose name begins so moves no files, as with -k.
    "zerosyncPrefix": "",
    # Kept and reported, without effect here; the defaults are those of 2024.2.
    "filesys.bufsize": "64K",
    "net.autotune": "1",
    "net.maxwait": "0",
    "net.tcpsize": "512K",
    "server": "0",
    "server.maxcommands": "0",
}

# Kept and reported for any server or one, without effect in a server that runs.
_KEPT = re.compile(
    r"P4TARGET|P4AUTH|P4CHANGE|serviceUser|journalPrefix|server\.depot\.root|"
    r"startup\.\d+|serverlog\.file\.\d+|(db|lbr)\.replication|"
    r"(rpl|auth\.ldap|auth\.sso)\.[\w.]+"
)

_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}


def is_known(name: str) -> bool:
    """Return whether the lab knows a configurable, if only by name."""
    return name in DEFAULTS or _KEPT.fullmatch(name) is not None


def stored_name(text: str) -> str:
    """Return the name that a setting is stored under, of `[id#]name`."""
    server, _, name = text.rpartition("#")
    return name if server in ("", "any") else text


class Configurables:
    """Values: from `p4 configure`, else from `-v` at the start, else the default."""

    def __init__(self, database: Database, *, given: Mapping[str, str]) -> None:
        self._database = database
        self._given = given

    def text(self, name: str) -> str:
        return self.stored().get(name, self._given.get(name, DEFAULTS.get(name, "")))

    def number(self, name: str) -> int:
        """Return a value as a number; 0 if it is none."""
        value = self.text(name)
        unit = _UNITS.get(value[-1:].upper(), 1)
        digits = value if unit == 1 else value[:-1]
        return int(digits) * unit if digits.isdecimal() else 0

    def stored(self) -> dict[str, str]:
        """Return what `p4 configure` set, by name; `id#name` only for one server."""
        rows = self._database.rows("SELECT name, value FROM settings ORDER BY name")
        return {str(name): str(value) for name, value in rows}

    def set(self, name: str, value: str | None) -> None:
        """Set a value, or with None return to the previous one."""
        with self._database.writing():
            self._database.execute("DELETE FROM settings WHERE name=?", name)
            if value is not None:
                self._database.execute("INSERT INTO settings VALUES (?,?)", name, value)
