"""A restored checkpoint as the official client sees it."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.contract.lab_perforce import LabServer, lab_server, workspace
from tests.lab.perforce.test_rcs import archive

pytestmark = pytest.mark.timeout(90, method="thread")

TEXTS = [b"one\n", b"one\ntwo @ $Id$\n", b"three\n"]
BINARY = bytes(range(256))


def md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest().upper()


def rev(path: str, number: int, data: bytes, **given: Any) -> str:
    """Return a row of db.rev; a digest is stored in base64 since 2017.1."""
    digest = (
        base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest())
        .decode()
        .rstrip("=")
    )
    action, change = given.get("action", 0), given.get("change", number)
    size = len(data)
    kind, lbr = given.get("type", 0), given.get("lbr", f"1.{number}")
    return (
        f"@pv@ 9 @db.rev@ @{path}@ {number} {kind} {action} {change} 1000 900"
        f" {digest} {size} 0 0 @{path}@ @{lbr}@ {kind} "
    )


def checkpoint() -> str:
    keyword = TEXTS[1].replace(b"$Id$", b"$Id: //depot/Src/main.c#2 $")
    rows = [
        "@nx@ 0 1499683054 @43@ 2 0 0 0 0 @/root@ @journal@ @@ @@ @@ ",
        "@pv@ 1 @db.counters@ @change@ @3@ ",
        f"@pv@ 7 @db.user@ @anna@ @anna@@x@ @@ 10 20 @Anna@ @{md5(b'apple')}@"
        " 1 @@ 0 0 0 0 0 0 ",
        "@pv@ 7 @db.domain@ @depot@ 100 @@ @@ @@ @@ @@ 10 10 0 @Depot@ @@ @@ 0 ",
        "@pv@ 7 @db.domain@ @old@ 99 @@ @/old@ @@ @@ @anna@ 10 10 0 @x@ @@ @@ 0 ",
        "@pv@ 7 @db.domain@ @then@ 108 @@@2@ @@ @@ @@ @anna@ 10 10 0 @x@ @@ @@ 0 ",
        "@pv@ 1 @db.depot@ @depot@ 0 @@ @depot/...@ ",
        "@pv@ 1 @db.view@ @old@ 0 0 @//old/...@ @//depot/Src/...@ ",
        "@pv@ 1 @db.view@ @old@ 1 1 @//old/no/...@ @//depot/Src/no/...@ ",
        "@pv@ 3 @db.have@ @//old/main.c@ @//depot/Src/main.c@ 2 0 500 ",
        "@pv@ 5 @db.protect@ 0 0 @*@ @*@ 31 0 @//...@ @@ 10 ",
        "@pv@ 5 @db.protect@ 1 0 @anna@ @*@ 255 0 @//...@ @@ 10 ",
        rev("//depot/Src/main.c", 1, TEXTS[0]),
        rev("//depot/Src/main.c", 2, keyword, action=1, type=0x10),
        rev("//depot/Src/main.c", 3, TEXTS[2], action=1, type=0x20000),
        rev("//depot/Src/full.bin", 1, BINARY, type=0x10001),
        rev("//depot/Src/packed.bin", 1, BINARY + b"2", type=0x10003),
        rev("//depot/Src/link", 1, b"main.c", type=0x40000),
        rev("//depot/Src/gone", 1, b"").replace(" 0 0 1 ", " 0 2 1 ", 1),
        *(
            f"@pv@ 4 @db.change@ {n} {n} @old@ @anna@ 1000 1 @short@ @//...@ @@ @@ 0 "
            for n in (1, 2, 3)
        ),
        *(f"@pv@ 0 @db.desc@ {n} @Change {n}\nin two lines@ " for n in (1, 2, 3)),
        "@pv@ 0 @db.revcx@ 1 @//depot/Src/main.c@ 1 0 ",
        "@pv@ 2 @db.mystery@ 1 ",
    ]
    return "\n".join([*rows, "@ex@ 15727 1499683054", ""])


def put(root: Path) -> None:
    """Write the archives as a server that folds case keeps them."""
    folder = root / "depot" / "src"
    for name in ("full.bin,d", "packed.bin,d"):
        (folder / name).mkdir(parents=True)
    (folder / "main.c,v").write_bytes(archive(TEXTS))
    (folder / "link,v").write_bytes(archive([b"main.c"]))
    (folder / "full.bin,d" / "1.1").write_bytes(BINARY)
    (folder / "packed.bin,d" / "1.1.gz").write_bytes(gzip.compress(BINARY + b"2"))


def restore(root: Path, path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            *(sys.executable, "-m", "provisioner.lab.perforce"),
            *("-r", str(root), "-jr", str(path), *options),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=Path(__file__).parents[2],
    )


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
