"""Client specs on the lab: deleting, listing, types, and who may what."""

from __future__ import annotations

import sqlite3
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from P4 import P4, P4Exception

from tests.support.lab_perforce import (
    LabServer,
    Workspace,
    lab_server,
    refused,
    workspace,
)

pytestmark = pytest.mark.timeout(90, method="thread")

HERE = "commit-1"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    place = tmp_path_factory.mktemp("perforce")
    with lab_server(place, "--server-id", HERE) as running:
        yield running


@pytest.fixture
def ws(server: LabServer, tmp_path: Path) -> Workspace:
    mark = uuid.uuid4().hex[:8]
    return workspace(server, tmp_path, name=f"ws-{mark}", depot=f"//depot/{mark}")


@pytest.fixture
def admin(server: LabServer) -> P4:
    return server.connect(client="neutral")


def pending(ws: Workspace) -> str:
    """Make a change of the files opened; return its number."""
    form = ws.p4.fetch_change()
    form["Description"] = "work"
    return str(ws.p4.save_change(form)[0].split()[1])


def grant(admin: P4, *lines: str) -> None:
    """Replace the protections; the administrator of the lab stays super."""
    form = {"Protections": [*lines, "super user cloneyard * //..."]}
    admin.save_protect(form)


# --- deleting


def test_a_locked_client_is_deleted_by_force_alone(ws: Workspace) -> None:
    ws.p4.save_client({**ws.p4.fetch_client(), "Options": "locked"})

    assert refused(ws.p4, "client", "-d", ws.name) == 6214
    assert ws.p4.run("client", "-d", "-f", ws.name) == [f"Client {ws.name} deleted."]


def test_force_is_for_administrators(ws: Workspace, server: LabServer) -> None:
    ann = server.person("ann")

    assert refused(ann, "client", "-d", "-f", ws.name) == 6185

    admin = server.connect(client="neutral")
    grant(admin, "write user * * //...", "admin user ann * //...")
    assert ann.run("client", "-d", "-f", ws.name) == [f"Client {ws.name} deleted."]
    grant(admin, "write user * * //...")


def test_shelves_keep_a_client_from_being_deleted_by_force(ws: Workspace) -> None:
    ws.write("new")
    ws.p4.run("add", "new")
    number = pending(ws)
    ws.p4.run("shelve", "-c", number)

    assert refused(ws.p4, "client", "-d", ws.name) == 6215
    assert refused(ws.p4, "client", "-d", "-f", ws.name) == 6668
    assert refused(ws.p4, "client", "-d", "-Fs", ws.name) == 7198
    ws.p4.run("client", "-d", "-f", "-Fs", ws.name)
    (kept,) = ws.p4.run("describe", "-s", "-S", number)
    assert kept["depotFile"] == [f"{ws.depot}/new"]


def test_a_client_of_another_server_is_deleted_by_its_name(ws: Workspace) -> None:
    ws.p4.save_client({**ws.p4.fetch_client(), "ServerID": "edge-2"})

    assert refused(ws.p4, "sync") == 6816
    assert refused(ws.p4, "client", "-d", ws.name) == 6905
    assert refused(ws.p4, "client", "-d", "-f", ws.name) == 6905
    assert refused(ws.p4, "client", "-d", "-f", "--serverid=x", ws.name) == 6906
    assert ws.p4.run("client", "-d", "-f", "--serverid=edge-2", ws.name) == [
        f"Client {ws.name} deleted."
    ]


def test_a_client_of_this_server_is_used_as_any(ws: Workspace) -> None:
    ws.p4.save_client({**ws.p4.fetch_client(), "ServerID": HERE})

    assert ws.p4.run("info")[0]["ServerID"] == HERE
    assert ws.add({"a": "1"})
    assert ws.p4.run("client", "-d", ws.name) == [f"Client {ws.name} deleted."]


# --- types and views


