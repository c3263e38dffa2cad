"""Waiting polls often at first, seldom later, and ends."""

from __future__ import annotations

import itertools
import time

from provisioner.gateways.ontap.polling import pauses, wait_until


def test_pauses_grow_from_20_ms_to_2_seconds() -> None:
    first = list(itertools.islice(pauses(), 40))
    assert first[0] == 0.02
    assert first == sorted(first)
    assert first[-1] == 2.0


def test_an_end_is_seen_soon_after_it_came() -> None:
    waited = list(itertools.accumulate(itertools.islice(pauses(), 18)))
    for earlier, later in itertools.pairwise(waited):
        assert later - earlier <= 0.02 + 0.31 * earlier


def test_looking_stops_at_the_first_find() -> None:
    looks = iter([None, None, "found", "later"])
    assert wait_until(lambda: next(looks), limit_seconds=5) == "found"
    assert next(looks) == "later"


def test_looking_stops_when_the_time_is_over() -> None:
    started = time.monotonic()
    assert wait_until(lambda: None, limit_seconds=0.1) is None
    assert 0.1 <= time.monotonic() - started < 30


def test_no_time_is_time_for_one_look() -> None:
    assert wait_until(lambda: "there", limit_seconds=0) == "there"
