"""Figures of a run, computed from the server's log.

The log says when a command began and how long it took, and with `track` how long it
held each lock. Commands are told apart by the client that they name, so clocks of hosts
and of the server need not agree.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from provisioner.qualification.profiles import BROWSED
from provisioner.server_log.records import LoggedCommand, Record

# What the commit part of dm-CommitSubmit holds while others wait.
# Source: "write locks on several important db.* tables" of the branchsubmit benchmark;
# which ones, from logs of submits.
_COMMIT_TABLES = ("db.integed", "db.archmap", "db.storage", "meta/commit")
_REVISIONS = "db.rev"
_COMMIT, _SUBMIT = "dm-CommitSubmit", ("user-submit", "dm-SubmitChange")


@dataclass(frozen=True, kw_only=True)
class Commit:
    """A branch that was submitted, by the log. Seconds; None: the log does not say.

    `is_by_locks`: `commit` is the longest hold of a write lock. Otherwise it is how
    long dm-CommitSubmit took, which is more.
    """

    commit: float | None
    is_by_locks: bool
    elapsed: float | None
    compute: float | None
    exiting: float | None


@dataclass(kw_only=True)
class Browsing:
    """Commands of the children that began in each second."""

    commands: dict[str, Counter[int]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    children: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    paths: set[str] = field(default_factory=set)

    def add(self, command: LoggedCommand) -> None:
        name = command.command.removeprefix("user-")
        if name in BROWSED:
            self.commands[name][command.started] += 1
            self.children[command.started].add(command.client)
        if name == "filelog":
            self.paths.add(command.arguments)

    def join(self, other: Browsing) -> None:
        """Add what another host's children did."""
        for name, counted in other.commands.items():
            self.commands[name].update(counted)
        for second, names in other.children.items():
            self.children[second] |= names
        self.paths |= other.paths

    @property
    def concurrent(self) -> int:
        return max(map(len, self.children.values()), default=0)

    def busiest(self, name: str) -> tuple[int, int] | None:
        """Return the most of a command in a second, and that second."""
        counted = self.commands.get(name)
        if not counted:
            return None
        second, most = max(counted.items(), key=lambda each: (each[1], -each[0]))
        return most, second

    def sentences(self) -> list[str]:
        """Return what the vendor's benchmark says of its log, in its words.

        Source: "Results Analysis" of the browse benchmark.
        """
        said = []
        if most := self.concurrent:
            seconds = [at for at, who in self.children.items() if len(who) == most]
            said.append(
                f"{most} children ran concurrently from {_stamp(min(seconds))} to "
                f"{_stamp(max(seconds))}."
            )
        for name in BROWSED:
            if found := self.busiest(name):
                number, at = found
                said.append(
                    f"maximum {name}/second: {number} at {_stamp(at)} "
                    f"({len(self.children[at])} concurrent children)."
                )
        return said


@dataclass(kw_only=True)
class LogFigures:
    """What the log tells of the clients of a run, each by its beginning.

    A repeat's clients have a beginning of their own.
    """

    browsing: dict[str, Browsing] = field(default_factory=lambda: defaultdict(Browsing))
    commands: dict[str, list[LoggedCommand]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def take(self, records: Iterable[Record], *, tokens: Iterable[str]) -> None:
        """Take what is about these tokens."""
        known = tuple(tokens)
        for record in records:
            if not isinstance(record, LoggedCommand):
                continue
            token = next((t for t in known if record.client.startswith(f"{t}-")), None)
            if token is None:
                continue
            if record.command in (_COMMIT, *_SUBMIT, "user-integrate"):
                self.commands[token].append(record)
            else:
                self.browsing[token].add(record)

    def together(self, tokens: Iterable[str]) -> Browsing:
        """Return what the children of several hosts did in a repeat."""
        found = Browsing()
        for token in tokens:
            found.join(self.browsing.get(token, Browsing()))
        return found

    def commit(self, token: str) -> Commit | None:
        """Return what became of the submit of a repeat, None if the log has none."""
        found = self.commands.get(token, [])
        commits = [each for each in found if each.command == _COMMIT]
        if not commits:
            return None
        held = max(map(_held_seconds, commits))
        took = sum(each.lapse for each in commits)
        waited = max(
            (use.write_wait_ms / 1000 for c in commits for use in c.tables.values()),
            default=0.0,
        )
        submits = [each for each in found if each.command in (_COMMIT, *_SUBMIT)]
        computed = sum(
            each.compute_lapse for each in found if each.command == "user-integrate"
        )
        return Commit(
            commit=held or took or None,
            is_by_locks=held > 0,
            elapsed=sum(each.lapse for each in submits) or None,
            compute=computed or None,
            exiting=max(took - waited - held, 0.0) if held else None,
        )


def _held_seconds(command: LoggedCommand) -> float:
    """Return the longest hold of a write lock that a commit had."""
    return (
        max(
            (
                use.max_write_held_ms or use.write_held_ms
                for name, use in command.tables.items()
                if name in _COMMIT_TABLES or name.startswith(_REVISIONS)
            ),
            default=0,
        )
        / 1000
    )


def _stamp(second: int) -> str:
    return f"{dt.datetime.fromtimestamp(second, dt.UTC):%Y/%m/%d %H:%M:%S}"
