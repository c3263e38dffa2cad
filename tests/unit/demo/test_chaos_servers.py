"""Killing a web server with its group, and one that has none of its own yet."""

from __future__ import annotations

import signal
import subprocess

import pytest

from provisioner.demo.chaos.servers import _kill_group


@pytest.mark.parametrize("has_group", [True, False])
def test_it_is_told_whether_there_was_a_group_to_kill(has_group: bool) -> None:
    with subprocess.Popen(["sleep", "60"], start_new_session=has_group) as child:
        assert _kill_group(child.pid) == has_group
        if not has_group:
            assert child.poll() is None
            child.kill()
        assert child.wait(timeout=20) == -signal.SIGKILL
