"""How full a volume is, and when somebody has to hear of it. No row is read."""

from __future__ import annotations

from dataclasses import dataclass

from provisioner.lib.sizes import size_text

WARNING_PERCENT, URGENT_PERCENT = 85, 95
BACK_PERCENT = 5
"""A level ends so far below its threshold, so that nobody is told again and again."""


@dataclass(frozen=True, kw_only=True)
class Fullness:
    """The space and inodes of a volume. Inodes are None where ONTAP reports none.

    `file_bytes` is its size without the snapshot reserve: there, files are full.
    `most_inodes` is what a volume of this size may have, not its current limit, which
    grows by itself.
    """

    used_bytes: int
    file_bytes: int
    size_bytes: int
    used_inodes: int | None
    most_inodes: int

    @property
    def percent(self) -> int:
        """The used share of what is nearer to its end, rounded down."""
        return max(self.percent_of_bytes, self.percent_of_inodes)

    @property
    def percent_of_bytes(self) -> int:
        return 100 * self.used_bytes // max(1, self.file_bytes)

    @property
    def percent_of_inodes(self) -> int:
        return 100 * (self.used_inodes or 0) // max(1, self.most_inodes)

    @property
    def is_short(self) -> bool:
        """Whether so little is left that somebody has to do something."""
        return self.percent >= WARNING_PERCENT

    @property
    def is_urgent(self) -> bool:
        return self.percent >= URGENT_PERCENT

    @property
    def title(self) -> str:
        return "Its volume is nearly full" if self.is_urgent else "Its volume fills up"

    @property
    def sentence(self) -> str:
        """How full it is, by what is nearer to its end."""
        if self.percent_of_inodes > self.percent_of_bytes:
            return (
                f"{self.percent_of_inodes} % full: {self.used_inodes:,} of the "
                f"{self.most_inodes:,} files that its size allows."
            )
        used, room = size_text(self.used_bytes), size_text(self.file_bytes)
        if self.file_bytes < self.size_bytes:
            return f"{self.percent_of_bytes} % full: {used} of the {room} for files."
        return f"{self.percent_of_bytes} % full: {used} of {room}."


def level_of(percent: int, *, last: int) -> int:
    """Return the threshold that holds now, 0 below all; `last` is the one before.

    It rises at a threshold, and falls BACK_PERCENT below it.
    """
    for threshold in (URGENT_PERCENT, WARNING_PERCENT):
        kept = threshold - BACK_PERCENT if last >= threshold else threshold
        if percent >= kept:
            return threshold
    return 0
