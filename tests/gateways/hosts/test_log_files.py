"""What steps print is for workers and the web server."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from provisioner.gateways.hosts.log_files import LogUnwritable, begin_log, close_logs


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_log_and_its_directory_are_closed_to_others(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "one.log"

    with begin_log(path) as log:
        log.write(b"secret\n")

    assert (mode_of(path.parent), mode_of(path)) == (0o750, 0o640)


def test_a_log_of_an_earlier_attempt_begins_anew_and_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "one.log"
    path.write_text("of an earlier attempt\n")
    path.chmod(0o666)

    begin_log(path).close()

    assert (path.read_bytes(), mode_of(path)) == (b"", 0o640)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("stays")
    (tmp_path / "one.log").symlink_to("precious")

    with pytest.raises(LogUnwritable, match="symbolic link"):
        begin_log(tmp_path / "one.log")

    assert (tmp_path / "precious").read_text() == "stays"


def test_logs_of_earlier_releases_are_closed(tmp_path: Path) -> None:
    directory = tmp_path / "logs"
    directory.mkdir(mode=0o755)
    (directory / "old.log").write_text("x")
    (directory / "old.log").chmod(0o644)
    (directory / "link.log").symlink_to("/etc/passwd")
    before = mode_of(Path("/etc/passwd"))

    for _ in range(2):
        close_logs(directory)

    assert (mode_of(directory), mode_of(directory / "old.log")) == (0o750, 0o640)
    assert mode_of(Path("/etc/passwd")) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_log_is_of_the_group_of_its_directory(tmp_path: Path) -> None:
    directory = tmp_path / "logs"
    directory.mkdir()
    os.chown(directory, -1, 20000)
    directory.chmod(0o2770)

    begin_log(directory / "one.log").close()

    assert (directory / "one.log").stat().st_gid == 20000
    assert mode_of(directory) == 0o2770
