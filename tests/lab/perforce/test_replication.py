"""A lab server that follows another: what it has, what it refuses, how far behind."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from P4 import P4

from tests.support.lab_perforce import (
    LabServer,
    Workspace,
    eventually,
    following,
    lab_server,
    refused,
    workspace,
)


@pytest.fixture
def commit(tmp_path: Path) -> Iterator[LabServer]:
    options = ("--server-id", "commit", "--services", "commit-server")
    with lab_server(tmp_path / "commit", *options) as server:
        yield server


@pytest.fixture
def people(commit: LabServer, tmp_path: Path) -> Workspace:
    """A client at the commit server that has submitted a file."""
    made = workspace(commit, tmp_path, name="people", depot="//depot/main")
    made.add({"one": "1\n"})
    return made


def newest(p4: P4) -> int:
    return int(p4.run("changes", "-m1", "-s", "submitted")[0]["change"])


def test_an_edge_is_behind_while_it_is_held_and_catches_up(
    commit: LabServer, people: Workspace, tmp_path: Path
) -> None:
    with following(commit, tmp_path / "e", kind="edge-server", name="edge") as edge:
        p4 = edge.connect(client="neutral")
        assert p4.run("info")[0]["replica"] == f"127.0.0.1:{commit.port}"
        first = newest(p4)
        edge.lag(held=True)
        change = people.edit("one", "2\n")
        time.sleep(0.5)
        assert newest(p4) == first < int(change)

        edge.lag(lag_seconds=0.5)
        eventually(lambda: newest(p4) == int(change))
        assert p4.run("print", "-q", "//depot/main/one")[-1] == "2\n"


def test_clients_of_an_edge_are_bound_to_it_and_known_everywhere(
    commit: LabServer, people: Workspace, tmp_path: Path
) -> None:
    with (
        following(commit, tmp_path / "a", kind="edge-server", name="edge-a") as a,
        following(commit, tmp_path / "b", kind="edge-server", name="edge-b") as b,
    ):
        made = workspace(a, tmp_path, name="far", depot="//depot/main")
        made.p4.run("sync", "-k")
        made.write("one", "1\n")
        made.p4.run("edit", "one")
        assert made.p4.run("have")[0]["depotFile"] == "//depot/main/one"
        pending = made.p4.fetch_change()
        number = int(made.p4.save_change(pending)[0].split()[1])
        assert people.p4.run("counter", "change")[0]["value"] == str(number)

        made.p4.run("reopen", "-c", str(number), "one")
        made.p4.run("shelve", "-c", str(number))
        assert "depotFile" not in people.p4.run("describe", "-S", "1")[0]
        made.p4.run("shelve", "-p", "-f", "-c", str(number))
        shelf = people.p4.run("describe", "-S", str(number))[0]
        assert shelf["depotFile"] == ["//depot/main/one"]
        assert people.p4.run("print", "-q", f"//depot/main/one@={number}")[-1] == "1\n"
        made.p4.run("shelve", "-d", "-c", str(number))
        assert "depotFile" not in people.p4.run("describe", "-S", str(number))[0]

        central = commit.connect(client="far")
        assert central.fetch_client()["ServerID"] == "edge-a"
        assert refused(central, "sync", "-k") == 6816
        there = b.connect(client="far")
        eventually(lambda: bool(there.run("clients", "-a", "-e", "far")))
        assert refused(there, "sync", "-k") == 6816
        there.input = there.fetch_client()
        assert refused(there, "client", "-i") == 7826

        assert refused(a.connect(client="people"), "sync", "-k") == 7784
        assert [c["client"] for c in a.connect(client="x").run("clients")] == ["far"]
        assert (
            refused(made.p4, "client", "-d", "-f", "--serverid=edge-a", "far") == 7588
        )

        made.p4.run("revert", "-k", "//...")
        made.p4.run("change", "-d", str(number))
        made.p4.run("client", "-d", "far")
        assert not central.run("clients", "-a", "-e", "far")


def test_what_is_global_is_forwarded_by_an_edge(
    commit: LabServer, tmp_path: Path
) -> None:
    with following(commit, tmp_path / "e", kind="edge-server", name="edge") as edge:
        p4 = edge.connect(client="neutral")
        p4.save_user({"User": "zoe", "Email": "z@x", "FullName": "Zoe"}, "-f")
        assert commit.connect(client="neutral").run("users", "zoe")
        eventually(lambda: bool(p4.run("users", "zoe")))


@pytest.mark.parametrize("kind", ["replica", "build-server", "forwarding-replica"])
def test_each_kind_of_replica_takes_what_a_real_one_takes(
    kind: str, commit: LabServer, people: Workspace, tmp_path: Path
) -> None:
    with following(commit, tmp_path / "r", kind=kind, name="there") as replica:
        p4 = replica.connect(client="people")
        assert p4.run("files", "//depot/...")
        if kind == "build-server":
            assert refused(p4, "sync", "-k") == 7784
            bound = workspace(replica, tmp_path, name="build", depot="//depot/main")
            assert bound.p4.run("sync", "-k")
            assert refused(bound.p4, "edit", "one") == 7588
            assert refused(bound.p4, "user", "-i") == 7588
            return
        if kind == "replica":
            assert p4.run("have"), "have lists are replicated, too"
            assert refused(p4, "sync", "-k") == 7588
            assert refused(p4, "client", "-i") == 7588
            assert p4.run("sync", "-n", "-f")
            return
        replica.lag(held=True)
        p4.run("sync", "-k", "//...#none")
        assert not people.p4.run("have")
        assert p4.run("have"), "reports are answered from data that is behind"
