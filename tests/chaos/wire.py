"""The way from one worker to the database, which can be cut and mended.

What is sent meanwhile waits, as it does on a network that is down: nothing is refused
and nothing is reset.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path

SOCKET = ".s.PGSQL.5432"
PIECE_BYTES = 65536


class Wire:
    """A socket in `directory` that leads to the one of a PostgreSQL server.

    Source: libpq, "host": a directory holds a socket of this name.
    """

    def __init__(self, *, directory: Path, to: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._to = to
        self._whole = threading.Event()
        self._whole.set()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(directory / SOCKET))
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Let nothing through, either way."""
        self._whole.clear()

    def mend(self) -> None:
        """Let everything through, what waited first."""
        self._whole.set()

    def close(self) -> None:
        """Take no more connections."""
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                threading.Thread(target=self._join, args=[near], daemon=True).start()

    def _join(self, near: socket.socket) -> None:
        self._whole.wait()
        far = socket.socket(socket.AF_UNIX)
        try:
            far.connect(str(self._to))
        except OSError:  # the database is away: so is what leads to it
            near.close()
            far.close()
            return
        for source, target in ((near, far), (far, near)):
            threading.Thread(
                target=self._pump, args=[source, target], daemon=True
            ).start()

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(PIECE_BYTES):
                self._whole.wait()
                target.sendall(piece)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
