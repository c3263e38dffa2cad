"""Ports for servers that are killed and started again, which nobody else gets."""

from __future__ import annotations

import contextlib
import socket

TRIED_IN_A_ROW = 1000


def hold_port(first: int) -> socket.socket:
    """Return a socket that holds a port, the first from `first` that nobody has.

    Who asks for the port like this, or for any port, does not get it as long as the
    socket is open. Servers may listen there all the same, one after the other, since
    they allow for addresses in use (SO_REUSEADDR) and this one does not listen.

    Raises: OSError where all are taken.
    """
    for port in range(first, first + TRIED_IN_A_ROW):
        held = socket.socket()
        with contextlib.suppress(OSError):
            held.bind(("127.0.0.1", port))
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            return held
        held.close()
    raise OSError(f"No free port from {first} on.")


def number_of(held: socket.socket) -> int:
    """Return the port that is held."""
    return int(held.getsockname()[1])
