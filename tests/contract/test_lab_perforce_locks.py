"""Locks, limits, configurables and the log of the lab, by the official client."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from P4 import P4, P4Exception

from tests.support.lab_perforce import ADMIN, LabServer, lab_server, workspace

pytestmark = pytest.mark.timeout(90, method="thread")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LabServer]:
    with lab_server(tmp_path) as running:
        ws = workspace(running, tmp_path, name="ws", depot="//depot")
        ws.add({f"f{number}": "x\n" for number in range(5)})
        yield running


def tracking(server: LabServer, *, client: str = "ws") -> P4:
    """Return a client that asks for track output."""
    p4 = P4()
    p4.port = f"127.0.0.1:{server.port}"
    p4.user, p4.client, p4.password = ADMIN, client, server.password
    p4.host = "lab-host"
    p4.charset, p4.exception_level = "none", 1
    p4.track = 1
    p4.connect()
    server.clients.append(p4)
    return p4


def hold(server: LabServer, **seconds: float) -> None:
    path = server.root / "faults.json"
    path.with_suffix(".new").write_text(json.dumps({"held_locks": seconds}))
    path.with_suffix(".new").replace(path)


def tables(p4: P4) -> dict[str, list[str]]:
    """Return the lines of each table in the last command's track output."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in p4.track_output:
        if line.startswith("  "):
            found[name].append(line.strip())
        elif line.startswith(("db.", "clients/")):
            name = line
            found[name] = []
    return found


def waited_ms(lines: list[str]) -> int:
    [match] = [m for m in map(_TOTAL.fullmatch, lines) if m]
    return int(match[1])


_TOTAL = re.compile(r"total lock wait\+held read/write \d+ms\+\d+ms/(\d+)ms\+\d+ms")


def test_a_flush_waits_for_a_lock_that_somebody_holds(server: LabServer) -> None:
    p4 = tracking(server)
    hold(server, **{"db.have": 0.6})
    began = time.monotonic()

    p4.run("flush", "#0")

    assert 0.4 < time.monotonic() - began < 10
    assert list(tables(p4)) == ["db.have"]
    assert waited_ms(tables(p4)["db.have"]) > 300
    assert (
        "locks read/write 0/1 rows get+pos+scan put+del 0+0+0 5+0"
        in (tables(p4)["db.have"])
    )


def test_a_partitioned_client_has_a_table_of_its_own(
    server: LabServer, tmp_path: Path
) -> None:
    workspace(server, tmp_path, name="ci", depot="//depot", Type="partitioned")
    p4 = tracking(server, client="ci")
    hold(server, **{"db.have": 30})

    p4.run("flush")

    assert list(tables(p4)) == ["db.have.pt"]


def test_without_peeking_the_plan_locks_what_it_reads(server: LabServer) -> None:
    p4 = tracking(server)
    p4.run("configure", "set", "db.peeking=1")
    p4.run("configure", "set", "server.locks.sync=1")

    p4.run("flush", "-n", "#0")

    assert sorted(tables(p4)) == ["clients/ws(R)", "db.have", "db.rev"]
    assert tables(p4)["db.rev"][0].startswith("locks read/write 1/0")


def limit(p4: P4, **limits: Any) -> None:
    group = p4.fetch_group("limited")
    group["Users"] = ["bruno"]
    for tag, value in limits.items():
        group[tag] = str(value)
    p4.save_group(group)


@pytest.fixture
def bruno(server: LabServer) -> P4:
    server.connect(client="ws").run("configure", "set", "db.peeking=2")
    admin = server.connect(client="ws")
    admin.input = {"User": "bruno", "Email": "b@x", "FullName": "B", "Password": "pear"}
    admin.run("user", "-i", "-f")
    return server.connect(client="ws", user="bruno", password="pear")


def test_a_wait_ends_at_the_users_max_lock_time(server: LabServer, bruno: P4) -> None:
    limit(server.connect(client="ws"), MaxLockTime=200)
    hold(server, **{"db.have": 30})

    with pytest.raises(P4Exception):
        bruno.run("flush", "#0")

    assert bruno.messages[0].msgid == 6597
    hold(server)
    assert len(bruno.run("have")) == 5


def test_a_request_beyond_the_users_limits_is_refused_whole(
    server: LabServer, bruno: P4
) -> None:
    admin = server.connect(client="ws")
    limit(admin, MaxResults=3)
    with pytest.raises(P4Exception):
        bruno.run("flush", "#0")
    assert bruno.messages[0].msgid == 4128
    assert len(bruno.run("flush", "-m", "3", "#0")) == 3
    for command in ("files //...", "fstat //...", "print //...", "dirs //*"):
        with pytest.raises(P4Exception):
            bruno.run(*command.split())
        assert bruno.messages[0].msgid == 4128

    limit(admin, MaxResults="unset", MaxScanRows=1)
    for command in ("flush #0", "files //...", "have"):
        with pytest.raises(P4Exception):
            bruno.run(*command.split())
        assert bruno.messages[0].msgid == 4157


