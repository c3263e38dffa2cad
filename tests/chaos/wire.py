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
        self.is_used = False
        self._there, self._back = threading.Event(), threading.Event()
        self.mend()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(directory / SOCKET))
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Let nothing through, either way."""
        self._there.clear()
        self._back.clear()

    def cut_answers(self) -> None:
        """Let questions through, and nothing back."""
        self._back.clear()

    def mend(self) -> None:
        """Let everything through, what waited first."""
        self._there.set()
        self._back.set()

    def close(self) -> None:
        """Take no more connections."""
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                self.is_used = True
                threading.Thread(target=self._join, args=[near], daemon=True).start()

    def _join(self, near: socket.socket) -> None:
        self._there.wait()
        with near, socket.socket(socket.AF_UNIX) as far:
            try:
                far.connect(str(self._to))
            except OSError:  # the database is away: so is what leads to it
                return
            back = threading.Thread(
                target=_pump, args=[far, near, self._back], daemon=True
            )
            back.start()
            _pump(near, far, self._there)
            back.join()


def _pump(source: socket.socket, target: socket.socket, way: threading.Event) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(PIECE_BYTES):
            way.wait()
            target.sendall(piece)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
