"""The protections table: who may do what, where.

Source: p4 help protect. The level `review`, the `=mode` forms and network masks are not
part of the lab.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from provisioner.lab.perforce import case, paths
from provisioner.lab.perforce.database import Database
from provisioner.lab.perforce.specstore import find_spec
from provisioner.lab.perforce.views import split_words

LEVELS = ("none", "list", "read", "open", "write", "admin", "super")


@dataclass(frozen=True, kw_only=True)
class Protection:
    """One line of the table; an exclusion revokes what earlier lines granted."""

    level: str
    kind: str
    name: str
    host: str
    path: str
    is_excluded: bool
    number: int

    def concerns(self, user: str, *, groups: Collection[str], host: str | None) -> bool:
        """Return whether a line applies to a user; `host` None means from anywhere."""
        if host is not None and not self.is_for_host(host):
            return False
        if self.kind == "group":
            return any(paths.pattern_matches(self.name, group) for group in groups)
        return paths.pattern_matches(self.name, user)

    def is_for_host(self, host: str) -> bool:
        """Return whether a line applies to an address."""
        return paths.pattern_matches(self.host, host)

    def covers(self, pattern: str) -> bool:
        """Return whether this line applies to every file of a pattern."""
        return paths.pattern_matches(self.path, pattern)

    def may_meet(self, pattern: str) -> bool:
        """Return whether this line can apply to some file of a pattern."""
        if not paths.has_wildcard(pattern):
            return paths.pattern_matches(self.path, pattern)
        mine, other = paths.literal_prefix(self.path), paths.literal_prefix(pattern)
        return case.begins(mine, other) or case.begins(other, mine)


def parse_protection(text: str, *, number: int) -> Protection | None:
    """Return the protection in a line of the form; None if the lab lacks it."""
    words = split_words(text)
    if (
        len(words) != 5
        or words[0] not in LEVELS[1:]
        or words[1] not in ("user", "group")
    ):
        return None
    level, kind, name, host, path = words
    is_excluded = path.startswith("-")
    if "/" in host or not path.removeprefix("-").startswith("//"):
        return None
    return Protection(
        level=level,
        kind=kind,
        name=name,
        host=host,
        path=path.removeprefix("-"),
        is_excluded=is_excluded,
        number=number,
    )


# Before the first `p4 protect` everybody is a super user.
# Source: Helix Core administrator's guide, "When should protections be set?"
UNPROTECTED = ["super user * * //..."]


def default_lines(admin_user: str) -> list[str]:
    """Return the table that the first `p4 protect` offers."""
    return ["write user * * //...", f"super user {admin_user} * //..."]


def table_lines(database: Database, *, admin_user: str) -> list[str]:
    """Return the lines of the table as its form has them."""
    spec = find_spec(database, kind="protect", name="protect")
    return spec.lines("Protections") if spec else default_lines(admin_user)


def everybodys(lines: list[str]) -> list[Protection]:
    """Return the whole table."""
    parsed = (
        parse_protection(text, number=number)
        for number, text in enumerate(lines, start=1)
    )
    return [line for line in parsed if line is not None]


def of_group(lines: list[str], *, group: str) -> list[Protection]:
    """Return the lines about a group."""
    return [
        line
        for line in everybodys(lines)
        if line.kind == "group" and paths.pattern_matches(line.name, group)
    ]


def highest(lines: list[Protection]) -> str:
    """Return the highest level that any line grants, ignoring exclusions."""
    return max(
        (line.level for line in lines if not line.is_excluded),
        key=LEVELS.index,
        default="none",
    )


def highest_allowed(lines: list[Protection], pattern: str) -> str:
    """Return the highest level that some file of a pattern may have.

    An exclusion counts if it covers the whole pattern.
    """
    levels = ["none"]
    for line in lines:
        if line.is_excluded and line.covers(pattern):
            levels = ["none"]
        elif not line.is_excluded and line.may_meet(pattern):
            levels.append(line.level)
    return max(levels, key=LEVELS.index)


class Access:
    """What one user may do."""

    def __init__(
        self,
        lines: list[str],
        *,
        user: str,
        groups: Collection[str] = (),
        host: str | None = None,
    ) -> None:
        self.protections = [
            line
            for line in everybodys(lines)
            if line.concerns(user, groups=groups, host=host)
        ]

    def level(self, path: str) -> str:
        """Return the highest level on a file."""
        return self._highest(
            [p for p in self.protections if paths.pattern_matches(p.path, path)]
        )

    def allows(self, level: str, path: str) -> bool:
        """Return whether a user has at least a level on a file."""
        return LEVELS.index(self.level(path)) >= LEVELS.index(level)

    def highest_anywhere(self) -> str:
        """Return the highest level on any file, ignoring exclusions."""
        return highest(self.protections)

    @property
    def reads_everything(self) -> bool:
        """Return whether no file is hidden, so that nothing has to be checked."""
        return all(not p.is_excluded for p in self.protections) and any(
            p.path == "//..." and LEVELS.index(p.level) >= LEVELS.index("read")
            for p in self.protections
        )

    def _highest(self, matching: list[Protection]) -> str:
        highest = "none"
        for protection in matching:
            if protection.is_excluded:
                highest = "none"
            else:
                highest = max(highest, protection.level, key=LEVELS.index)
        return highest
