from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioner.lib.pace import Pace

LOOKS = st.lists(
    st.tuples(st.floats(0, 1e4), st.floats(0, 1e9)), min_size=2, max_size=60
)


def test_a_steady_pace_says_when_it_will_be_done() -> None:
    pace = Pace()
    for second in range(5):
        pace.see(second * 10, now=100 + second)

    assert pace.per_second == 10
    assert pace.seconds_left(total=140) == 10


def test_an_old_pace_is_forgotten() -> None:
    pace = Pace(window_seconds=10)
    for second in range(100):
        pace.see(second * 1000, now=second)
    for second in range(100, 140):
        pace.see(99_000 + (second - 99), now=second)

    assert pace.per_second == pytest.approx(1)


def test_nothing_is_said_too_early_or_while_nothing_moves() -> None:
    pace = Pace()
    assert (pace.per_second, pace.seconds_left(total=1)) == (0, None)
    pace.see(0, now=0)
    pace.see(1, now=0.5)
    assert pace.per_second == 2
    assert pace.seconds_left(total=100) is None
    still = Pace()
    still.see(5, now=0)
    still.see(5, now=60)
    assert still.seconds_left(total=10) is None


@given(LOOKS, st.floats(0, 1e9))
def test_no_pace_and_no_time_is_ever_negative(
    looks: list[tuple[float, float]], total: float
) -> None:
    pace, now = Pace(), 0.0
    for pause, amount in looks:
        now += pause
        pace.see(amount, now=now)
        left = pace.seconds_left(total=total)

        assert pace.per_second >= 0
        assert left is None or left >= 0
