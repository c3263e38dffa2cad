"""Requests to the kernel."""

from __future__ import annotations

import errno
import struct
import termios
from pathlib import Path

import pytest

from provisioner.lab.ontap.dataplane.kernel import ioctl


def test_an_answer_is_written_into_the_argument(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"four")
    with (tmp_path / "file").open("rb") as file:
        asked = bytearray(4)

        ioctl(file.fileno(), termios.FIONREAD, asked)

    assert struct.unpack("i", asked) == (4,)


def test_what_the_kernel_refuses_says_why() -> None:
    with Path("/dev/null").open("rb") as file, pytest.raises(OSError) as refused:
        ioctl(file.fileno(), termios.TIOCGWINSZ, bytearray(8))

    assert refused.value.errno == errno.ENOTTY
