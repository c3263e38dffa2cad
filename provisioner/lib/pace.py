"""Rates and remaining times."""

from __future__ import annotations

from collections import deque

# Long enough to even out one large file, short enough to follow a slower network.
WINDOW_SECONDS = 20.0
# A rate of less than this is a guess.
SURE_AFTER_SECONDS = 2.0


class Pace:
    """The rate of a growing amount over the last seconds, in units per second.

    The caller gives the time of each check, in seconds of any clock that does not go
    back.
    """

    def __init__(self, *, window_seconds: float = WINDOW_SECONDS) -> None:
        self._window_seconds = window_seconds
        self._seen: deque[tuple[float, float]] = deque()

    def see(self, amount: float, *, now: float) -> None:
        """Record how much is done now."""
        self._seen.append((now, amount))
        # The first check outside the window stays: the window is never half empty.
        while len(self._seen) > 2 and now - self._seen[1][0] >= self._window_seconds:
            self._seen.popleft()

    @property
    def per_second(self) -> float:
        """Units per second within the window, 0 before there are two readings."""
        if len(self._seen) < 2:
            return 0.0
        (began, first), (ended, last) = self._seen[0], self._seen[-1]
        return max(last - first, 0.0) / (ended - began) if ended > began else 0.0

    def seconds_left(self, *, total: float) -> float | None:
        """Seconds until the total is reached at this pace; None while unknown."""
        if len(self._seen) < 2:
            return None
        (began, _), (ended, done) = self._seen[0], self._seen[-1]
        if ended - began < SURE_AFTER_SECONDS or not self.per_second:
            return None
        return max(total - done, 0.0) / self.per_second
