"""A command that runs in a tree, as other hosts see it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from provisioner.gateways.hosts.tree_lock import TreeLock


@contextmanager
def beating(lock: TreeLock) -> Iterator[None]:
    """Report all the time that the command lives."""
    is_over = threading.Event()

    def beat() -> None:
        while not is_over.wait(0.05):
            lock.beat()

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
