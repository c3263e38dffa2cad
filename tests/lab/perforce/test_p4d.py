"""The lab's server behind p4d's command line: start, dump, replay, upgrade, lock."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from provisioner.demo import depot
from provisioner.lab.perforce.p4d import launcher

TABLES = ("user", "domain", "rev", "have", "change", "desc", "integed", "protect")


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Path]:
    yield launcher(tmp_path / "p4d")
    for number in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):  # it has ended
            words = Path("/proc", number, "cmdline").read_bytes().split(b"\0")
            if os.fsencode(tmp_path / "root") in words:
                os.kill(int(number), signal.SIGTERM)


def p4d(program: Path, *words: str | Path, code: int = 0) -> str:
    done = subprocess.run(
        [program, *words], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def started(program: Path, root: Path, *words: str) -> str:
    with socket.create_server(("127.0.0.1", 0)) as trial:
        port = f"127.0.0.1:{trial.getsockname()[1]}"
    p4d(program, "-r", root, "-p", port, "-J", "journal", "-L", "log", "-d", *words)
    return port


def connected(port: str, scratch: Path) -> Any:
    account = depot.DepotAccount(
        port=port, user="cloneyard", password="lab-perforce-admin"
    )
    return depot.connect(account, client="ws", scratch=scratch)


def rows_of(path: Path) -> dict[str, list[str]]:
    """Return the records of a checkpoint by table, without what a start changes."""
    found: dict[str, list[str]] = {}
    for line in path.read_text().splitlines():
        if line.startswith("@pv@"):
            found.setdefault(line.split("@")[3], []).append(line)
    return {table: sorted(found.get(f"db.{table}", [])) for table in TABLES}


def test_a_checkpoint_that_is_replayed_elsewhere_has_the_same_rows(
    program: Path, tmp_path: Path
) -> None:
    root, other, ws = tmp_path / "root", tmp_path / "other", tmp_path / "ws"
    for directory in (root, other, ws):
        directory.mkdir()
    p4 = connected(started(program, root), tmp_path)
    try:
        client = p4.fetch_client("ws")
        client["Root"], client["View"] = str(ws), ["//depot/... //ws/..."]
        p4.save_client(client)
        p4.client, p4.cwd = "ws", str(ws)
        for name in ("one.txt", "two @ sign.txt"):
            (ws / name).write_text(f"{name}\n")
            p4.run("add", "-f", str(ws / name))
            p4.run("submit", "-d", f"add {name}\nwith two lines")
        depot.create_p4_user(p4, user="anna", password="secret-of-anna")
        p4.run("integrate", "//depot/one.txt", "//depot/branch.txt")
        p4.run("submit", "-d", "branch it")
        p4.input = {"Triggers": ['t change-commit //... "echo hi"']}
        p4.run("triggers", "-i")
    finally:
        p4.disconnect()

    p4d(program, "-r", root, "-z", "-jd", tmp_path / "ckp.gz")
    p4d(program, "-r", other, "-z", "-jr", tmp_path / "ckp.gz")

    for each in (root, other):
        p4d(program, "-r", each, "-jd", tmp_path / f"{each.name}.ckp")
    before, after = rows_of(tmp_path / "root.ckp"), rows_of(tmp_path / "other.ckp")
    assert before == after
    assert all(before[table] for table in ("user", "rev", "have", "change", "integed"))
    said = p4d(program, "-r", other, "-z", "-jr", tmp_path / "ckp.gz", code=1)
    assert "not empty" in said


def test_rows_that_are_replayed_as_deletions_are_gone(
    program: Path, tmp_path: Path
) -> None:
    root, rows = tmp_path / "root", tmp_path / "rows"
    root.mkdir()
    p4 = connected(started(program, root), tmp_path)
    p4.input = {"Triggers": ['t change-commit //... "echo hi"', 'u auth-check a "x"']}
    p4.run("triggers", "-i")
    p4d(program, "-r", root, "-k", "db.trigger", "-jd", rows)
    assert rows.read_text().count("@pv@") == 2

    rows.write_text(rows.read_text().replace("@pv@", "@dv@"))
    p4d(program, "-r", root, "-jr", rows)

    assert p4.run("triggers", "-o") == [{}]
    p4.disconnect()


def test_settings_are_kept_for_any_server_and_for_one(
    program: Path, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    p4d(program, "-r", root, "-cset", "any#startup.1=pull -i 1")
    p4d(program, "-r", root, "-cset", "edge#P4TARGET=commit:1666")
    shown = p4d(program, "-r", root, "-cshow")
    assert "any: startup.1 = pull -i 1\n" in shown
    assert "edge: P4TARGET = commit:1666\n" in shown

    p4d(program, "-r", root, "-cunset", "edge#P4TARGET")

    assert "P4TARGET" not in p4d(program, "-r", root, "-cshow")
    assert p4d(program, "-r", root, "-xD", "here") == "Server ID: here\n"


def test_a_root_keeps_its_release_until_it_is_upgraded(
    program: Path, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    started(program, root)
    newer = launcher(tmp_path / "newer", release="2025.1")
    port = ("-p", "127.0.0.1:1", "-d")

    assert "-xu" in p4d(newer, "-r", root, *port, code=1)
    p4d(newer, "-r", root, "-xu")

    assert "newer than this server" in p4d(program, "-r", root, *port, code=1)
