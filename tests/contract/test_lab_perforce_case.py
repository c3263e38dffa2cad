"""A lab server that ignores case, as the official client sees it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from P4 import P4Exception

from tests.support.checkpoints import TEXTS, checkpoint, put, restore
from tests.support.lab_perforce import (
    LabServer,
    Workspace,
    lab_server,
    refused,
    workspace,
)

pytestmark = pytest.mark.timeout(90, method="thread")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LabServer]:
    with lab_server(tmp_path, "-C1") as running:
        yield running


@pytest.fixture
def ws(server: LabServer, tmp_path: Path) -> Workspace:
    made = workspace(server, tmp_path, name="Ws", depot="//depot/Main")
    made.add({"Src/File.txt": "one\n", "src/b.TXT": "b\n", "Z": "z\n", "é": "e\n"})
    return made


def files(ws: Workspace, *arguments: str) -> list[str]:
    return [record["depotFile"] for record in ws.p4.run("files", *arguments)]


def test_files_are_one_and_stay_as_they_were_first_written(ws: Workspace) -> None:
    ws.p4.run("edit", "//DEPOT/main/SRC/file.TXT")
    ws.write("Src/File.txt", "two\n")
    ws.submit()

    assert files(ws, "//depot/MAIN/src/FILE.txt#2") == ["//depot/Main/Src/File.txt"]
    ws.write("src/FILE.txt", "three\n")
    assert ws.p4.run("add", "src/FILE.txt") == [
        "//depot/Main/Src/File.txt - can't add existing file"
    ]
    assert files(ws, "//depot/main/É", "//depot/main/é") == ["//depot/Main/é"]


def test_where_spells_a_path_as_the_view_does(ws: Workspace) -> None:
    # Source: git's t9821, "Clone path".
    [place] = ws.p4.run("where", "//depot/main/SRC/x")
    assert place["depotFile"] == "//depot/Main/SRC/x"


def test_their_order_has_no_case(ws: Workspace) -> None:
    ws.add({"a": "1\n", "B": "2\n"})

    names = [path.removeprefix("//depot/Main/") for path in files(ws, "//depot/...")]
    assert names == ["a", "B", "src/b.TXT", "Src/File.txt", "Z", "é"]


def test_what_is_deleted_comes_back_under_its_old_name(ws: Workspace) -> None:
    ws.p4.run("delete", "//depot/main/z")
    ws.submit()
    ws.write("z", "again\n")
    ws.p4.run("add", "z")
    ws.submit()

    assert files(ws, "//depot/main/z") == ["//depot/Main/Z"]


def test_directories_are_one(ws: Workspace) -> None:
    [found] = ws.p4.run("dirs", "//depot/MAIN/*")

    assert found["dir"].lower() == "//depot/main/src"


def test_views_map_whatever_their_case(
    server: LabServer, ws: Workspace, tmp_path: Path
) -> None:
    other = workspace(server, tmp_path, name="other", depot="//DEPOT/main/SRC")
    told = other.p4.run("sync")

    assert {record["depotFile"] for record in told} == {
        "//depot/Main/Src/File.txt",
        "//depot/Main/src/b.TXT",
    }
    assert sorted(other.tree()) == ["File.txt", "b.TXT"]
    spec = other.p4.fetch_client()
    spec["View"] = ["//depot/main/... //OTHER/...", "-//depot/MAIN/src/f* //Other/s/f*"]
    other.p4.save_client(spec)
    other.p4.run("sync")
    assert {name.lower() for name in other.tree()} == {"src/b.txt", "z", "é"}


def test_clients_and_users_are_one(server: LabServer, ws: Workspace) -> None:
    p4 = server.connect(client="WS", user="CloneYard")
    p4.cwd = str(ws.root)

    assert p4.fetch_client()["Root"] == str(ws.root)
    assert [record["client"] for record in p4.run("clients")] == ["Ws"]
    assert len(p4.run("have")) == 4
    p4.run("edit", "//ws/src/b.txt")
    [opened] = p4.run("opened")
    assert (opened["depotFile"], opened["user"], opened["client"]) == (
        "//depot/Main/src/b.TXT",
        "cloneyard",
        "Ws",
    )
    assert [user["User"] for user in p4.run("users", "CLONEYARD")] == ["cloneyard"]


def test_protections_are_about_both_cases(server: LabServer, ws: Workspace) -> None:
    admin = server.connect(client="x")
    protections = admin.fetch_protect()
    protections["Protections"] = [
        "super user CLONEYARD * //...",
        "read user Ann * //DEPOT/main/...",
        "read user Ann * -//depot/main/SRC/f*",
    ]
    admin.save_protect(protections)
    ann = server.person("ann")

    assert {record["depotFile"] for record in ann.run("files", "//depot/...")} == {
        "//depot/Main/src/b.TXT",
        "//depot/Main/Z",
        "//depot/Main/é",
    }


def test_reconcile_takes_a_file_of_another_case_for_the_one_it_has(
    ws: Workspace,
) -> None:
    (ws.root / "new").write_text("new\n")

    found = ws.p4.run("reconcile", "-n", "-a", "//ws/...")

    assert [record["depotFile"] for record in found] == ["//depot/Main/new"]


def test_a_root_keeps_to_its_case(tmp_path: Path) -> None:
    with lab_server(tmp_path, "-C1"):
        pass

    again = subprocess.run(
        [
            *(sys.executable, "-m", "provisioner.lab.perforce"),
            *("-r", str(tmp_path / "root")),
        ],
        capture_output=True,
        text=True,
        timeout=30,
        cwd=Path(__file__).parents[2],
    )

    assert again.returncode == 1
    assert "another way to compare names" in again.stderr


def test_a_checkpoint_of_such_a_server_is_one(tmp_path: Path) -> None:
    path, root = tmp_path / "checkpoint", tmp_path / "root"
    rows = checkpoint().replace("@//depot/Src/main.c@ 2 0", "@//DEPOT/src/MAIN.C@ 2 0")
    path.write_text(rows)
    put(root)
    done = restore(root, path, "-C1")
    assert done.returncode == 0, done.stderr
    with lab_server(tmp_path, "-C1") as server:
        p4 = server.connect(client="OLD", user="ANNA", password="apple")

        assert [r["depotFile"] for r in p4.run("files", "//DEPOT/src/main.c")] == [
            "//depot/Src/main.c"
        ]
        assert [r["haveRev"] for r in p4.run("have", "//depot/Src/main.c")] == ["2"]
        assert p4.run("print", "-q", "//depot/SRC/MAIN.c")[-1] == TEXTS[2].decode()


def test_other_servers_tell_names_apart(tmp_path: Path) -> None:
    with lab_server(tmp_path) as server:
        ws = workspace(server, tmp_path, name="ws", depot="//depot/Main")
        ws.add({"a": "1\n", "A": "2\n"})

        assert len(files(ws, "//depot/...")) == 2
        with pytest.raises(P4Exception):
            ws.p4.run("files", "//DEPOT/...")
        assert refused(server.connect(client="WS"), "have") == 6179
