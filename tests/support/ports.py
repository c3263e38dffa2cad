"""Ports that nobody has yet."""

from __future__ import annotations

import socket
from contextlib import ExitStack


def free_ports(number: int) -> list[int]:
    with ExitStack() as stack:
        found = [stack.enter_context(socket.socket()) for _ in range(number)]
        for each in found:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in found]
