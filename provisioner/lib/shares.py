"""How much of something shared one may take: half when others wait, then one more.

Additive increase and multiplicative decrease: several who do this come to equal shares.

Source: Chiu and Jain, "Analysis of the Increase and Decrease Algorithms for Congestion
Avoidance in Computer Networks", 1989.
"""

from __future__ import annotations


def halved(share: int) -> int:
    """Return the share once others wait; somebody always goes on with at least 1."""
    return max(1, share // 2)


def grown(share: int, *, by: int, most: int) -> int:
    """Return the share after it grew by one, `by` times; never more than `most`."""
    return min(most, share + max(0, by))
