"""Rules that protect people on the lab: who may use a client, open a file, log in."""

from __future__ import annotations

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
    warned,
    workspace,
)

pytestmark = pytest.mark.timeout(90, method="thread")


@pytest.fixture
def ws(server: LabServer, tmp_path: Path) -> Workspace:
    """A client with a file `a` and an exclusive one, `art`."""
    mark = uuid.uuid4().hex[:8]
    made = workspace(server, tmp_path, name=f"ws-{mark}", depot=f"//depot/{mark}")
    made.write("art")
    made.p4.run("add", "-t", "binary+l", "art")
    made.add({"a": "1\n"})
    return made


@pytest.fixture
def protections(server: LabServer) -> Iterator[Any]:
    """Replace the protections for the length of a test; the lab's user stays super."""
    admin = server.connect(client="neutral")
    before = admin.fetch_protect()["Protections"]

    def grant(*lines: str) -> None:
        admin.save_protect({"Protections": [*lines, "super user cloneyard * //..."]})

    yield grant
    admin.save_protect({"Protections": before})


def test_everybody_is_super_until_a_server_is_protected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_P4PASSWD", "")
    with lab_server(tmp_path, "--security", "0") as fresh:
        joe = fresh.connect(client="neutral", user="joe")
        joe.save_user({"User": "ann", "Email": "ann@x", "FullName": "Ann"}, "-f")
        joe.save_protect(
            {"Protections": ["write user * * //...", "super user joe * //..."]}
        )

        ann = fresh.connect(client="neutral", user="ann")
        with pytest.raises(P4Exception, match="can't be changed from 'ann'"):
            ann.save_user({"User": "bob", "Email": "b@x", "FullName": "Bob"}, "-f")


def save(ws: Workspace, **fields: Any) -> None:
    ws.p4.save_client({**ws.p4.fetch_client(), **fields})


# Everything that works in a client.
IN_A_CLIENT = [
    ("sync",),
    ("flush",),
    ("have",),
    ("where", "a"),
    ("add", "b"),
    ("edit", "a"),
    ("delete", "a"),
    ("move", "a", "b"),
    ("integrate", "a", "b"),
    ("resolve",),
    ("resolved",),
    ("diff",),
    ("revert", "a"),
    ("reopen", "-t", "text", "a"),
    ("lock", "a"),
    ("unlock", "a"),
    ("opened",),
    ("reconcile",),
    ("status",),
    ("clean",),
    ("shelve", "-c", "1"),
    ("unshelve", "-s", "1"),
    ("submit", "-d", "x"),
]


def test_a_locked_client_serves_nobody_but_its_owner(
    ws: Workspace, server: LabServer
) -> None:
    save(ws, Options="locked")
    bob = server.person("bob", client=ws.name)
    bob.cwd = str(ws.root)

    assert {command: refused(bob, *command) for command in IN_A_CLIENT} == (
        dict.fromkeys(IN_A_CLIENT, 6238)
    )
    assert ws.p4.run("edit", "a")[0]["action"] == "edit"


def test_a_client_of_another_host_serves_nobody_here(ws: Workspace) -> None:
    save(ws, Host="elsewhere")

    assert {command: refused(ws.p4, *command) for command in IN_A_CLIENT} == (
        dict.fromkeys(IN_A_CLIENT, 6239)
    )
    ws.p4.host = "ELSEWHERE"
    assert ws.p4.run("have")


# --- types of clients


def typed(ws: Workspace, kind: str) -> Workspace:
    """Return a new client of a type on the same directory of the depot."""
    name, root = f"{ws.name}-{kind}", ws.root.parent / kind
    root.mkdir()
    view = [f"{ws.depot}/... //{name}/..."]
    form = ws.p4.fetch_client("-T", kind, name)
    ws.p4.save_client({**form, "Root": str(root), "Host": "", "View": view})
    p4 = P4()
    p4.port, p4.user, p4.password = ws.p4.port, ws.p4.user, ws.p4.password
    p4.charset, p4.client, p4.cwd, p4.exception_level = "none", name, str(root), 1
    p4.connect()
    return Workspace(p4=p4, root=root, name=name, depot=ws.depot)


@pytest.fixture
def readonly(ws: Workspace) -> Iterator[Workspace]:
    made = typed(ws, "readonly")
    yield made
    made.p4.disconnect()


def test_a_readonly_client_opens_nothing(ws: Workspace, readonly: Workspace) -> None:
    readonly.p4.run("sync")
    assert readonly.tree()["a"] == b"1\n"
    (readonly.root / "a").chmod(0o644)
    readonly.write("a", "changed\n")
    readonly.write("new")

    for command in (
        *(("edit", "a"), ("add", "new"), ("delete", "a"), ("move", "a", "b")),
        *(("integrate", "a", "b"), ("reconcile",), ("submit", "-d", "x")),
        *(("shelve", "-c", "1"), ("unshelve", "-s", "1")),
    ):
        assert refused(readonly.p4, *command) == 7993, command

    assert {x["action"] for x in readonly.p4.run("reconcile", "-n")} == {"edit", "add"}
    assert readonly.p4.run("opened") == []


