"""Places for answers that hold a thread of the web server for long.

Answers to `?wait=` need one, and so do downloads, as their clients may read slowly.
Other requests get the remaining threads.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from django.conf import settings

from provisioner.lib.refusals import ActionRefused


class TooManyDownloads(ActionRefused):
    """Too many downloads are running. Try again when one has ended."""

    code = "too_many_downloads"
    http_status = 429


class Places:
    """How many answers this process holds, in all and for each person."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held_for: Counter[int] = Counter()

    @contextmanager
    def one_for(self, person: int) -> Iterator[bool]:
        """Take a place for the duration of the block; False if none is left."""
        has_place = self._take(person)
        try:
            yield has_place
        finally:
            if has_place:
                self._give_back(person)

    def _take(self, person: int) -> bool:
        with self._lock:
            is_full = (
                self._held_for.total() >= settings.API_WAITS_PER_PROCESS
                or self._held_for[person] >= settings.API_WAITS_PER_PERSON
            )
            if not is_full:
                self._held_for[person] += 1
            return not is_full

    def _give_back(self, person: int) -> None:
        with self._lock:
            self._held_for[person] -= 1
            if not self._held_for[person]:
                del self._held_for[person]


PLACES = Places()


def place_for_download(person: int) -> ExitStack:
    """Take a place; closing the returned object gives it back.

    Raises: TooManyDownloads.
    """
    with ExitStack() as held:
        if not held.enter_context(PLACES.one_for(person)):
            raise TooManyDownloads
        return held.pop_all()