def test_a_list_of_pending_changes_scans_those_alone(
    server: LabServer, bruno: P4
) -> None:
    admin = server.connect(client="ws")
    limit(admin, MaxScanRows=0)
    assert bruno.run("changes", "-s", "pending") == []
    with pytest.raises(P4Exception):
        bruno.run("changes", "-m", "1")
    assert bruno.messages[0].msgid == 4157
    limit(admin, MaxScanRows=1)
    assert len(bruno.run("changes", "-m", "1", "-s", "submitted")) == 1


def test_changes_of_a_path_scan_all_its_revisions(server: LabServer, bruno: P4) -> None:
    # Source: git's t9818 asks a server with MaxScanRows for the newest of a path.
    limit(server.connect(client="ws"), MaxScanRows=1)
    with pytest.raises(P4Exception):
        bruno.run("changes", "-m", "1", "//...")
    assert bruno.messages[0].msgid == 4157


def test_clients_that_a_server_sends_nothing_get_no_files(
    server: LabServer, bruno: P4
) -> None:
    admin = server.connect(client="ws")
    admin.run("configure", "set", f"zerosyncPrefix={bruno.client[:3]}")
    for each in bruno.run("have"):
        if os.path.lexists(each["path"]):
            os.unlink(each["path"])
    bruno.run("flush", "#0")
    bruno.run("sync")
    had = bruno.run("have")
    assert had
    assert not any(os.path.lexists(each["path"]) for each in had)


def test_configurables_are_shown_set_and_unset(server: LabServer) -> None:
    p4 = server.connect(client="ws")
    p4.run("configure", "set", "client.readonly.dir=")
    assert p4.run("configure", "show")[0]["Name"] == "client.readonly.dir"
    spec = p4.fetch_client("ci")
    spec["Type"] = "readonly"
    with pytest.raises(P4Exception):
        p4.save_client(spec)
    assert p4.messages[0].msgid == 7030

    p4.run("configure", "unset", "client.readonly.dir")
    p4.save_client(spec)
    assert p4.run("configure", "show", "db.peeking")[0]["Value"] == "2"
    with pytest.raises(P4Exception, match="not part of the lab"):
        p4.run("configure", "set", "dm.keys.hide=1")


def test_the_log_is_made_of_blocks(server: LabServer) -> None:
    p4 = server.connect(client="ws")
    p4.run("configure", "set", "track=1")
    p4.run("flush", "-f")
    server.stop()

    blocks = (server.root.parent / "log").read_text().split("\n\n")
    for block in filter(None, blocks):
        assert re.match(r"Perforce server (info|error):\n\t", block)
    start = re.compile(
        r"\t\d{4}/\d\d/\d\d \d\d:\d\d:\d\d pid (\d+) cloneyard@ws 127\.0\.0\.1"
        r" \[.+\] 'user-flush -f'"
    )
    [number, again] = [m[1] for block in blocks for m in start.finditer(block)]
    assert number == again
    [tracked] = [b for b in blocks if start.search(b) and "\n--- " in b]
    assert "\n--- db.have\n---   locks read/write 0/1 rows" in tracked
    used = r"\d+\+\d+us \d+\+\d+io 0\+0net \d+k \d+pf"
    done = rf"pid {number} completed (\d+)?\.?\d*s {used}"
    assert any(re.search(done, block) for block in blocks)


def test_running_commands_are_shown_and_ended(server: LabServer) -> None:
    admin = server.connect(client="ws")
    with pytest.raises(P4Exception, match="Monitor not currently enabled"):
        admin.run("monitor", "show")
    admin.run("configure", "set", "monitor=1")
    hold(server, **{"db.have": 60})
    waiting = server.connect(client="ws")
    with ThreadPoolExecutor(1) as pool:
        flushing = pool.submit(waiting.run, "flush", "#0")
        [shown] = until(
            lambda: [c for c in admin.run("monitor", "show", "-a") if "flush" in str(c)]
        )
        assert (shown["user"], shown["status"], shown["args"]) == (ADMIN, "R", "#0")

        [young] = admin.run("monitor", "terminate", shown["id"])
        assert young.endswith("can't terminate, runtime < 10 seconds **")
        admin.run("configure", "set", "db.monitor.minruntime=0")
        admin.run("monitor", "terminate", shown["id"])

        with pytest.raises(P4Exception, match="monitor terminate"):
            flushing.result(timeout=20)
    assert waiting.messages[0].msgid == 7500
    assert [c["command"] for c in admin.run("monitor", "show")] == ["monitor"]
    with pytest.raises(P4Exception, match="Invalid session identifier"):
        admin.run("monitor", "terminate", shown["id"])


