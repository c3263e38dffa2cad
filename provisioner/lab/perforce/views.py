"""Views: how depot paths and client paths map to each other.

A later line overrides an earlier one; `-` excludes, `+` overlays, `&` adds a second
client path.

Source: p4 help views.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from provisioner.lab.perforce import case, paths

_FLAGS = "-+&"


@dataclass(frozen=True, kw_only=True)
class ViewLine:
    """One mapping; `flag` is "", "-", "+" or "&"; both sides keep their escapes."""

    flag: str
    left: str
    right: str


def split_words(text: str) -> list[str]:
    """Return the words of a form's line, without quotes and `##` comments."""
    words = re.findall(r'"[^"]*"|[-+&]"[^"]*"|\S+', text)
    comment = next((i for i, word in enumerate(words) if word.startswith("##")), None)
    return [word.replace('"', "") for word in words[:comment]]


def parse_view_line(text: str) -> ViewLine | None:
    """Return the mapping in a line of a form; None if it is invalid."""
    words = split_words(text)
    if len(words) == 1:
        words.append(words[0].lstrip(_FLAGS))
    if len(words) != 2:
        return None
    left, right = words
    flag = left[0] if left[:1] and left[0] in _FLAGS else ""
    return ViewLine(flag=flag, left=left[len(flag) :], right=right)


def format_view_line(line: ViewLine) -> str:
    """Return a mapping as a form shows it, quoted if a side has a blank."""
    left = line.flag + line.left
    return " ".join(f'"{x}"' if re.search(r"\s", x) else x for x in (left, line.right))


Translate = Callable[[str], str | None]


class _Side:
    """One direction of one line: matches `source` and writes `target`."""

    def __init__(self, source: str, target: str) -> None:
        self.prefix = paths.literal_prefix(source)
        # What the prefix is replaced by, where that is all.
        self.moves_to: str | None = None
        fixed = target[:-3]
        if (
            source == self.prefix + "..."
            and target == fixed + "..."
            and not paths.has_wildcard(fixed)
        ):
            self.moves_to = fixed
            self.translate = _tail_translation(self.prefix, fixed)
        else:
            self.translate = _pattern_translation(source, target)


def _tail_translation(prefix: str, target: str) -> Translate:
    """Return the translation of `prefix...` to `target...`: nearly every line."""
    size = len(prefix)

    def translate(path: str) -> str | None:
        return target + path[size:] if path.startswith(prefix) else None

    def translate_any_case(path: str) -> str | None:
        return target + path[size:] if case.begins(path, prefix) else None

    return translate_any_case if case.is_ignored() else translate


def _pattern_translation(source: str, target: str) -> Translate:
    regex, matches = paths.pattern_regex(source), paths.pattern_matches
    expansion = _expansion(source, target)

    def translate(path: str) -> str | None:
        # The second one may take very long to find that nothing matches.
        match = regex.fullmatch(path) if matches(source, path) else None
        if match is None:
            return None
        return "".join(
            match[part] if isinstance(part, int) else part for part in expansion
        )

    return translate


def _expansion(source: str, target: str) -> list[str | int]:
    """Return the target as literals and numbers of the source's groups."""
    groups: dict[str, list[int]] = {}
    for number, wildcard in enumerate(paths.split_pattern(source)[1], start=1):
        groups.setdefault(wildcard, []).append(number)
    literals, wildcards = paths.split_pattern(target)
    parts: list[str | int] = [literals[0]]
    for wildcard, literal in zip(wildcards, literals[1:], strict=True):
        parts += (groups[wildcard].pop(0), literal)
    return parts


def is_well_formed(line: ViewLine) -> bool:
    """Return whether both sides have the same wildcards, and not too many."""
    left, right = (paths.split_pattern(side)[1] for side in (line.left, line.right))
    return (
        len(left) <= paths.MOST_WILDCARDS
        and sorted(left) == sorted(right)
        and all(
            left.count(wildcard) == 1 for wildcard in left if wildcard.startswith("%%")
        )
    )


class _Places:
    """Finds the prefixes that may overlap another, without comparing each pair."""

    def __init__(self, prefixes: Sequence[tuple[int, str]]) -> None:
        self._at: dict[str, list[int]] = {}
        for index, prefix in prefixes:
            self._at.setdefault(case.folded(prefix), []).append(index)
        self._sorted = sorted(self._at)

    def meeting(self, prefix: str) -> list[int]:
        """Return, in order, what begins with a prefix or is the start of it."""
        prefix = case.folded(prefix)
        found = [
            index
            for size in range(len(prefix))
            for index in self._at.get(prefix[:size], ())
        ]
        for other in self._sorted[bisect_left(self._sorted, prefix) :]:
            if not other.startswith(prefix):
                break
            found += self._at[other]
        return sorted(found)


