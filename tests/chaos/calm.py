"""Working in files that vanish for a moment when the lab starts again."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator


class Calm:
    """Many may work in files at a time, and the namespace goes away for none of them.

    A workspace's files vanish for a moment when the lab's ONTAP starts again, where NFS
    would make its owner wait: so people at work in them are waited for.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._at_work = 0
        self._is_away = False

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._is_away)
            self._at_work += 1
        try:
            yield
        finally:
            with self._changed:
                self._at_work -= 1
                self._changed.notify_all()

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._is_away)
            self._is_away = True
            self._changed.wait_for(lambda: self._at_work == 0)
        try:
            yield
        finally:
            with self._changed:
                self._is_away = False
                self._changed.notify_all()
