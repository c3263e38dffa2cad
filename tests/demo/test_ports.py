"""A port that is taken is no reason not to start."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from provisioner.demo.ports import listen as listening


def listen(port: int = 0) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError:
        listener.close()
        raise
    listener.listen()
    return listener


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody listens at, with a free one after it."""
    with ExitStack() as stack:
        while True:
            port = stack.enter_context(listen()).getsockname()[1]
            try:
                listen(port + 1).close()
            except OSError:
                continue
            yield port
            return


def port_of(listener: socket.socket) -> int:
    with listener:
        return int(listener.getsockname()[1])


def test_a_free_port_is_taken_as_it_is(taken: int) -> None:
    assert port_of(listening(taken + 1)) == taken + 1


def test_a_port_just_left_is_free_again(taken: int) -> None:
    with (
        listen(taken + 1) as listener,
        socket.create_connection(listener.getsockname()) as client,
    ):
        accepted, _ = listener.accept()
        accepted.close()
        client.recv(1)

    assert port_of(listening(taken + 1)) == taken + 1


def test_no_free_port_is_reported() -> None:
    with pytest.raises(OSError, match="No free port from 70000"):
        listening(70000)  # beyond the last one


def test_a_port_is_taken_by_listening_at_it(taken: int) -> None:
    with listening(taken) as first, listening(taken) as second:
        ports = [each.getsockname()[1] for each in (first, second)]

    assert ports[0] == taken + 1
    assert ports[1] > taken + 1
