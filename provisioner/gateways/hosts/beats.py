"""Tell a child process that its worker still has permission to act.

A child starts its work only when its worker answers, with permission, that it may. One
that hears nothing for half of the time after which another worker may take over ends
itself (`processes.begin_with_leave`). So no child starts or continues for a worker that
was stopped, or cut off from the database.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import IO, Any

from provisioner.gateways.fence import also_when_given, require_leave
from provisioner.gateways.hosts.processes import (
    BEAT,
    BEGIN,
    NO,
    PUBLISH,
    YES,
)

_WORDS = {"ready": BEGIN, "complete": PUBLISH}


def answer(stdin: IO[bytes] | None, said: dict[str, Any] | None) -> None:
    """Tell a child that it may continue and, if it asks, that it may begin or publish.

    A child that has ended is told nothing.

    Raises: as require_leave.
    """
    require_leave()
    word = next((_WORDS[ask] for ask in said or () if ask in _WORDS), BEAT)
    _tell(stdin, word)


def answer_callback(stdin: IO[bytes] | None, *, result: bool) -> None:
    """Tell a child what its callback returned.

    Raises: as require_leave.
    """
    require_leave()
    _tell(stdin, YES if result else NO)


@contextlib.contextmanager
def passing_on(stdin: IO[bytes] | None) -> Iterator[None]:
    """Tell a child that it may continue whenever the block asks for permission.

    A callback that takes its time asks now and then, or its child ends itself.
    """
    with also_when_given(lambda: _tell(stdin, BEAT)):
        yield


def _tell(stdin: IO[bytes] | None, word: bytes) -> None:
    assert stdin is not None
    with contextlib.suppress(BrokenPipeError):
        os.write(stdin.fileno(), word)
