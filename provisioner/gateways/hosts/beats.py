"""Telling a child that its worker still has leave to act.

A child that hears nothing for half of the time after which another worker may take
over ends itself (`processes.end_without_beats`). So no child goes on for a worker that
was stopped, or that was cut off from the database.
"""

from __future__ import annotations

import contextlib
import os
from typing import IO

from provisioner.gateways.fence import require_leave
from provisioner.gateways.hosts.processes import BEAT


def beat(stdin: IO[bytes] | None, word: bytes = BEAT) -> None:
    """Tell a child that it may go on. One that has ended is told nothing.

    Raises: as require_leave.
    """
    require_leave()
    assert stdin is not None
    with contextlib.suppress(BrokenPipeError):
        os.write(stdin.fileno(), word)
