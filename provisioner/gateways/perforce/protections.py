"""Whether a user may read everything that a view maps. No server is asked.

A view and a protections table are both lists of patterns, in which the last match
decides about a path. So the question is: is there a path that the view maps and the
protections do not let the user read? It is answered for every possible path, by
matching all patterns at once, character by character. At each point only the
characters that distinguish them are tried.

Source: p4 help protect, p4 help views; and
https://help.perforce.com/helix-core/server-apps/cmdref/current/Content/CmdRef/p4_protect.html
"""

from __future__ import annotations

import enum
import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from provisioner.gateways.perforce.paths import folded
from provisioner.gateways.perforce.specs import split_view_line

# Levels that grant the content of a file. `review` would too, but is for daemons.
READING = frozenset({"read", "=read", "open", "write", "admin", "super"})
# An exclusion of one of these rights leaves read access; any other may remove it.
_LEAVES_READ = frozenset({"=open", "=write", "=branch"})

LOOKS_ALLOWED = 20_000
_TOKEN = re.compile(r"\.\.\.|\*|%%[0-9]|(?s:.)")
_ANY, _ANY_BUT_SLASH = "...", "*"
_OTHER = "\x00"  # stands for any character that is in no pattern


@dataclass(frozen=True, kw_only=True)
class Protection:
    """One line of a protections table that applies to a user, directly or by group.

    `host` is "*" or the addresses it applies to; `path` is without its "-".
    """

    level: str
    host: str
    path: str
    is_exclusion: bool


@dataclass(frozen=True, kw_only=True)
class Protections:
    """The protections of one user, in the order of the table.

    `is_unprotected`: the table is empty, so everybody may do everything.
    `is_for_one_host`: only lines that apply to the requested host are included.
    """

    lines: tuple[Protection, ...]
    is_case_sensitive: bool
    is_unprotected: bool = False
    is_for_one_host: bool = False


@dataclass(frozen=True, kw_only=True)
class Unreadable:
    """`path` is the pattern to report; `example` a path of the view that it matches."""

    path: str
    example: str


class TooIntricate(Exception):
    """The patterns overlap in more ways than we examine."""


def find_unreadable(view: Iterable[str], protections: Protections) -> Unreadable | None:
    """Return a path that the view maps and the user may not read, None if none exists.

    When in doubt, a path counts as unreadable. A grant for certain hosts is ignored
    unless the host was part of the query; an exclusion never is. A path that another
    line of the view hides counts, too.

    Raises: TooIntricate, ViewRefused (not a view).
    """
    if protections.is_unprotected:
        return None
    fold = str if protections.is_case_sensitive else folded
    mapped = [split_view_line(line) for line in view if line.strip()]
    deciding = [
        line
        for line in protections.lines
        if counts(line, any_host=protections.is_for_one_host)
    ]
    search = _Search(
        view=[_Pattern(fold(m.depot), says=m.flag != "-") for m in mapped],
        rights=[_Pattern(fold(p.path), says=not p.is_exclusion) for p in deciding],
    )
    found = search.find()
    if found is None:
        return None
    example, view_line, right = found
    named = mapped[view_line].depot if right is None else deciding[right].path
    return Unreadable(path=named, example=example.replace(_OTHER, "x"))


def counts(line: Protection, *, any_host: bool) -> bool:
    """Return whether a line decides about reading: a grant for some hosts does not."""
    if line.is_exclusion:
        return line.level not in _LEAVES_READ
    return line.level in READING and (any_host or line.host == "*")


class _Pattern:
    """A pattern as an automaton. Its state is a set of positions, one bit each."""

    def __init__(self, text: str, *, says: bool) -> None:
        self.says = says
        self.tokens = [
            _ANY_BUT_SLASH if token.startswith("%%") else token
            for token in (found[0] for found in _TOKEN.finditer(text))
        ]
        self.end = 1 << len(self.tokens)
        self.keeps_any = self._bits(_ANY)
        self.keeps_but_slash = self._bits(_ANY_BUT_SLASH)
        self.wild = self.keeps_any | self.keeps_but_slash
        self.moves = {token: self._bits(token) for token in set(self.tokens)}
        # In this state it matches anything that follows.
        self.for_ever = self.end | self.end >> 1 if self.tokens[-1:] == [_ANY] else -1
        self.start = self._with_skipped(1)

    def _bits(self, token: str) -> int:
        return sum(1 << place for place, t in enumerate(self.tokens) if t == token)

    def _with_skipped(self, state: int) -> int:
        """Add the positions after wildcards, which may match nothing."""
        while True:
            more = state | ((state & self.wild) << 1)
            if more == state:
                return state
            state = more

    def after(self, state: int, character: str) -> int:
        """Return the state after another character, 0 if it cannot match any more."""
        after = (state & self.moves.get(character, 0)) << 1 | state & self.keeps_any
        if character != "/":
            after |= state & self.keeps_but_slash
        return self._with_skipped(after)

    def wants(self, state: int) -> Iterator[str]:
        """Yield the characters at the positions of a state."""
        while state:
            place = (state & -state).bit_length() - 1
            state &= state - 1
            if place < len(self.tokens) and self.tokens[place] not in (
                _ANY,
                _ANY_BUT_SLASH,
            ):
                yield self.tokens[place]

    def matches(self, state: int) -> bool:
        return bool(state & self.end)

    def matches_for_ever(self, state: int) -> bool:
        return self.for_ever > 0 and state & self.for_ever == self.for_ever


