"""A restored checkpoint as the official client sees it."""

from __future__ import annotations

import gzip
import json
import tarfile
from pathlib import Path

import pytest

from tests.support.checkpoints import (
    BINARY,
    TEXTS,
    checkpoint,
    put,
    restore,
    users,
)
from tests.support.lab_perforce import LabServer, lab_server, workspace

pytestmark = pytest.mark.timeout(90, method="thread")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "checkpoint.gz"
    path.write_bytes(gzip.compress(checkpoint().encode()))
    put(tmp_path / "root")
    return path


def test_rows_that_are_not_understood_are_named(tmp_path: Path, path: Path) -> None:
    done = restore(tmp_path / "root", path)

    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["restored"]["db.rev"] == 7
    assert said["redundant"] == {"db.revcx": 1}
    assert said["not_understood"] == {"db.mystery": 1}


def test_a_checkpoint_of_another_kind_of_server_is_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    path.write_text(users("AX", "aa"))

    done = restore(tmp_path / "root", path, "-C1", "--unicode")

    assert done.returncode == 0, done.stderr
    on_case, on_unicode = json.loads(done.stdout)["warnings"]
    assert "server on which case matters, and this one" in on_case
    assert "not in Unicode mode, and this one is" in on_unicode


def test_a_broken_checkpoint_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    path.write_text(checkpoint() + "@pv@ 0 @db.desc@ 9 @open")

    done = restore(tmp_path / "root", path)

    assert done.returncode == 1
    assert "middle of a record" in done.stderr
    with lab_server(tmp_path) as server:
        assert [u["User"] for u in server.connect(client="x").run("users")] == [
            "cloneyard"
        ]


def test_files_are_served_from_the_archives(tmp_path: Path, path: Path) -> None:
    assert restore(tmp_path / "root", path).returncode == 0
    with lab_server(tmp_path) as server:
        ws = workspace(server, tmp_path, name="ws", depot="//depot/Src")

        ws.p4.run("sync", "@1")
        assert ws.tree()["main.c"] == TEXTS[0]
        ws.p4.run("sync", "@then")
        assert ws.tree()["main.c"] == b"one\ntwo @ $Id: //depot/Src/main.c#2 $\n"
        ws.p4.run("sync")
        assert ws.tree() == {
            "full.bin": BINARY,
            "link": b"main.c",
            "main.c": TEXTS[2],
            "packed.bin": BINARY + b"2",
        }
        assert ws.root.joinpath("main.c").stat().st_mode & 0o111
        types = {f["depotFile"][12:]: f["type"] for f in ws.p4.run("files", "//...")}
        assert types["full.bin"] == "binary+F"
        assert types["main.c"] == "text+x"

        # Life goes on from there.
        assert ws.edit("main.c", "four\n") == "4"
        assert ws.p4.run("describe", "-s", "3")[0]["desc"] == "Change 3\nin two lines\n"


def test_people_and_clients_are_there(tmp_path: Path, path: Path) -> None:
    assert restore(tmp_path / "root", path).returncode == 0
    with lab_server(tmp_path) as server:
        _check_people(server)


def _check_people(server: LabServer) -> None:
    anna = server.connect(client="old", user="anna", password="apple")
    assert anna.run("protects", "-m")[0]["permMax"] == "super"
    assert anna.fetch_client()["View"] == [
        "//depot/Src/... //old/...",
        "-//depot/Src/no/... //old/no/...",
    ]
    assert [(h["depotFile"], h["haveRev"]) for h in anna.run("have")] == [
        ("//depot/Src/main.c", "2")
    ]


@pytest.mark.parametrize("kind", ["directory", "tar"])
def test_depots_are_unpacked_where_the_server_reads_them(
    kind: str, tmp_path: Path, path: Path
) -> None:
    depots = tmp_path / "elsewhere"
    (tmp_path / "root").rename(depots)
    if kind == "tar":
        with tarfile.open(tmp_path / "depots.tgz", "w:gz") as tar:
            tar.add(depots / "depot", arcname="depot")
        depots = tmp_path / "depots.tgz"

    done = restore(tmp_path / "root", path, "--depots", str(depots))

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["without_archive"] == 0
    with lab_server(tmp_path) as server:
        p4 = server.connect(client="any")
        assert p4.run("print", "-q", "//depot/Src/main.c#1") == [TEXTS[0].decode()]


def test_revisions_without_an_archive_are_counted(tmp_path: Path, path: Path) -> None:
    (tmp_path / "root" / "depot" / "src" / "link,v").unlink()

    done = restore(tmp_path / "root", path)

    assert json.loads(done.stdout)["without_archive"] == 1


def test_the_administrator_may_be_one_of_the_restored_people(
    tmp_path: Path, path: Path
) -> None:
    # Their password would be unknown to whoever reads the line of the server.
    assert restore(tmp_path / "root", path, "--admin-user", "anna").returncode == 0
    with lab_server(tmp_path, "--admin-user", "anna") as server:
        anna = server.connect(client="x", user="anna", password=server.password)
        assert anna.run("protects", "-m")[0]["permMax"] == "super"


def test_an_administrator_who_comes_after_the_restore_is_super(
    tmp_path: Path, path: Path
) -> None:
    assert restore(tmp_path / "root", path).returncode == 0
    with lab_server(tmp_path, "--admin-user", "late") as server:
        late = server.connect(client="x", user="late", password=server.password)
        assert late.run("protects", "-m")[0]["permMax"] == "super"
