"""Which files of a view a user may not read.

Patterns alone tell that a view and an exclusion such as -//.../*.key overlap. Whether
such a file exists only the server knows, and it is asked only about the overlaps.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable

from provisioner.gateways.perforce.library import ViewMap
from provisioner.gateways.perforce.paths import folded
from provisioner.gateways.perforce.protections import (
    Protection,
    Protections,
    Unreadable,
    counts,
    find_unreadable,
)
from provisioner.gateways.perforce.specs import ViewLine, split_view_line

_WILDCARD = re.compile(r"\.\.\.|\*|%%[0-9]")
_POSITIONAL = re.compile(r"%%[0-9]")


class Reading:
    """What one user may read of one view, file by file."""

    def __init__(self, view: Iterable[str], protections: Protections) -> None:
        self._view_lines = tuple(view)
        self._protections = protections
        self._fold = str if protections.is_case_sensitive else folded
        self._view: list[ViewLine] = [
            split_view_line(line) for line in self._view_lines if line.strip()
        ]
        self._rights: list[Protection] = [
            line
            for line in protections.lines
            if counts(line, any_host=protections.is_for_one_host)
        ]
        self._mapped = [self._regex(line.depot) for line in self._view]
        self._decided = [self._regex(right.path) for right in self._rights]

    def never_granted(self) -> Unreadable | None:
        """Return a path of the view that no line grants, None if all are granted.

        Raises: TooIntricate, ViewRefused.
        """
        grants = tuple(line for line in self._rights if not line.is_exclusion)
        without_exclusions = dataclasses.replace(self._protections, lines=grants)
        return find_unreadable(self._view_lines, without_exclusions)

    def crossings(self) -> tuple[str, ...]:
        """Return depot patterns that match every file both granted and excluded.

        They may match other files, too.
        """
        depots = [self._fold(line.depot) for line in self._view if line.flag != "-"]
        view = ViewMap(f'"{depot}" "{depot}"' for depot in depots)
        found: list[str] = []
        for right in self._rights:
            if right.is_exclusion:
                found += ViewMap.of_path(self._fold(right.path)).left_joined(view)
        named = (_POSITIONAL.sub("*", path.strip('"')) for path in found)
        return tuple(dict.fromkeys(path for path in named if not path.startswith("-")))

    def forbidding(self, depot_file: str) -> str | None:
        """Return the pattern that denies the user a file of the view.

        None if the user may read the file, or the view does not map it.
        """
        path = self._fold(depot_file)
        mapped_by = _last_match(self._mapped, path)
        if mapped_by is None or self._view[mapped_by].flag == "-":
            return None
        decided_by = _last_match(self._decided, path)
        if decided_by is None:
            return depot_file
        right = self._rights[decided_by]
        return right.path if right.is_exclusion else None

    def _regex(self, pattern: str) -> re.Pattern[str]:
        pieces, at = [], 0
        folded = self._fold(pattern)
        for wildcard in _WILDCARD.finditer(folded):
            pieces.append(re.escape(folded[at : wildcard.start()]))
            pieces.append(".*" if wildcard[0] == "..." else "[^/]*")
            at = wildcard.end()
        return re.compile("".join([*pieces, re.escape(folded[at:])]), re.DOTALL)


def _last_match(patterns: list[re.Pattern[str]], path: str) -> int | None:
    """Return the number of the last matching pattern, which decides."""
    for number in reversed(range(len(patterns))):
        if patterns[number].fullmatch(path):
            return number
    return None
