"""Tell a child process that its worker still has permission to act.

A child starts its work only when its worker answers, with permission, that it may. One
that hears nothing for half of the time after which another worker may take over ends
itself (`processes.begin_with_leave`). So no child starts or continues for a worker that
was stopped, or cut off from the database.
"""

from __future__ import annotations

import contextlib
import os
from typing import IO, Any

from provisioner.gateways.fence import require_leave
from provisioner.gateways.hosts.processes import BEAT, BEGIN, PUBLISH

_WORDS = {"ready": BEGIN, "complete": PUBLISH}


def answer(stdin: IO[bytes] | None, said: dict[str, Any] | None) -> None:
    """Tell a child that it may continue and, if it asks, that it may begin or publish.

    A child that has ended is told nothing.

    Raises: as require_leave.
    """
    require_leave()
    assert stdin is not None
    word = next((_WORDS[ask] for ask in said or () if ask in _WORDS), BEAT)
    with contextlib.suppress(BrokenPipeError):
        os.write(stdin.fileno(), word)
