"""What the trials hold against their servers, and the ports of these."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import time
from pathlib import Path

import pytest

from provisioner.demo.processes import Child, ProcessFailed
from tests.chaos.ports import hold_port, number_of
from tests.chaos.servers import ENDS_AT_MOST, WITHIN_SECONDS, Servers


def ended(servers: Servers, *, seconds_apart: float) -> None:
    """Record that a worker ended as often as allowed, the last time just now."""
    now = time.monotonic()
    for before in reversed(range(ENDS_AT_MOST)):
        servers._ends["worker-1"].append(now - before * seconds_apart)


def test_what_ends_again_and_again_is_given_up(tmp_path: Path) -> None:
    servers = Servers(tmp_path)
    ended(servers, seconds_apart=WITHIN_SECONDS / ENDS_AT_MOST / 2)
    with pytest.raises(ProcessFailed, match="worker-1"):
        servers.check()


def test_what_ends_now_and_then_in_a_long_run_is_not(tmp_path: Path) -> None:
    servers = Servers(tmp_path)
    ended(servers, seconds_apart=WITHIN_SECONDS)
    servers.check()


def test_a_port_that_is_held_is_for_its_server_alone() -> None:
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(hold_port(31000))
        second = stack.enter_context(hold_port(number_of(first)))
        assert number_of(second) > number_of(first)

        for _ in ("started", "killed and started again"):
            with (
                socket.create_server(first.getsockname()),
                socket.create_connection(first.getsockname()),
            ):
                pass


def test_an_end_that_nobody_ordered_is_noted(tmp_path: Path) -> None:
    servers = Servers(tmp_path)
    said = "print('told nobody', flush=True)"
    servers.children["worker-1"] = Child(
        "worker-1", [sys.executable, "-c", said], log_dir=servers.log_dir
    )
    servers.locks["worker-1"] = threading.Lock()
    servers._watch.start()
    ends = time.monotonic() + WITHIN_SECONDS
    while not servers.ended:
        assert time.monotonic() < ends
        time.sleep(0.05)
    servers.stop()

    ended = next(iter(servers.ended))
    assert ended.startswith("worker-1: ")
    assert "told nobody" in ended