def until(look: Callable[[], list[Any]]) -> list[Any]:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(0.02)
    raise AssertionError("it never came")


def test_an_exclusive_file_is_opened_by_one(server: LabServer, tmp_path: Path) -> None:
    one = server.connect(client="ws")
    two = workspace(server, tmp_path, name="two", depot="//depot")
    two.p4.run("sync")
    one.run("edit", "-t", "+l", "//depot/f1")
    one.run("submit", "-d", "exclusive")
    two.p4.run("sync")
    one.run("edit", "//depot/f1")

    said = two.p4.run("edit", "//depot/f1", "//depot/f2")

    assert any("exclusive file already opened" in str(line) for line in said)
    assert [r["depotFile"] for r in two.p4.run("opened")] == ["//depot/f2"]
    one.run("revert", "//depot/f1")
    assert two.p4.run("edit", "//depot/f1")[0]["action"] == "edit"


def test_a_sync_checks_that_its_change_was_submitted(server: LabServer) -> None:
    p4 = server.connect(client="ws")
    with pytest.raises(P4Exception, match="Change 999 unknown"):
        p4.run("sync", "-E", "@999")
    assert len(p4.run("flush", "-L", "//depot/f1#0", "//depot/f2#0")) == 2
    with pytest.raises(P4Exception, match="Usage"):
        p4.run("flush", "-L", "//ws/f1#0")


def test_an_unloaded_client_comes_back_with_what_it_had(server: LabServer) -> None:
    admin = server.connect(client="other")
    with pytest.raises(P4Exception, match="No unload depot"):
        admin.run("unload", "-c", "ws")
    depot = admin.fetch_depot("unload")
    depot["Type"] = "unload"
    admin.save_depot(depot)

    admin.run("unload", "-c", "ws")

    assert [c["client"] for c in admin.run("clients")] == []
    assert [c["client"] for c in admin.run("clients", "-U")] == ["ws"]
    ws = server.connect(client="ws")
    with pytest.raises(P4Exception, match="has been unloaded"):
        ws.run("have")
    with pytest.raises(P4Exception, match="has been unloaded"):
        ws.save_client(ws.fetch_client())

    admin.run("reload", "-c", "ws")

    assert len(ws.run("have")) == 5


def test_a_number_beyond_all_is_refused_and_the_next_command_served(
    server: LabServer,
) -> None:
    p4 = server.connect(client="ws")
    with pytest.raises(P4Exception, match="larger than the lab can keep"):
        p4.run("files", "//depot/...@99999999999999999999")
    assert len(p4.run("files", "//depot/...")) == 5


def test_locked_tables_are_named_while_somebody_has_them(server: LabServer) -> None:
    admin = server.connect(client="ws")
    assert admin.run("lockstat") == []
    hold(server, **{"db.rev": 60})
    assert admin.run("lockstat") == ["Write: db.rev"]

    admin.run("configure", "set", "server.locks.sync=1")
    hold(server, **{"db.have": 60})
    with ThreadPoolExecutor(1) as pool:
        flushing = pool.submit(server.connect(client="ws").run, "flush", "#0")
        # The flush holds its client's lock, and waits for the table.
        assert until(lambda: admin.run("lockstat", "-C")) == ["Read : ws"]
        assert admin.run("lockstat", "-c", "ws") == ["Read : ws"]
        assert admin.run("lockstat", "-c", "other") == []
        hold(server)
        flushing.result(timeout=60)

    assert admin.run("lockstat") == admin.run("lockstat", "-C") == []
    with pytest.raises(P4Exception, match="You don't have permission"):
        server.person("dan").run("lockstat")


def test_idle_connections_are_shown_and_ended(server: LabServer) -> None:
    admin = server.connect(client="ws")
    admin.run("configure", "set", "monitor=2")
    admin.run("configure", "set", "db.monitor.minruntime=0")
    idle = server.connect(client="ws", user=ADMIN)
    idle.prog = "editor"
    idle.run("info")

    [shown] = until(lambda: admin.run("monitor", "show", "-s", "I", "-a", "-e"))
    assert (shown["command"], shown["args"]) == ("IDLE", "none")
    assert shown["prog"].startswith("editor ")

    admin.run("monitor", "terminate", shown["id"])

    until(lambda: [True] if not admin.run("monitor", "show", "-s", "T") else [])
    with pytest.raises(P4Exception):
        idle.run("info")
