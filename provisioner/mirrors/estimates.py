"""How long a transfer still takes, from values only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SHORTEST_SECONDS = 5
"""A transfer that has run for less says nothing of its rate."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A transfer that has ended, with more than 0 bytes and seconds."""

    bytes: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What a transfer still needs."""

    bytes_left: int
    seconds: float


def estimate(
    *,
    past: Sequence[Ended],
    whole_bytes: int | None,
    done_bytes: int = 0,
    running_seconds: float = 0,
    most_per_second: int | None = None,
) -> Estimate | None:
    """Return what is left of a transfer, or None where nothing is honest.

    ONTAP does not say how much it will transfer. It is taken to be the average of the
    mirror's `past` transfers, or all of the template's volume (`whole_bytes`, None:
    unknown) if there were none. Once that was transferred, nothing is known. The rate
    is that of this transfer, or of the past ones before it has run for long enough, at
    `most_per_second` (None: no limit).
    """
    past_bytes = sum(each.bytes for each in past)
    expected = past_bytes // len(past) if past else whole_bytes
    if expected is None or done_bytes >= expected:
        return None
    if done_bytes and running_seconds >= SHORTEST_SECONDS:
        rate = done_bytes / running_seconds
    elif past:
        rate = past_bytes / sum(each.seconds for each in past)
    else:
        return None
    if most_per_second is not None:
        rate = min(rate, most_per_second)
    left = expected - done_bytes
    return Estimate(bytes_left=left, seconds=left / rate)
