"""Which change is tried next: few steps, and never a wrong answer."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioner.bisect.models import Verdict
from provisioner.bisect.search import Search, nearest, search, verdict_of

CHANGES = st.lists(st.integers(1, 100_000), min_size=1, max_size=300, unique=True).map(
    sorted
)


def play(
    changes: list[int], *, first_bad: int, skipped: set[int]
) -> tuple[Search, list[int]]:
    """Search as somebody does who knows; return the end, and what was tried."""
    verdicts: dict[int, str] = {}
    tried: list[int] = []
    while (step := search(changes, verdicts)).next_change is not None:
        change = step.next_change
        assert change in step.suspects[:-1]
        assert change not in verdicts
        assert first_bad in step.suspects
        tried.append(change)
        is_bad = change >= first_bad
        verdicts[change] = Verdict.BAD if is_bad else Verdict.GOOD
        if change in skipped:
            verdicts[change] = Verdict.SKIP
    return step, tried


@given(changes=CHANGES, data=st.data())
def test_the_first_bad_change_is_found_in_few_steps(
    changes: list[int], data: st.DataObject
) -> None:
    first_bad = data.draw(st.sampled_from(changes))

    end, tried = play(changes, first_bad=first_bad, skipped=set())

    assert end.first_bad == first_bad
    assert len(tried) <= math.ceil(math.log2(len(changes)))
    assert search(changes, {}).steps_left == math.ceil(math.log2(len(changes)))
    assert end.steps_left == 0


@given(changes=CHANGES, data=st.data())
def test_skipped_changes_leave_a_right_answer_or_say_what_is_left(
    changes: list[int], data: st.DataObject
) -> None:
    first_bad = data.draw(st.sampled_from(changes))
    skipped = data.draw(st.sets(st.sampled_from(changes)))

    end, tried = play(changes, first_bad=first_bad, skipped=skipped)

    assert first_bad in end.suspects
    assert set(end.suspects[:-1]) <= skipped
    assert len(tried) == len(set(tried)) < len(changes) + 1
    if end.first_bad is not None:
        assert end.first_bad == first_bad


def test_a_thousand_changes_take_ten_trials_at_most() -> None:
    changes = list(range(1, 1001))
    worst = max(
        len(play(changes, first_bad=first_bad, skipped=set())[1])
        for first_bad in changes
    )

    assert worst == 10


def test_of_one_change_nothing_is_tried() -> None:
    assert search([7], {}) == Search(suspects=(7,), next_change=None)


@dataclass
class Snapshot:
    change: int


@pytest.mark.parametrize(
    ("changes", "wanted"), [([10], 10), ([10, 90], 90), ([10, 60, 90], 60), ([], None)]
)
def test_the_nearest_snapshot_is_taken(changes: list[int], wanted: int | None) -> None:
    found = nearest(map(Snapshot, changes), change=55)

    assert (found.change if found else None) == wanted


@pytest.mark.parametrize(
    ("exit_code", "verdict"),
    [
        (0, "good"),
        (1, "bad"),
        (124, "bad"),
        (125, "skip"),
        (126, "bad"),
        (127, "bad"),
        (128, ""),
        (255, ""),
        (-9, ""),
    ],
)
def test_exit_codes_mean_what_they_mean_to_git(exit_code: int, verdict: str) -> None:
    assert verdict_of(exit_code) == verdict
