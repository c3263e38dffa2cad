"""How long commands waited for locks and held them, as the server reports it.

Source: p4 -Ztrack. The lines are those of `track` in the server's log. Their format is
not documented, so lines that we cannot read are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from provisioner.gateways.perforce.types import LockUse

_TOTAL = re.compile(
    r"\s*total lock wait\+held read/write "
    r"(-?\d+)ms\+(-?\d+)ms/(-?\d+)ms\+(-?\d+)ms\s*"
)


def lock_use(command: str, lines: Iterable[str]) -> LockUse | None:
    """Return the table for which a command waited longest, None if it locked none.

    Locks on single clients and the like are skipped, as nobody else needs them. The
    server may print a held time as negative; it then counts as 0.
    """
    found: LockUse | None = None
    table = ""
    for line in lines:
        text = line.removeprefix("---").removeprefix(" ")
        if not text.startswith(" "):
            # A heading: a table, a client, or the total.
            table = text if text.startswith("db.") else ""
        total = _TOTAL.fullmatch(text)
        if total is None or not table:
            continue
        read_wait, read_held, write_wait, write_held = (
            max(int(number), 0) for number in total.groups()
        )
        use = LockUse(
            command=command,
            table=table,
            waited_ms=read_wait + write_wait,
            held_ms=read_held + write_held,
        )
        if found is None or (use.waited_ms, use.held_ms) > (
            found.waited_ms,
            found.held_ms,
        ):
            found = use
    return found