def test_types_change_only_as_documented(ws: Workspace, readonly: Workspace) -> None:
    def becomes(client: Workspace, kind: str) -> bool:
        form = {**client.p4.fetch_client(), "Type": kind}
        client.p4.exception_level = 0
        client.p4.save_client(form)
        client.p4.exception_level = 1
        errors = [m.msgid for m in client.p4.messages if m.severity >= 3]
        assert errors in ([], [7038], [7102])
        return not errors

    for kind in ("writeable", "graph", "partitioned-jnl"):
        assert not becomes(readonly, kind)
    assert becomes(readonly, "partitioned")
    assert not becomes(readonly, "readonly")
    for kind in ("readonly", "partitioned", "partitioned-jnl"):
        assert not becomes(ws, kind)
    ws.p4.run("edit", "a")
    assert not becomes(ws, "graph")
    assert 7102 in [m.msgid for m in ws.p4.messages]
    ws.p4.run("revert", "a")
    assert becomes(ws, "graph")
    assert becomes(ws, "writeable")


# --- exclusive files


def test_no_way_opens_an_exclusive_file_twice(
    ws: Workspace, server: LabServer, tmp_path: Path
) -> None:
    other = workspace(server, tmp_path, name=f"{ws.name}-2", depot=ws.depot)
    other.p4.run("sync")
    ws.p4.run("edit", "art")
    (other.root / "art").chmod(0o644)
    other.write("art", "changed\n")

    def said(*command: str) -> str:
        return " ".join(map(str, other.p4.run(*command)))

    exclusive = "exclusive file already opened"
    assert f"can't edit {exclusive}" in said("edit", "art")
    assert f"can't edit {exclusive}" in said("reconcile")
    assert f"can't delete {exclusive}" in said("delete", "art")
    (other.root / "art").rename(other.root / "renamed")
    assert f"can't delete {exclusive}" in said("reconcile", "-d")
    assert other.p4.run("opened") == []
    ws.p4.run("revert", "art")
    assert other.p4.run("delete", "-k", "art")[0]["action"] == "delete"


# --- what protections allow


def test_who_is_not_in_the_protections_is_not_let_in(
    server: LabServer, protections: Any
) -> None:
    eve = server.person("eve")
    protections("write user alice * //...")

    assert refused(eve, "clients") == 6267
    assert refused(eve, "sync") == 6267
    assert eve.run("info")
    protections("list user eve * //...")
    assert eve.run("clients") is not None


def test_list_shows_files_and_not_their_content(
    ws: Workspace, server: LabServer, protections: Any
) -> None:
    lee = server.person("lee")
    protections("list user lee * //...")

    for command in ("files", "fstat", "filelog", "changes"):
        assert lee.run(command, f"{ws.depot}/a"), command
    assert lee.run("sizes", "-s", f"{ws.depot}/...")[0]["fileCount"] == "2"
    assert warned(lee, "print", f"{ws.depot}/a") == [6519]


def test_who_may_only_read_opens_nothing(
    ws: Workspace, server: LabServer, protections: Any, tmp_path: Path
) -> None:
    form = ws.p4.fetch_change()
    ws.p4.run("edit", "a")
    number = ws.p4.save_change({**form, "Description": "x"})[0].split()[1]
    ws.p4.run("reopen", "-c", number, "a")
    ws.p4.run("shelve", "-c", number)
    rae = server.person("rae", client=f"{ws.name}-rae")
    rae.cwd = str(tmp_path / "rae")
    Path(rae.cwd).mkdir()
    view = [f"{ws.depot}/... //{ws.name}-rae/..."]
    rae.save_client({**rae.fetch_client(), "Root": rae.cwd, "View": view})
    rae.run("sync")
    rae.run("edit", "art")
    protections("read user rae * //...")
    (Path(rae.cwd) / "a").chmod(0o644)
    (Path(rae.cwd) / "a").write_text("changed\n")

    assert [x["action"] for x in rae.run("reconcile", "-n")] == ["edit"]
    for command in (
        *(("edit", "a"), ("delete", "a"), ("add", "new"), ("move", "art", "b")),
        *(("integrate", "a", "b"), ("reconcile",), ("unshelve", "-s", number)),
    ):
        assert 6513 in warned(rae, *command), command
    assert [x["depotFile"] for x in rae.run("opened")] == [f"{ws.depot}/art"]


# --- logging in


