"""Syncs whose files the client fetches through several connections of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.lab_perforce import (
    LabServer,
    Workspace,
    lab_server,
    refused,
    workspace,
)

pytestmark = pytest.mark.timeout(90, method="thread")

COUNT = 60
ASK = "--parallel=threads=3,batch=5,min=2,minsize=1"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    options = ("-v", "net.parallel.max=10")
    with lab_server(tmp_path_factory.mktemp("perforce"), *options) as running:
        yield running


@pytest.fixture(scope="module")
def filled(
    server: LabServer, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, bytes | str]:
    """Submit files, one of them much larger than a batch; return what they are."""
    files: dict[str, bytes | str] = {
        f"d{n % 7}/f{n:03}": f"{n}\n".encode() * (n + 1) for n in range(COUNT)
    }
    files["large"] = bytes(range(256)) * 9000
    made = workspace(
        server, tmp_path_factory.mktemp("source"), name="source", depot="//depot/p"
    )
    made.add(dict(files))
    return files


@pytest.fixture
def ws(server: LabServer, tmp_path: Path, filled: dict[str, bytes]) -> Workspace:
    return workspace(server, tmp_path, name=tmp_path.name, depot="//depot/p")


def transmits(server: LabServer, client: str) -> int:
    """Return how many connections fetched files for a client."""
    log = (server.root.parent / "log").read_text()
    return sum(
        "'user-transmit" in line and f"@{client} " in line for line in log.splitlines()
    )


def test_files_come_through_connections_of_the_client(
    ws: Workspace, server: LabServer, filled: dict[str, bytes]
) -> None:
    told = ws.p4.run("sync", ASK)

    assert ws.tree() == filled
    assert transmits(server, ws.name) == 3
    assert {file["action"] for file in told} == {"added"}
    assert len(told) == len(filled)
    assert told[0]["totalFileCount"] == str(len(filled))
    assert len(ws.p4.run("have")) == len(filled)
    assert ws.p4.run("reconcile", "-n") == []
    assert ws.p4.run("sync", ASK) == []


def test_what_goes_away_goes_too(ws: Workspace, filled: dict[str, bytes]) -> None:
    ws.p4.run("sync", ASK)
    ws.p4.run("sync", ASK, "#none")
    assert ws.tree() == {}
    assert ws.p4.run("have") == []


def test_a_server_may_ask_for_it_by_itself(
    ws: Workspace, server: LabServer, filled: dict[str, bytes]
) -> None:
    admin = server.connect(client="neutral")
    admin.run("configure", "set", "net.parallel.threads=2")
    try:
        ws.p4.run("sync")
        assert transmits(server, ws.name) == 2
        ws.p4.run("sync", "-f", "--parallel=0")
        assert transmits(server, ws.name) == 2
        ws.p4.run("sync", "-f", "d0/...")
        assert transmits(server, ws.name) == 2, "too little for it"
    finally:
        admin.run("configure", "unset", "net.parallel.threads")
    assert ws.tree() == filled


def test_a_file_that_cannot_be_written_is_not_had(
    ws: Workspace, filled: dict[str, bytes]
) -> None:
    ws.p4.run("sync", "//depot/p/d1/...")
    (ws.root / "d1/f001").chmod(0o644)
    ws.p4.run("flush", "//depot/p/d1/...#0")

    with pytest.raises(Exception, match="Can't clobber writable file"):
        ws.p4.run("sync", ASK)

    had = {file["depotFile"] for file in ws.p4.run("have")}
    assert "//depot/p/d1/f001" not in had
    ws.p4.run("sync", "-f", ASK)
    assert ws.tree() == filled
    assert len(ws.p4.run("have")) == len(filled)


@pytest.mark.parametrize("options", [["-q"], ["-k"], ["-n"], ["-p"], ["-m", "20"]])
def test_other_options_mean_the_same(
    ws: Workspace, options: list[str], filled: dict[str, bytes]
) -> None:
    ws.p4.run("sync", ASK, *options)
    on_disk = {"-q": 61, "-k": 0, "-n": 0, "-p": 61, "-m": 20}[options[0]]
    had = {"-q": 61, "-k": 61, "-n": 0, "-p": 0, "-m": 20}[options[0]]
    assert (len(ws.tree()), len(ws.p4.run("have"))) == (on_disk, had)


def test_what_is_not_admitted_is_refused(
    ws: Workspace, server: LabServer, tmp_path: Path
) -> None:
    assert refused(ws.p4, "sync", "--parallel=threads=two") == 6939
    admin = server.connect(client="neutral")
    admin.run("configure", "set", "net.parallel.max=0")
    try:
        assert refused(ws.p4, "sync", ASK) == 6940
        ws.p4.run("sync", "--parallel=0")
    finally:
        admin.run("configure", "unset", "net.parallel.max")


def test_nobody_fetches_the_files_of_another(ws: Workspace) -> None:
    assert refused(ws.p4, "transmit", "-t", "0123456789abcdef") == 7198
