"""Free ports: the wanted one if possible."""

from __future__ import annotations

import contextlib
import socket

TRIED_IN_A_ROW = 100
LAST_PORT = 65535


def listen(wanted: int, *, host: str = "127.0.0.1") -> socket.socket:
    """Listen at the wanted port or the next free one above it, and keep it.

    Raises: OSError if a hundred in a row are taken.
    """
    for port in range(wanted, min(wanted + TRIED_IN_A_ROW, LAST_PORT + 1)):
        with contextlib.suppress(OSError):
            return socket.create_server((host, port))
    raise OSError(f"No free port from {wanted} to {wanted + TRIED_IN_A_ROW - 1}.")
