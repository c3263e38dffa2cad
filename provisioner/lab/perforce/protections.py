"""Who may do what where: the protections table.

Source: p4 help protect. Of the levels, `review` and the `=mode` forms are not part of
the lab; neither are network masks.
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
    """One line of the table; an excluded line takes away what earlier ones gave."""

    level: str
    kind: str
    name: str
    host: str
    path: str
    is_excluded: bool
    number: int

    def concerns(self, user: str, *, groups: Collection[str], host: str | None) -> bool:
        """Tell if a line is about a user; `host` None means from wherever."""
        if host is not None and not self.is_for_host(host):
            return False
        if self.kind == "group":
            return any(paths.pattern_matches(self.name, group) for group in groups)
        return paths.pattern_matches(self.name, user)

    def is_for_host(self, host: str) -> bool:
        """Tell if a line is about who comes from an address."""
        return paths.pattern_matches(self.host, host)

    def covers(self, pattern: str) -> bool:
        """Tell if every file of a pattern falls under this line."""
        return paths.pattern_matches(self.path, pattern)

    def may_meet(self, pattern: str) -> bool:
        """Tell if some file of a pattern can fall under this line."""
        if not paths.has_wildcard(pattern):
            return paths.pattern_matches(self.path, pattern)
        mine, other = paths.literal_prefix(self.path), paths.literal_prefix(pattern)
        return case.begins(mine, other) or case.begins(other, mine)


def parse_protection(text: str, *, number: int) -> Protection | None:
    """Return the protection in a line of the form; None when the lab has no such."""
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
    """Return the highest level that any line gives, exclusions aside."""
    return max(
        (line.level for line in lines if not line.is_excluded),
        key=LEVELS.index,
        default="none",
    )


def highest_allowed(lines: list[Protection], pattern: str) -> str:
    """Return the highest level that some file of a pattern may be left with.

    An exclusion counts where it takes the whole pattern away.
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
        """Tell if a user has at least a level on a file."""
        return LEVELS.index(self.level(path)) >= LEVELS.index(level)

    def highest_anywhere(self) -> str:
        """Return the highest level on any file, exclusions aside."""
        return highest(self.protections)

    @property
    def reads_everything(self) -> bool:
        """Tell if no file is hidden, so that nothing needs to be looked at."""
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