def test_a_type_is_given_to_a_new_client_alone(ws: Workspace) -> None:
    form = ws.p4.fetch_client("-T", "readonly", f"{ws.name}-r")
    assert form["Type"] == "readonly"
    ws.p4.save_client({**form, "Root": str(ws.root), "Host": ""})

    (listed,) = ws.p4.run("clients", "-e", f"{ws.name}-r")
    assert listed["Type"] == "readonly"
    assert refused(ws.p4, "client", "-o", "-T", "readonly", ws.name) == 7038
    assert refused(ws.p4, "client", "-o", "-T", "sideways", ws.name) == 7198


def test_a_view_is_switched_to_that_of_another_client(ws: Workspace) -> None:
    ws.add({"a": "1"})
    other = ws.p4.fetch_client(f"{ws.name}-o")
    view = [f"{ws.depot}/... //{ws.name}-o/elsewhere/..."]
    ws.p4.save_client({**other, "View": view})

    ws.p4.run("edit", "a")
    command = ("client", "-s", "-t", f"{ws.name}-o", ws.name)
    assert refused(ws.p4, *command) == 6751
    ws.p4.run("revert", "a")
    assert ws.p4.run(*command) == [f"Client {ws.name} switched."]
    assert ws.p4.fetch_client()["View"] == [f"{ws.depot}/... //{ws.name}/elsewhere/..."]
    ws.p4.run("sync")
    assert set(ws.tree()) == {"elsewhere/a"}


def test_what_would_have_no_effect_is_refused(ws: Workspace) -> None:
    for tag, value in (("ChangeView", [f"{ws.depot}/...@1"]), ("StreamAtChange", "1")):
        with pytest.raises(P4Exception, match="not part of the lab"):
            ws.p4.save_client({**ws.p4.fetch_client(), tag: value})


# --- listing and access dates


def test_clients_are_listed_by_owner_pattern_and_server(
    ws: Workspace, admin: P4
) -> None:
    mark = ws.name.removeprefix("ws-")
    for name, fields in (
        ("here", {"Owner": f"Zoe-{mark}"}),
        ("away", {"Owner": f"zoe-{mark}", "ServerID": "edge-2"}),
    ):
        form = admin.fetch_client(f"{name}-{mark}")
        admin.save_client({**form, **fields})

    def listed(*options: str) -> list[str]:
        names = [c["client"] for c in admin.run("clients", *options)]
        return [name.removesuffix(f"-{mark}") for name in names if mark in name]

    owner = f"zoe-{mark[:4]}*"
    assert listed("-u", owner) == []
    assert listed("-u", owner, "-a") == ["away"]
    assert listed("-u", owner, "--user-case-insensitive", "-a") == ["away", "here"]
    assert listed("-s", "edge-2") == ["away"]
    assert listed("-e", f"*{mark}") == ["here", "ws"]
    assert listed("-u", owner, "-U") == []


def test_naming_a_client_moves_its_access_date_and_listing_does_not(
    ws: Workspace, admin: P4, server: LabServer
) -> None:
    ws.add({"a": "1"})
    ws.p4.save_client({**ws.p4.fetch_client(), "Description": "changed\n"})

    def moved(p4: P4, *command: str) -> bool:
        with sqlite3.connect(server.root / "db.sqlite3", timeout=30) as database:
            database.execute("UPDATE specs SET accessed=1 WHERE name=?", (ws.name,))
        database.close()
        p4.run(*command)
        (entry,) = admin.run("clients", "-e", ws.name)
        assert int(entry["Update"]) > 1
        return int(entry["Access"]) > 1

    commands: tuple[tuple[str, ...], ...] = (
        ("have",),
        ("where", "a"),
        ("opened",),
        ("sync", "-n"),
        ("reconcile", "-n"),
        ("flush",),
        ("edit", "a"),
        ("revert", "a"),
        ("client", "-o"),
    )
    for command in commands:
        assert moved(ws.p4, *command), command
    assert moved(admin, "client", "-o", ws.name)
    assert moved(admin, "client", "-o", "-t", ws.name, "brand-new")
    assert moved(admin, "files", f"//...@{ws.name}")
    for command in (
        ("clients", "-u", "cloneyard"),
        ("clients", "-e", ws.name, "-t"),
        ("opened", "-a", "-C", ws.name),
        ("changes", "-c", ws.name),
    ):
        assert not moved(admin, *command), command
    assert not moved(ws.p4, "info")


