"""Releases that run side by side: meant for an upgrade, and not for long."""

from __future__ import annotations

import datetime as dt
import time
from collections import defaultdict
from collections.abc import Sequence

from provisioner import __version__
from provisioner.engine.workers import AliveWorker
from provisioner.lib.times import duration_text

UPGRADED_WITHIN = dt.timedelta(hours=2)
# Of this process, as it began to answer.
_BEGAN_AT_SECONDS = time.monotonic()
_HERE = "this web server"


def side_by_side(workers: Sequence[AliveWorker]) -> str:
    """Return a sentence if several releases have long run side by side, else "".

    Those of the workers and of this process. A release began with its first process.
    """
    if not workers:
        return ""
    now = max(worker.heard_at for worker in workers)  # by the database's clock
    here = dt.timedelta(seconds=time.monotonic() - _BEGAN_AT_SECONDS)
    began_at = {__version__: now - here}
    places = defaultdict(set[str], {__version__: {_HERE}})
    for worker in workers:
        first = began_at.get(worker.release, worker.started_at)
        began_at[worker.release] = min(first, worker.started_at)
        places[worker.release].add(worker.host)
    for_long = now - max(began_at.values())
    if len(began_at) == 1 or for_long < UPGRADED_WITHIN:
        return ""
    each = " and ".join(
        f"{release or 'unknown'} ({', '.join(sorted(where))})"
        for release, where in sorted(places.items())
    )
    return (
        f"Releases {each} have run side by side for "
        f"{duration_text(for_long.total_seconds())}. Upgrade all, or go back with all."
    )
