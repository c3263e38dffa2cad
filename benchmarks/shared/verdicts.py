"""What a benchmark says in the end: its figures, its limits, and what it missed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Limit:
    """Between what a figure has to be; None: any."""

    at_least: float | None = None
    at_most: float | None = None

    def holds(self, figure: float) -> bool:
        is_enough = self.at_least is None or figure >= self.at_least
        return is_enough and (self.at_most is None or figure <= self.at_most)


def exactly(figure: float) -> Limit:
    return Limit(at_least=figure, at_most=figure)


def say(
    benchmark: str,
    *,
    figures: Mapping[str, Any],
    limits: Mapping[str, Limit],
    load_before: float,
) -> None:
    """Print one JSON object; `missed` names the figures that are not as they should be.

    `load` is that before and after: the machine has to be quiet for what is by the
    clock, and the benchmark itself is a load.
    """
    said = {
        "benchmark": benchmark,
        "figures": dict(figures),
        "limits": {
            name: {
                word: bound
                for word, bound in (
                    ("at_least", limit.at_least),
                    ("at_most", limit.at_most),
                )
                if bound is not None
            }
            for name, limit in limits.items()
        },
        "missed": [n for n, limit in limits.items() if not limit.holds(figures[n])],
        "load": {"before": load_before, "after": load()},
    }
    print(json.dumps(said), flush=True)


def load() -> float:
    """Return how busy the machine was within the last minute."""
    return round(os.getloadavg()[0], 1)