class _Direction:
    """All lines of a view, read from one side to the other."""

    def __init__(self, lines: Sequence[ViewLine], *, reverse: bool) -> None:
        self._rules: list[tuple[str, _Side, list[_Side]]] = []
        sides = [
            _Side(*((line.right, line.left) if reverse else (line.left, line.right)))
            for line in lines
        ]
        targets = [
            _Side(*((line.left, line.right) if reverse else (line.right, line.left)))
            for line in lines
        ]
        places = _Places(
            [
                (index, target.prefix)
                for index, target in enumerate(targets)
                if lines[index].flag in ("", "-")
            ]
        )
        for index, line in enumerate(lines):
            # A later line that writes to the same place hides this one there.
            meeting = places.meeting(targets[index].prefix)
            later = [targets[other] for other in meeting if other > index]
            self._rules.append((line.flag, sides[index], later))
        self._rules.reverse()

        self.translate: Translate = self._latest if reverse else self._principal
        self.moved_tree: tuple[str, str] | None = None
        if len(self._rules) == 1 and not self._rules[0][0]:
            side = self._rules[0][1]
            self.translate = side.translate
            if side.moves_to is not None:
                self.moved_tree = side.prefix, side.moves_to

    def _latest(self, path: str) -> str | None:
        return next(self.translate_all(path), None)

    def _principal(self, path: str) -> str | None:
        """Return the client path of a path; of several, the one without `&`."""
        place = None
        for place in self.translate_all(path):  # noqa: B007 - the last one counts
            pass
        return place

    def translate_all(self, path: str) -> Iterator[str]:
        """Yield the client path of a path, and before it those of `&` lines."""
        for flag, side, later in self._rules:
            target = side.translate(path)
            if target is None:
                continue
            if flag == "-":
                return
            hidden = any(other.translate(target) is not None for other in later)
            if not hidden:
                yield target
            if flag != "&":
                return


def _may_meet(one: str, other: str) -> bool:
    return case.begins(one, other) or case.begins(other, one)


class View:
    """A compiled view. Instances never change and may be shared by threads."""

    def __init__(self, lines: Sequence[ViewLine]) -> None:
        self.lines = tuple(lines)
        self._to_client = _Direction(self.lines, reverse=False)
        self._to_depot = _Direction(self.lines, reverse=True)
        # Where a depot file lies in the client; None when it is not mapped. With `&`
        # lines a file has several places; this is the principal one.
        self.to_client: Translate = self._to_client.translate
        # The depot path of a client path; None when it is not mapped.
        self.to_depot: Translate = self._to_depot.translate

    def all_to_client(self, depot_path: str) -> list[str]:
        """Return every client path of a depot file."""
        return list(self._to_client.translate_all(depot_path))

    def precedence(self, depot_path: str) -> int:
        """Return which line maps a file: of two for one client path, the higher one
        wins.
        """
        for index in range(len(self.lines) - 1, -1, -1):
            if paths.pattern_matches(self.lines[index].left, depot_path):
                return index
        return -1

    @property
    def moved_tree(self) -> tuple[str, str] | None:
        """Return the depot and the client prefix of a view that only swaps the two."""
        return self._to_client.moved_tree

    @property
    def has_overlays(self) -> bool:
        """Return whether two depot files may have the same client path."""
        return any(line.flag == "+" for line in self.lines)

    def depot_prefixes(self, client_pattern: str) -> list[str]:
        """Return depot prefixes that cover every file of a client pattern."""
        wanted = paths.literal_prefix(client_pattern)
        prefixes = set()
        for line in self.lines:
            if line.flag == "-":
                continue
            left, right = (paths.literal_prefix(x) for x in (line.left, line.right))
            if not _may_meet(wanted, right):
                continue
            if case.begins(wanted, right) and line.left[len(left) :] == "...":
                prefixes.add(left + wanted[len(right) :])
            else:
                prefixes.add(left)
        return _without_covered(prefixes)


def _without_covered(prefixes: set[str]) -> list[str]:
    """Return the prefixes that no other one covers, sorted."""
    kept: list[str] = []
    for prefix in sorted(prefixes, key=case.folded):
        if not kept or not case.begins(prefix, kept[-1]):
            kept.append(prefix)
    return kept