# --- protections of others


def test_protections_of_others_are_for_super_users(
    admin: P4, server: LabServer
) -> None:
    bea = server.person("bea")
    admin.save_group({"Group": "devs", "Users": ["bea"]})
    grant(
        admin,
        "read group devs * //...",
        "write user bea 10.* //depot/main/...",
        "admin user bea * -//depot/secret/...",
    )
    try:
        assert bea.run("protects", "-m") == [{"permMax": "write"}]
        assert bea.run("protects", "-m", "-H") == [{"permMax": "read"}]
        lines = admin.run("protects", "-u", "bea")
        assert [(x["perm"], x["user"], x["depotFile"]) for x in lines] == [
            ("read", "devs", "//..."),
            ("write", "bea", "//depot/main/..."),
            ("admin", "bea", "//depot/secret/..."),
        ]
        assert ["isgroup" in x for x in lines] == [True, False, False]
        assert ["unmap" in x for x in lines] == [False, False, True]
        assert len(admin.run("protects", "-u", "bea", "-h", "10.1.1.1")) == 3
        assert len(admin.run("protects", "-u", "bea", "-h", "11.1.1.1")) == 2
        assert len(admin.run("protects", "-u", "bea", "//depot/other/...")) == 1
        assert len(admin.run("protects", "-g", "devs")) == 1
        assert len(admin.run("protects", "-a")) == 4
        maximum = ("protects", "-M", "-u", "bea")
        assert admin.run(*maximum, "//depot/main/x") == [{"permMax": "write"}]
        assert admin.run(*maximum, "//depot/secret/x/...") == [{"permMax": "none"}]
        assert admin.run(*maximum, "//depot/...") == [{"permMax": "write"}]
        for option in ("-a", "-g"):
            arguments = [] if option == "-a" else ["devs"]
            assert refused(bea, "protects", option, *arguments) == 6185
        assert refused(bea, "protects", "-u", "cloneyard") == 6185
    finally:
        grant(admin, "write user * * //...")


def test_administrators_may_look_where_it_is_allowed(
    admin: P4, server: LabServer
) -> None:
    cat = server.person("cat")
    grant(admin, "write user * * //...", "admin user cat * //...")
    try:
        assert refused(cat, "protects", "-u", "cloneyard") == 6185
        admin.run("configure", "set", "dm.protects.allow.admin=1")
        assert cat.run("protects", "-m", "-u", "cloneyard") == [{"permMax": "super"}]
    finally:
        admin.run("configure", "unset", "dm.protects.allow.admin")
        grant(admin, "write user * * //...")


# --- opened files


def test_an_exclusive_file_is_shown_with_its_holder(
    ws: Workspace, server: LabServer, admin: P4, tmp_path: Path
) -> None:
    ws.write("art")
    ws.p4.run("add", "-t", "binary+l", "art")
    ws.submit()
    other = workspace(server, tmp_path, name=f"{ws.name}-2", depot=ws.depot)
    other.p4.run("sync")
    ws.p4.run("edit", "art")
    everything = f"{ws.depot}/..."

    assert other.p4.run("edit", "art") == [
        f"{ws.depot}/art - can't edit exclusive file already opened"
    ]
    (held,) = admin.run("opened", "-x", everything)
    assert (held["depotFile"], held["client"]) == (f"{ws.depot}/art", ws.name)
    (shown,) = admin.run("opened", "-a", everything)
    assert (shown["type"], shown["client"]) == ("binary+l", ws.name)
    admin.tagged = False
    (line,) = admin.run("opened", "-a", everything)
    assert line.endswith(f"by cloneyard@{ws.name} *exclusive*")
    (line,) = admin.run("opened", "-as", everything)
    assert "(binary" not in line
    admin.tagged = True

    assert admin.run("revert", "-C", ws.name, everything)[0]["action"] == "cleared"
    assert (ws.root / "art").exists()
    assert other.p4.run("edit", "art")[0]["action"] == "edit"


