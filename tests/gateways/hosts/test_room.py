"""Telling what is used up, and that a command found none of it left."""

from __future__ import annotations

from pathlib import Path

import pytest

from provisioner.gateways.hosts.room import NO_SPACE, log_says


@pytest.mark.parametrize(
    ("printed", "says"),
    [
        (b"", False),
        (b"all is well\n", False),
        (b"cc: error: x.o: " + NO_SPACE.encode() + b"\n" + b"later\n" * 99_999, True),
        (b"\xff\0" + NO_SPACE.encode(), True),
    ],
)
def test_a_command_that_had_no_space_says_so_anywhere_in_its_log(
    printed: bytes, says: bool, tmp_path: Path
) -> None:
    (tmp_path / "log").write_bytes(printed)

    assert log_says(tmp_path / "log", NO_SPACE) is says
