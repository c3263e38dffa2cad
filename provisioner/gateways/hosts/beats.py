"""Telling a child that its worker still has leave to act.

A child begins when its worker says so, with leave, after the child said that it is
ready. One that hears nothing for half of the time after which another worker may take
over ends itself (`processes.begin_with_leave`). So no child begins or goes on for a
worker that was stopped, or that was cut off from the database.
"""

from __future__ import annotations

import contextlib
import os
from typing import IO, Any

from provisioner.gateways.fence import require_leave
from provisioner.gateways.hosts.processes import BEAT, BEGIN, PUBLISH

_WORDS = {"ready": BEGIN, "complete": PUBLISH}


def answer(stdin: IO[bytes] | None, said: dict[str, Any] | None) -> None:
    """Tell a child that it may go on, and one that asks, to begin or to publish.

    One that has ended is told nothing.

    Raises: as require_leave.
    """
    require_leave()
    assert stdin is not None
    word = next((_WORDS[ask] for ask in said or () if ask in _WORDS), BEAT)
    with contextlib.suppress(BrokenPipeError):
        os.write(stdin.fileno(), word)