def test_opened_files_are_chosen_by_client_user_and_change(
    ws: Workspace, admin: P4
) -> None:
    ws.add({"a": "1", "b": "1"})
    ws.p4.run("edit", "a")
    number = pending(ws)
    ws.p4.run("edit", "b")

    def opened(*options: str) -> list[str]:
        found = admin.run("opened", *options, f"{ws.depot}/...")
        return [x["depotFile"].removeprefix(f"{ws.depot}/") for x in found]

    assert opened("-C", ws.name) == ["a", "b"]
    assert opened("-u", "cloneyard") == ["a", "b"]
    assert opened("-C", ws.name, "-u", "somebody") == []
    assert opened("-c", number) == ["a"]
    assert opened("-C", ws.name, "-c", "default") == ["b"]
    assert admin.run("opened", "-c", "999999", f"{ws.depot}/...") == []


# --- changes


def test_a_pending_change_is_its_users_and_clients(
    ws: Workspace, server: LabServer, admin: P4
) -> None:
    number = pending(ws)
    dan = server.person("dan", client=ws.name)

    assert refused(dan, "change", "-d", number) == 6173
    assert refused(admin, "change", "-d", number) == 6172
    assert refused(dan, "change", "-d", "-f", number) == 6185
    assert refused(dan, "submit", "-c", number) == 6173
    assert admin.run("change", "-d", "-f", number) == [f"Change {number} deleted."]


# --- monitor


def test_a_command_is_paused_and_resumed(ws: Workspace, server: LabServer) -> None:
    admin = server.connect(client="neutral")
    admin.run("configure", "set", "monitor=1")
    ws.add({f"f{number}": "x\n" for number in range(200)})
    ws.p4.run("sync", "#0")
    # The lock is held by somebody else until we say so.
    faults = server.root / "faults.json"
    faults.write_text('{"held_locks": {"db.have": 30}}')
    results: list[list[dict[str, Any]]] = []
    flushing = threading.Thread(target=lambda: results.append(ws.p4.run("flush")))
    flushing.start()
    try:
        ends = time.monotonic() + 20
        while time.monotonic() < ends:
            found = [c for c in admin.run("monitor", "show") if c["command"] == "flush"]
            if found:
                break
        (shown,) = found
        admin.run("monitor", "pause", shown["id"])
        assert [c["id"] for c in admin.run("monitor", "show", "-s", "P")] == [
            shown["id"]
        ]
        faults.unlink()
        flushing.join(timeout=0.5)
        assert flushing.is_alive()
        admin.run("monitor", "resume", shown["id"])
        flushing.join(timeout=60)
        assert len(results[0]) == 200
        assert refused(admin, "monitor", "pause", "1") == 7306
    finally:
        faults.unlink(missing_ok=True)
        flushing.join(timeout=60)
        admin.run("configure", "unset", "monitor")


# --- faults and kinds of users


def test_a_login_expires_when_the_settings_say_so(server: LabServer) -> None:
    server.person("gus")
    first = server.connect(client="neutral", user="gus", password="none")
    first.run_login(password="gus")
    p4 = server.connect(client="neutral", user="gus", password=first.password)
    assert p4.run("clients") is not None
    server.faults({"command": "clients", "expire_tickets": True, "times": 1})

    assert refused(p4, "clients") == 7480
    assert refused(p4, "depots") == 7480
    p4.run_login(password="gus")
    assert p4.run("depots")
    server.faults()


def test_a_server_under_load_refuses_by_its_number(
    ws: Workspace, server: LabServer
) -> None:
    server.faults({"command": "sync", "max_commands": 10, "times": 2})

    assert refused(ws.p4, "sync") == 7805
    assert refused(ws.p4, "sync") == 7805
    assert ws.p4.run("sync") == []
    server.faults()


def test_service_users_do_next_to_nothing(admin: P4, server: LabServer) -> None:
    robot = server.person("robot")
    admin.save_user({**admin.fetch_user("robot"), "Type": "service"}, "-f")

    assert refused(robot, "clients") == 6715
    assert robot.run("login", "-s") is not None
    assert robot.run("info")
