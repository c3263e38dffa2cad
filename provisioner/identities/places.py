"""Places for sign-ins that wait for a provider or a directory.

Nobody has signed in yet, and one that is silent holds a thread for seconds.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from provisioner.identities.refusals import TooManySignIns

SIGN_INS_AT_A_TIME = 4
_places = threading.BoundedSemaphore(SIGN_INS_AT_A_TIME)


@contextmanager
def place_to_ask() -> Iterator[None]:
    """Take one of this process's places for the duration of the block.

    Raises: TooManySignIns.
    """
    if not _places.acquire(blocking=False):
        raise TooManySignIns
    try:
        yield
    finally:
        _places.release()
