"""When a snapshot that is being transferred is at a mirror's site."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.mirrors.estimates import Ended, Estimate, estimate

PAST = [Ended(bytes=900, seconds=10), Ended(bytes=1100, seconds=10)]


@pytest.mark.parametrize(
    ("known", "bytes_left", "seconds"),
    [
        ({"past": PAST}, 1000, 10),
        ({"past": PAST, "done_bytes": 600, "running_seconds": 60}, 400, 40),
        ({"past": PAST, "done_bytes": 600, "running_seconds": 4}, 400, 4),
        ({"past": PAST, "most_per_second": 50}, 1000, 20),
        ({"past": PAST, "most_per_second": 500}, 1000, 10),
        ({"whole_bytes": 5000, "done_bytes": 1000, "running_seconds": 10}, 4000, 40),
    ],
)
def test_what_is_left(known: dict[str, Any], bytes_left: int, seconds: float) -> None:
    found = estimate(**{"past": [], "whole_bytes": None, **known})

    assert found == Estimate(bytes_left=bytes_left, seconds=seconds)


@pytest.mark.parametrize(
    "known",
    [
        {},
        {"whole_bytes": 5000},  # no rate is known
        {"whole_bytes": 5000, "done_bytes": 1000, "running_seconds": 4},
        {"done_bytes": 1000, "running_seconds": 10},  # nor how much it will be
        {"past": PAST, "done_bytes": 1000, "running_seconds": 10},  # more than usual
    ],
)
def test_nothing_is_said_where_it_would_be_a_guess(known: dict[str, Any]) -> None:
    assert estimate(**{"past": [], "whole_bytes": None, **known}) is None
