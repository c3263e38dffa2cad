"""The share that one may take while others wait or not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from provisioner.lib.shares import grown, halved

MOST = st.integers(1, 200)


def after(share: int, waits: list[bool], *, most: int) -> int:
    """Return the share after readings in which others waited, or did not."""
    for others_wait in waits:
        share = halved(share) if others_wait else grown(share, by=1, most=most)
    return share


@given(most=MOST, waits=st.lists(st.booleans(), max_size=60))
def test_it_stays_between_one_and_the_most(most: int, waits: list[bool]) -> None:
    assert 1 <= after(most, waits, most=most) <= most


@given(most=MOST, waits=st.lists(st.booleans(), max_size=60))
def test_it_shrinks_to_one_and_grows_back_in_the_end(
    most: int, waits: list[bool]
) -> None:
    share = after(most, waits, most=most)

    assert after(share, [True] * most.bit_length(), most=most) == 1
    assert after(share, [False] * most, most=most) == most


@given(
    most=MOST,
    one=st.integers(1, 200),
    other=st.integers(1, 200),
    waits=st.lists(st.booleans(), max_size=60),
)
def test_two_who_share_come_closer_and_never_drift_apart(
    most: int, one: int, other: int, waits: list[bool]
) -> None:
    one, other = min(one, most), min(other, most)
    apart = abs(after(one, waits, most=most) - after(other, waits, most=most))

    # Halves are rounded down, so one of the two may lose one more.
    assert apart <= max(abs(one - other), 1)


def test_time_that_runs_backwards_takes_nothing() -> None:
    assert grown(3, by=-2, most=4) == 3