# Number and state of each pattern that may still match, in order.
_Alive = tuple[tuple[int, int], ...]


class _Shape(enum.Enum):
    """How much of a path //depot/name is complete; FILE is a whole one."""

    NOTHING = enum.auto()
    SLASH = enum.auto()
    SLASHES = enum.auto()
    DEPOT = enum.auto()
    BETWEEN = enum.auto()
    FILE = enum.auto()


# By the shape so far and whether a slash follows. No part of a path is empty.
_NEXT_SHAPE = {
    (_Shape.NOTHING, True): _Shape.SLASH,
    (_Shape.SLASH, True): _Shape.SLASHES,
    (_Shape.SLASHES, False): _Shape.DEPOT,
    (_Shape.DEPOT, False): _Shape.DEPOT,
    (_Shape.DEPOT, True): _Shape.BETWEEN,
    (_Shape.BETWEEN, False): _Shape.FILE,
    (_Shape.FILE, False): _Shape.FILE,
    (_Shape.FILE, True): _Shape.BETWEEN,
}


class _Search:
    """Examines every way in which the patterns can continue, shortest paths first."""

    def __init__(self, *, view: list[_Pattern], rights: list[_Pattern]) -> None:
        self.view = view
        self.rights = rights

    def find(self) -> tuple[str, int, int | None] | None:
        """Return a path, the view line that maps it, and the line that denies it.

        None for the last if no line grants it.

        Raises: TooIntricate.
        """
        began = (_started(self.view), _started(self.rights), _Shape.NOTHING)
        waiting = deque([("", began)])
        seen = {began}
        while waiting:
            path, (view, rights, shape) = waiting.popleft()
            mapped_by = _last_match(self.view, view)
            is_mapped = mapped_by is not None and self.view[mapped_by].says
            if mapped_by is not None and is_mapped and shape == _Shape.FILE:
                right = _last_match(self.rights, rights)
                if right is None or not self.rights[right].says:
                    return path, mapped_by, right
            for character in self._characters(view, rights):
                longer = _NEXT_SHAPE.get((shape, character == "/"))
                if longer is None:
                    continue  # not a path
                now = (
                    _advanced(self.view, view, character),
                    _advanced(self.rights, rights, character),
                    longer,
                )
                if now in seen or self._is_settled(now[0], now[1]):
                    continue
                if len(seen) >= LOOKS_ALLOWED:
                    raise TooIntricate
                seen.add(now)
                waiting.append((path + character, now))
        return None

    def _characters(self, view: _Alive, rights: _Alive) -> list[str]:
        found = {"/", _OTHER}
        for number, state in view:
            found.update(self.view[number].wants(state))
        for number, state in rights:
            found.update(self.rights[number].wants(state))
        return sorted(found)

    def _is_settled(self, view: _Alive, rights: _Alive) -> bool:
        """Return whether no path that begins like this can be mapped and unreadable."""
        if not any(self.view[number].says for number, _ in view):
            return True
        return bool(rights) and _all_say_yes_for_ever(self.rights, rights)


def _all_say_yes_for_ever(patterns: list[_Pattern], alive: _Alive) -> bool:
    first, state = alive[0]
    return patterns[first].matches_for_ever(state) and all(
        patterns[number].says for number, _ in alive
    )


def _started(patterns: list[_Pattern]) -> _Alive:
    return tuple((number, p.start) for number, p in enumerate(patterns))


def _advanced(patterns: list[_Pattern], alive: _Alive, character: str) -> _Alive:
    """Return the patterns left. One that matches anything drops all before it."""
    left: list[tuple[int, int]] = []
    for number, state in alive:
        pattern = patterns[number]
        after = pattern.after(state, character)
        if not after:
            continue
        if pattern.matches_for_ever(after):
            left = [(number, pattern.for_ever)]
        else:
            left.append((number, after))
    return tuple(left)


def _last_match(patterns: list[_Pattern], alive: _Alive) -> int | None:
    for number, state in reversed(alive):
        if patterns[number].matches(state):
            return number
    return None
