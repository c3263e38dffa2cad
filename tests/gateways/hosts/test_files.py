"""Writing into somebody else's directory, whatever he put there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from provisioner.gateways.errors import PermanentGatewayError
from provisioner.gateways.hosts.files import write_as_owner
from tests.support.file_trees import as_written

AS_ROOT = os.geteuid() == 0
UID = 20001 if AS_ROOT else os.getuid()
GID = 20002 if AS_ROOT else os.getgid()


def write(root: Path, *, name: str = ".p4config", content: str = "new\n") -> None:
    write_as_owner(root, name, content, uid=UID, gid=GID)


def test_the_file_belongs_to_the_owner(tmp_path: Path) -> None:
    write(tmp_path, content="P4CLIENT=ä\n")

    file = tmp_path / ".p4config"
    assert file.read_text(encoding="utf-8") == "P4CLIENT=ä\n"
    status = file.stat()
    assert (status.st_uid, status.st_gid) == (UID, GID)
    assert status.st_mode & 0o7777 == 0o644


def test_writing_twice_leaves_one_file(tmp_path: Path) -> None:
    write(tmp_path, content="old\n")
    write(tmp_path, content="new\n")

    assert [entry.name for entry in tmp_path.iterdir()] == [".p4config"]
    assert (tmp_path / ".p4config").read_text() == "new\n"


def test_what_is_written_already_stays_as_it_is(tmp_path: Path) -> None:
    """A comparison with a snapshot would name it as changed."""
    write(tmp_path)
    file = tmp_path / ".p4config"
    before = as_written(file)
    write(tmp_path)
    assert as_written(file) == before
    file.chmod(0o600)
    write(tmp_path)
    assert file.stat().st_mode & 0o7777 == 0o644


def make_symlink(name: Path, precious: Path) -> None:
    name.symlink_to(precious)


def make_hard_link(name: Path, precious: Path) -> None:
    name.hardlink_to(precious)


def make_dangling_link(name: Path, precious: Path) -> None:
    name.symlink_to(precious.with_name("not-there"))


def make_pipe(name: Path, precious: Path) -> None:
    os.mkfifo(name)


@pytest.mark.parametrize(
    "put", [make_symlink, make_hard_link, make_dangling_link, make_pipe]
)
def test_what_stood_under_the_name_is_replaced_and_never_followed(
    put: Callable[[Path, Path], None], tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("do not touch\n")
    root = tmp_path / "root"
    root.mkdir()
    put(root / ".p4config", precious)

    write(root)

    assert (root / ".p4config").read_text() == "new\n"
    assert not (root / ".p4config").is_symlink()
    assert precious.read_text() == "do not touch\n"
    assert not (tmp_path / "not-there").exists()
    assert precious.stat().st_uid == os.geteuid()


def test_a_directory_under_the_name_is_reported_and_nothing_is_left(
    tmp_path: Path,
) -> None:
    (tmp_path / ".p4config" / "inside").mkdir(parents=True)

    with pytest.raises(PermanentGatewayError, match=r"\.p4config could not be written"):
        write(tmp_path)

    assert [entry.name for entry in tmp_path.iterdir()] == [".p4config"]
    assert (tmp_path / ".p4config" / "inside").is_dir()


def test_a_link_in_place_of_the_root_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "root").symlink_to(elsewhere)

    with pytest.raises(PermanentGatewayError):
        write(tmp_path / "root")

    assert not list(elsewhere.iterdir())


def test_a_missing_root_is_reported(tmp_path: Path) -> None:
    with pytest.raises(PermanentGatewayError, match="No such file"):
        write(tmp_path / "missing")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/etc/passwd", "../x"])
def test_what_is_not_the_name_of_a_file_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Not a file name"):
        write(tmp_path, name=name)


@pytest.mark.parametrize(("uid", "gid"), [(0, GID), (UID, 0), (-1, GID)])
def test_nothing_is_written_for_root(uid: int, gid: int, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="uid or gid 0"):
        write_as_owner(tmp_path, "name", "text", uid=uid, gid=gid)

    assert not list(tmp_path.iterdir())
