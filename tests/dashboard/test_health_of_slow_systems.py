"""Far sides that answer late or not at all; the rest is in tests/web."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from provisioner.dashboard.health import (
    ANSWER_WITHIN_SECONDS,
    FarSides,
    HealthCheck,
    readiness,
)
from tests.support.factories import SiteFactory

pytestmark = pytest.mark.django_db


class SilentServer:
    """Accepts connections and says nothing."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.callers: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                caller, _ = self._listener.accept()
            except OSError:
                return
            self.callers.append(caller)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        for caller in self.callers:
            caller.close()


@pytest.fixture
def silent_server() -> Iterator[SilentServer]:
    server = SilentServer()
    yield server
    server.close()


def check_at(name: str) -> HealthCheck:
    return next(check for check in readiness().checks if check.name == name)


def test_a_silent_far_side_does_not_hold_the_probe(
    silent_server: SilentServer,
) -> None:
    SiteFactory.create(name="silent", ontap_port=silent_server.port)
    began_at = time.monotonic()
    check = check_at("ontap:silent")
    assert time.monotonic() - began_at < ANSWER_WITHIN_SECONDS + 2
    assert check.reason == "No answer within 4 seconds."
    assert not check.ok


def test_who_asks_while_a_check_is_under_way_gets_its_answer() -> None:
    may_end = threading.Event()
    looks: list[int] = []

    def look() -> None:
        looks.append(1)
        may_end.wait(10)

    far_sides = FarSides()
    first = far_sides.look("ontap:slow", look=look)
    second = far_sides.look("ontap:slow", look=look)
    may_end.set()
    assert second is first
    assert first.result(timeout=10).ok
    far_sides.look("ontap:slow", look=look).result(timeout=10)
    assert len(looks) == 2
