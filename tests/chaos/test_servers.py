"""When the trials give up on a process that does not stay up."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from provisioner.demo.processes import ProcessFailed
from tests.chaos.servers import ENDS_AT_MOST, WITHIN_SECONDS, Servers


def ended(servers: Servers, *, seconds_apart: float) -> None:
    """Have a worker end as often as is too much, the last time now."""
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
