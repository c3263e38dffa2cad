"""Choose the next change to test, from the verdicts so far.

Without skipped changes a search among n takes no more than ⌈log2 n⌉ steps.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from provisioner.bisect.models import Verdict

# As git bisect run has it: 126 and 127 are the shell's, beyond are signals.
SKIP_CODE = 125
LAST_BAD_CODE = 127


@dataclass(frozen=True, kw_only=True)
class Search:
    """The state of a search. `suspects` may be the first bad change, oldest first.

    `next_change` is None at the end: one suspect is left, or all but the last were
    skipped.
    """

    suspects: tuple[int, ...]
    next_change: int | None

    @property
    def first_bad(self) -> int | None:
        return self.suspects[0] if len(self.suspects) == 1 else None

    @property
    def steps_left(self) -> int:
        """The maximum number of further steps if none is skipped."""
        if self.next_change is None:
            return 0
        return math.ceil(math.log2(len(self.suspects)))


def search(changes: Sequence[int], verdicts: Mapping[int, str]) -> Search:
    """Return the state of the search with these verdicts; the last change is bad.

    `changes` are in order, and there is at least one of them.
    """
    good = [change for change, v in verdicts.items() if v == Verdict.GOOD]
    bad = [change for change, v in verdicts.items() if v == Verdict.BAD]
    first = bisect_right(changes, max(good, default=0))
    last = bisect_left(changes, min(bad, default=changes[-1]))
    suspects = tuple(changes[first : last + 1])
    return Search(
        suspects=suspects,
        next_change=_nearest_to_middle(suspects, _skipped(verdicts)),
    )


def _skipped(verdicts: Mapping[int, str]) -> set[int]:
    return {change for change, verdict in verdicts.items() if verdict == Verdict.SKIP}


def _nearest_to_middle(suspects: Sequence[int], skipped: Collection[int]) -> int | None:
    """Return the change that best halves the suspects; the last one is bad."""
    untried = len(suspects) - 1
    middle = (untried - 1) // 2
    for distance in range(untried):
        for place in (middle - distance, middle + distance):
            if 0 <= place < untried and suspects[place] not in skipped:
                return suspects[place]
    return None


class Snapshot(Protocol):
    """What the search needs to know of a published snapshot."""

    @property
    def change(self) -> int: ...


AnySnapshot = TypeVar("AnySnapshot", bound=Snapshot)


def nearest(snapshots: Iterable[AnySnapshot], *, change: int) -> AnySnapshot | None:
    """Return the snapshot nearest to a change.

    The distance is measured in change numbers.
    """
    return min(
        snapshots, key=lambda g: (abs(g.change - change), -g.change), default=None
    )


def verdict_of(exit_code: int) -> str:
    """Return the verdict of an exit code, "" for one above 127 or a signal.

    Source: git bisect run, https://git-scm.com/docs/git-bisect.
    """
    if exit_code == 0:
        return Verdict.GOOD
    if exit_code == SKIP_CODE:
        return Verdict.SKIP
    return Verdict.BAD if 0 < exit_code <= LAST_BAD_CODE else ""
