"""Delayed free: what is deleted leaves its path at once, its space later."""

from __future__ import annotations

import queue
import threading
import uuid
from pathlib import Path

from provisioner.lab.ontap.dataplane.plane import DataPlane


class Trash:
    """Removes trees in the background. Leftovers of a stopped lab go at the start."""

    def __init__(self, plane: DataPlane, place: Path) -> None:
        """Collect in the directory `place`, on the filesystem of the trees."""
        self._plane = plane
        self._place = place
        self._waiting: queue.SimpleQueue[Path | None] = queue.SimpleQueue()
        self._stopped = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name="ontap-trash", daemon=True
        )

    def start(self) -> None:
        """Start with what is left from before."""
        for path in sorted(self._place.iterdir()):
            self._waiting.put(path)
        self._thread.start()

    def put(self, path: Path) -> None:
        """Take a tree away; do nothing if there is none.

        If the plane removes trees of any size at once, it is gone afterwards.
        """
        if self._plane.method == "btrfs":
            self._plane.remove(path)
            return
        moved = self._place / str(uuid.uuid4())
        try:
            path.rename(moved)
        except FileNotFoundError:
            return
        self._waiting.put(moved)

    def stop(self) -> None:
        """Stop after the current tree; the rest goes at the next start."""
        self._stopped.set()
        self._waiting.put(None)
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        while not self._stopped.is_set():
            path = self._waiting.get()
            if path is not None:
                self._plane.remove(path)


_STOP_SECONDS = 5.0
