"""Faults as settings: `<root>/faults.json`, read again whenever it changes.

    {"rules": [{"command": "sync", "latency_seconds": 0.5},
               {"command": "client", "drop": "after", "times": 1},
               {"command": "*", "error": "server is paused", "times": 3},
               {"command": "*", "max_commands": 10, "times": 3},
               {"command": "opened", "expire_tickets": true, "times": 1}]}

    {"held_locks": {"db.have": 5}}

    {"changed_fingerprint": true}

    {"replication": {"held": true}}  or  {"replication": {"lag_seconds": 5}}

The second one has somebody hold a lock for so many seconds after the file was written.
The third one has new connections to an `ssl:` port see another key.
The last ones have a replica bring nothing, or bring its upstream's changes so many
seconds later.

Every process that serves the root obeys; `times` counts across all of them and starts
again when the file is written again. The first rule that names the command and is not
used up applies.
"""

from __future__ import annotations

import json
import logging
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.state import ServerState

log = logging.getLogger("provisioner.lab.perforce")


class DropConnection(Exception):
    """A fault drops the connection here."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A fault of a command; the empty rule is "no fault"."""

    command: str = "*"
    latency_seconds: float = 0.0
    drop: str = ""
    error: str = ""
    # The server is said to run that many commands and to take no more.
    max_commands: int = 0
    # The logins of whoever asks are over before the command.
    expire_tickets: bool = False
    times: int | None = None

    def before(self) -> None:
        """Apply the faults that come before the command has any effect.

        Raises: DropConnection.
        """
        if self.latency_seconds:
            time.sleep(self.latency_seconds)
        if self.drop == "before":
            raise DropConnection

    def refuse(self) -> None:
        """Refuse the command if the rule says so.

        Raises: CommandError.
        """
        if self.error:
            raise CommandError(7192, command=self.error)
        if self.max_commands:
            raise CommandError(7805, maxCommands=self.max_commands)

    def after(self) -> None:
        """Apply the faults that come after the effect: a lost reply.

        Raises: DropConnection.
        """
        if self.drop == "after":
            raise DropConnection


_NOTHING = Rule()


def faults_path(root: Path) -> Path:
    return root / "faults.json"


def matching_rule(state: ServerState, *, command: str) -> Rule:
    """Return the rule for a command and count its use."""
    path = faults_path(state.config.root)
    try:
        written = path.stat().st_mtime_ns
        entries = json.loads(path.read_text()).get("rules", [])
        rules = [_rule(entry) for entry in entries]
    except FileNotFoundError:
        return _NOTHING
    except (ValueError, AttributeError, TypeError) as error:
        log.error("faults.json is ignored: %s", error)
        return _NOTHING
    for index, rule in enumerate(rules):
        if rule.command in ("*", command) and _take(
            state, rule, key=f"{written}:{index}"
        ):
            return rule
    return _NOTHING


def is_lock_held(root: Path, *, table: str) -> bool:
    """Return whether the settings hold a lock now."""
    return table in held_locks(root)


def held_locks(root: Path) -> list[str]:
    """Return the locks that the settings hold now."""
    path = faults_path(root)
    try:
        written = path.stat().st_mtime
        held = json.loads(path.read_text())["held_locks"]
        return [
            table
            for table, seconds in held.items()
            if time.time() < written + float(seconds)
        ]
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return []


def has_changed_fingerprint(root: Path) -> bool:
    """Return whether new connections are to see another key."""
    try:
        return bool(json.loads(faults_path(root).read_text())["changed_fingerprint"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return False


def replication_lag(root: Path) -> float | None:
    """Return how late changes of the upstream arrive, in seconds; None: not at all."""
    try:
        settings = json.loads(faults_path(root).read_text())["replication"]
        return None if settings.get("held") else float(settings["lag_seconds"])
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return 0.0


def _rule(entry: dict[str, Any]) -> Rule:
    return Rule(**entry)


def _take(state: ServerState, rule: Rule, *, key: str) -> bool:
    """Count one use of a rule; return False if none is left."""
    if rule.times is None:
        return True
    database = state.database
    with database.writing():
        row = database.execute(
            "SELECT hits FROM fault_hits WHERE rule=?", key
        ).fetchone()
        hits = int(row[0]) if row else 0
        if hits >= rule.times:
            return False
        database.execute(
            "INSERT INTO fault_hits VALUES (?,1) ON CONFLICT DO UPDATE SET hits=hits+1",
            key,
        )
    return True