def test_a_ticket_ends_with_its_time(server: LabServer) -> None:
    server.person("tim")
    admin = server.connect(client="neutral")
    admin.save_group({"Group": "short", "Users": ["tim"], "Timeout": "1"})
    first = server.connect(client="neutral", user="tim", password="none")
    first.run_login(password="tim")
    tim = server.connect(client="neutral", user="tim", password=first.password)

    ends = time.monotonic() + 30
    tim.exception_level = 0
    while not (tim.run("depots"), tim.errors)[1] and time.monotonic() < ends:
        time.sleep(0.1)

    assert [m.msgid for m in tim.messages] == [7480]
    tim.exception_level = 1
    admin.save_group({"Group": "short", "Users": ["tim"], "Timeout": "unlimited"})
    tim.run_login(password="tim")
    assert tim.run("users")


@pytest.mark.parametrize("level", ["0", "1", "3"])
def test_a_security_level_asks_for_what_it_says(tmp_path: Path, level: str) -> None:
    with lab_server(tmp_path, "--security", level) as strict:
        admin = strict.connect(client="neutral")
        assert int(admin.run("info")[0]["security"]) == int(level)
        if level == "3":
            # A ticket and nothing else.
            assert refused(admin, "clients") == 7490
            admin.run_login(password=strict.password)
        form = {"User": "ann", "Email": "ann@x", "FullName": "ann"}
        admin.save_user(form, "-f")
        ann = strict.connect(client="neutral", user="ann", password="none")

        if level == "0":
            assert ann.run("clients") == []
            assert "not necessary" in ann.run("login")[0]
            return
        # A password has to be there, and cannot be taken away.
        assert refused(ann, "clients") == 7475
        ann.input = ["long-enough", "long-enough"]
        ann.run("passwd")
        ann.password = "long-enough"
        if level == "3":
            ann.run_login(password="long-enough")
        assert ann.run("clients") == []
        ann.input = ["long-enough", "", ""]
        assert refused(ann, "passwd") == 7711


def test_security_is_configured_while_a_server_runs(tmp_path: Path) -> None:
    with lab_server(tmp_path, "--security", "0") as server:
        admin = server.connect(client="neutral")
        admin.run_login(password=server.password)
        for name in ("ann", "bea"):
            form = {"User": name, "Email": "ann@x", "FullName": name}
            admin.save_user(form, "-f")
        for setting in (
            *("security=4", "dm.user.setinitialpasswd=0", "dm.user.noautocreate=2"),
        ):
            admin.run("configure", "set", setting)
        ann = server.connect(client="neutral", user="ann", password="none")
        assert refused(ann, "clients") == 7475
        assert refused(ann, "passwd") == 6185
        nobody = server.connect(client="neutral", user="zoe", password="none")
        assert refused(nobody, "clients") == 6267

        admin.input = ["long-enough", "long-enough"]
        admin.run("passwd", "ann")

        assert refused(ann, "clients") == 7189
        ann.run_login(password="long-enough")
        assert ann.run("clients") == []
        admin.run("configure", "unset", "security")
        bea = server.connect(client="neutral", user="bea", password="none")
        assert bea.run("clients") == []


@pytest.mark.parametrize(
    "password",
    ["short1", "exactly-sixteen!", "a pass phrase of several words", "pässwörter-ü"],
)
def test_a_new_password_is_sent_encrypted(server: LabServer, password: str) -> None:
    """The client mixes what was typed before into the key: by whom, it depends."""
    name = f"u-{uuid.uuid4().hex[:8]}"
    person = server.person(name)
    person.run_login(password=name)
    person.input = [name, password, password]
    assert person.run("passwd") == ["Password updated."]
    person.run_login(password=password)

    admin = server.connect(client="neutral")
    admin.run_login(password=server.password)
    admin.input = [password * 2, password * 2]
    admin.run("passwd", name)
    person.run_login(password=password * 2)
    with pytest.raises(P4Exception, match="Password invalid"):
        person.run_login(password=password)

    admin.input = [password, password + "x"]
    with pytest.raises(P4Exception, match="don't match"):
        admin.run("passwd", name)


def test_who_has_to_change_the_password_does_nothing_before(server: LabServer) -> None:
    name = f"u-{uuid.uuid4().hex[:8]}"
    person = server.person(name)
    assert person.run("users", name)
    admin = server.connect(client="neutral")
    assert refused(person, "admin", "resetpassword", "-a") == 6185
    admin.run("admin", "resetpassword", "-u", name)

    assert refused(person, "users") == 7623
    assert person.run("info")

    person.input = [name, "another-password", "another-password"]
    assert person.run("passwd") == ["Password updated."]
    again = server.connect(client="neutral", user=name, password="another-password")
    assert again.run("users", name)
    assert admin.run("users", name)


def test_who_has_to_give_a_second_factor_does_nothing_but_log_in(
    server: LabServer,
) -> None:
    name = f"u-{uuid.uuid4().hex[:8]}"
    person = server.person(name)
    admin = server.connect(client="neutral")
    admin.save_user({**admin.fetch_user(name), "AuthMethod": "perforce+2fa"}, "-f")

    assert person.run_login(password=name)
    assert refused(person, "users") == 8059
    assert person.run("info")
