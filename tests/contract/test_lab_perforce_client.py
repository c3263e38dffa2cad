"""The lab's Perforce server as the official client sees it."""

from __future__ import annotations

import os
import stat
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from P4 import P4, P4Exception, Spec
from P4 import Progress as P4Progress

from tests.support.lab_perforce import (
    LabServer,
    Workspace,
    lab_server,
    refused,
    warned,
    workspace,
)

# A client that waits for a reply holds the interpreter: only a thread can stop it.
pytestmark = pytest.mark.timeout(90, method="thread")

Make = Callable[..., Workspace]


@pytest.fixture
def make(server: LabServer, tmp_path: Path) -> Iterator[Make]:
    """Return a maker of clients that share one fresh directory of the depot."""
    mark = uuid.uuid4().hex[:8]
    made = []

    def maker(name: str = "ws", **fields: Any) -> Workspace:
        made.append(
            workspace(
                server,
                tmp_path,
                name=f"{name}-{mark}",
                depot=f"//depot/{mark}",
                **fields,
            )
        )
        return made[-1]

    yield maker
    for item in made:
        if item.p4.connected():
            item.p4.disconnect()


@pytest.fixture
def ws(make: Make) -> Workspace:
    return make()


# --- connecting


def test_info_names_the_client_and_the_server(ws: Workspace) -> None:
    (info,) = ws.p4.run("info")
    assert info["clientName"] == ws.name
    assert info["clientRoot"] == str(ws.root)
    assert info["caseHandling"] == "sensitive"
    assert ws.p4.server_level >= 42


def test_untagged_info_has_a_line_for_each_item(ws: Workspace) -> None:
    ws.p4.tagged = False
    assert f"Client name: {ws.name}" in ws.p4.run("info")


def test_an_unknown_command_and_one_the_lab_lacks_are_refused(ws: Workspace) -> None:
    assert refused(ws.p4, "frobnicate") == 7194
    for command in ("obliterate", "snap", "duplicate"):
        refused(ws.p4, command, "//depot/a")
        assert f"p4 {command} is not part of the lab" in ws.p4.errors[0]
    refused(ws.p4, "print", "-U", "//depot/a")
    assert "print -U is not part of the lab" in ws.p4.errors[0]


@pytest.mark.parametrize("kind", ["ldap", "remote", "repo", "server"])
def test_forms_of_other_kinds_are_shown_and_not_saved(kind: str, ws: Workspace) -> None:
    [form] = ws.p4.run(kind, "-o", "name")
    assert "name" in form.values()
    [definition] = ws.p4.run("spec", "-o", kind)
    assert set(form) <= {line.split()[1] for line in definition["Fields"]}
    ws.p4.input = form
    with pytest.raises(P4Exception, match=f"changing a {kind} is not part of the lab"):
        ws.p4.run(kind, "-i")


def test_a_wrong_option_shows_the_usage(ws: Workspace) -> None:
    assert refused(ws.p4, "sync", "-Z") == 7198


# --- logging in


def _user(server: LabServer, name: str, password: str) -> None:
    admin = server.connect(client="nobody")
    spec = admin.fetch_user(name)
    spec["Email"], spec["FullName"] = f"{name}@example.com", name.title()
    admin.save_user(spec, "-f")
    admin.input = [password, password]
    admin.run("passwd", name)
    admin.disconnect()


def test_a_password_is_proved_and_a_wrong_one_refused(server: LabServer) -> None:
    _user(server, "pat", "secret-1")
    pat = server.connect(client="none", user="pat", password="secret-1")
    assert pat.run("users", "pat")[0]["FullName"] == "Pat"
    stranger = server.connect(client="none", user="pat", password="wrong")
    assert refused(stranger, "users") == 7189
    with pytest.raises(P4Exception, match="Password invalid"):
        stranger.run_login(password="wrong")


def test_login_gives_a_ticket_that_later_connections_use(server: LabServer) -> None:
    _user(server, "quinn", "secret-2")
    first = server.connect(client="none", user="quinn", password="none")
    assert first.run_login(password="secret-2")[0]["User"] == "quinn"
    ticket = first.password
    assert len(ticket) == 32
    second = server.connect(client="none", user="quinn", password=ticket)
    assert int(second.run("login", "-s")[0]["TicketExpiration"]) > 40_000
    second.run("logout")
    third = server.connect(client="none", user="quinn", password=ticket)
    assert refused(third, "users") == 7189


def test_a_super_user_logs_others_in_without_their_password(server: LabServer) -> None:
    _user(server, "robin", "secret-3")
    admin = server.connect(client="none")
    ticket = next(x for x in admin.run("login", "-p", "robin") if isinstance(x, str))
    robin = server.connect(client="none", user="robin", password=ticket)
    assert robin.run("users", "robin")
    assert refused(robin, "login", "-p", "pat") in (6185, 7205)


def test_a_new_user_needs_a_password_first(server: LabServer) -> None:
    sam = server.connect(client="none", user="sam", password="x")
    assert refused(sam, "users") == 7475


def test_the_user_form_reads_writes_and_deletes(server: LabServer) -> None:
    admin = server.connect(client="none")
    spec = admin.fetch_user("tony")
    assert isinstance(spec, Spec)
    spec["Email"], spec["FullName"] = "t@example.com", "Tony Ü"
    assert admin.save_user(spec, "-f") == ["User tony saved."]
    assert admin.save_user(spec, "-f") == ["User tony not changed."]
    assert admin.fetch_user("tony")["FullName"] == "Tony Ü"
    assert admin.run("user", "-d", "-f", "tony") == ["User tony deleted."]
    assert refused(admin, "user", "-d", "-f", "tony") == 6502


# --- clients


def test_a_new_client_is_bound_to_the_invoking_host(server: LabServer) -> None:
    p4 = server.connect(client="brand-new")
    spec = p4.fetch_client()
    assert spec["Host"] == "lab-host"
    assert spec["Owner"] == "cloneyard"
    assert spec["Root"] == p4.cwd
    assert spec["View"] == ["//depot/... //brand-new/..."]


def test_saving_a_client_twice_changes_nothing(ws: Workspace) -> None:
    spec = ws.p4.fetch_client()
    assert ws.p4.save_client(spec) == [f"Client {ws.name} not changed."]
    spec["Description"] = "two\nlines\n"
    assert ws.p4.save_client(spec) == [f"Client {ws.name} saved."]
    assert ws.p4.fetch_client()["Description"] == "two\nlines\n"


def test_a_client_form_works_untagged(ws: Workspace) -> None:
    ws.p4.tagged = False
    (text,) = ws.p4.run("client", "-o")
    assert f"Client:\t{ws.name}\n" in text
    ws.p4.input = text.replace("unlocked", "locked")
    assert ws.p4.run("client", "-i") == [f"Client {ws.name} saved."]


def test_a_template_gives_its_view_and_options_and_no_more(make: Make) -> None:
    source = make("tpl", Options="clobber rmdir", LineEnd="unix", Description="D\n")
    fresh = source.p4.fetch_client("-t", source.name, f"{source.name}-new")
    assert fresh["View"] == [f"{source.depot}/... //{source.name}-new/..."]
    assert fresh["Options"].split()[:2] == ["noallwrite", "clobber"]
    assert fresh["LineEnd"] == "local"
    assert fresh["Root"] == source.p4.cwd
    assert fresh["Description"] != "D\n"


def test_bad_clients_are_refused(ws: Workspace) -> None:
    spec = ws.p4.fetch_client("bad-one")
    for tag, value in (
        ("View", ["//nowhere/... //bad-one/..."]),
        ("View", ["//depot/... //other/..."]),
        ("View", ["//depot/... //bad-one/*"]),
        ("Options", "sideways"),
        ("LineEnd", "typewriter"),
        ("Client", "12345"),
        ("Client", "a@b"),
        ("Client", "depot"),
    ):
        with pytest.raises(P4Exception):
            ws.p4.save_client({**spec, tag: value})
    assert ws.p4.run("clients", "-e", "bad-one") == []


def test_a_client_of_another_host_is_refused(make: Make) -> None:
    ws = make(Host="elsewhere")
    assert refused(ws.p4, "sync") == 6239
    assert ws.p4.fetch_client()["Host"] == "elsewhere"


def test_a_locked_client_is_its_owners(server: LabServer, make: Make) -> None:
    _user(server, "uma", "secret-4")
    ws = make(Options="locked")
    uma = server.connect(client=ws.name, user="uma", password="secret-4")
    uma.cwd = str(ws.root)
    assert refused(uma, "sync") == 6238
    spec = uma.fetch_client()
    spec["Description"] = "mine now"
    with pytest.raises(P4Exception, match="Locked client"):
        uma.save_client(spec)
    assert refused(uma, "client", "-d", ws.name) == 6214


def test_deleting_a_client_is_refused_while_it_holds_work(make: Make) -> None:
    ws = make()
    ws.add({"a": "1"})
    ws.p4.run("edit", "a")
    assert refused(ws.p4, "client", "-d", ws.name) == 6215
    ws.p4.run("revert", "a")
    spec = ws.p4.fetch_change()
    spec["Description"] = "empty"
    number = ws.p4.save_change(spec)[0].split()[1]
    assert refused(ws.p4, "client", "-d", ws.name) == 6591
    ws.p4.run("change", "-d", number)
    assert ws.p4.run("client", "-d", ws.name) == [f"Client {ws.name} deleted."]
    assert refused(ws.p4, "client", "-d", ws.name) == 6178


def test_force_deletes_a_client_with_opened_files(make: Make) -> None:
    ws = make()
    ws.add({"a": "1"})
    ws.p4.run("edit", "a")
    assert ws.p4.run("client", "-d", "-f", ws.name) == [f"Client {ws.name} deleted."]
    assert ws.p4.run("opened", "-a", f"{ws.depot}/...") == []


def test_clients_are_listed_by_owner_and_name(ws: Workspace) -> None:
    (one,) = ws.p4.run("clients", "-e", ws.name)
    assert one["Owner"] == "cloneyard"
    assert one["Root"] == str(ws.root)
    assert int(one["Access"]) > 0
    assert ws.p4.run("clients", "-E", ws.name.upper())
    assert ws.p4.run("clients", "-u", "nobody-at-all") == []
    assert len(ws.p4.run("clients", "-m", "1")) == 1


# --- adding and submitting

AWKWARD: dict[str, bytes | str] = {
    "plain.txt": "text\n",
    "sp ace/ü é/名.txt": "unicode name\n",
    "at@sign": "1\n",
    "ha#sh": "2\n",
    "per%cent %40": "3\n",
    "st*ar": "4\n",
    "empty": "",
    "bin.dat": bytes(range(256)) * 20,
    "no-newline": "end",
    "crlf": "a\r\nb\r\n",
}


def test_awkward_files_make_the_round_trip(make: Make) -> None:
    one = make("one")
    one.write("run.sh", "#!/bin/sh\n", mode=0o755)
    one.write("tool", b"\x7fELF\0\1\2\3" * 9, mode=0o755)
    os.symlink("plain.txt", one.root / "link")
    one.p4.run("add", "run.sh", "tool", "link")
    one.add(dict(AWKWARD))
    types = {
        x["depotFile"].removeprefix(one.depot): x["type"]
        for x in one.p4.run("files", f"{one.depot}/...")
    }
    assert types["/run.sh"] == "text+x"
    assert types["/tool"] == "binary+x"
    assert types["/link"] == "symlink"
    assert types["/bin.dat"] == "binary"
    assert types["/at%40sign"] == "text"
    assert types["/per%25cent %2540"] == "text"

    two = make("two")
    two.p4.run("sync")
    assert two.tree() == one.tree()
    assert (two.root / "link").is_symlink()
    assert (two.root / "run.sh").stat().st_mode & stat.S_IXUSR
    assert not (two.root / "plain.txt").stat().st_mode & stat.S_IWUSR
    assert warned(two.p4, "reconcile", "-n", "-a", "-e", "-d") == [6827]
    assert warned(one.p4, "reconcile", "-n", "-a", "-e", "-d") == [6827]


def test_submitted_files_are_had_and_read_only(ws: Workspace) -> None:
    ws.add({"a": "1", "b": "2"})
    assert [x["haveRev"] for x in ws.p4.run("have")] == ["1", "1"]
    assert not (ws.root / "a").stat().st_mode & stat.S_IWUSR
    assert ws.p4.run("opened") == []


def test_the_description_and_files_of_a_change_are_told(ws: Workspace) -> None:
    number = ws.add(
        {"d/a": "1\n", "d/b": "2\n"}, message="Lorem ipsum dolor sit amet, x"
    )
    (entry,) = ws.p4.run("changes", "-m1", f"{ws.depot}/...")
    assert entry["change"] == number
    assert entry["path"] == f"{ws.depot}/d/*"
    assert len(entry["desc"]) <= 31
    (long,) = ws.p4.run("changes", "-l", "-m1", f"{ws.depot}/...")
    assert long["desc"] == "Lorem ipsum dolor sit amet, x"
    (record,) = ws.p4.run("describe", "-s", number)
    assert record["depotFile"] == [f"{ws.depot}/d/a", f"{ws.depot}/d/b"]
    assert record["fileSize"] == ["2", "2"]
    assert refused(ws.p4, "describe", "-s", "999999") == 6170


def test_edit_delete_and_re_add_make_revisions(ws: Workspace) -> None:
    ws.add({"a": "1"})
    ws.edit("a", "2")
    ws.p4.run("delete", "a")
    assert not (ws.root / "a").exists()
    ws.submit()
    assert ws.p4.run("have") == []
    ws.add({"a": "3"})
    (log,) = ws.p4.run_filelog(f"{ws.depot}/a")
    assert [(r.rev, r.action) for r in log.revisions] == [
        (4, "add"),
        (3, "delete"),
        (2, "edit"),
        (1, "add"),
    ]


def test_adding_what_exists_or_is_opened_is_told(ws: Workspace) -> None:
    ws.add({"a": "1"})
    assert "can't add existing file" in ws.p4.run("add", "a")[0]
    ws.write("b")
    ws.p4.run("add", "b")
    assert "currently opened for add" in ws.p4.run("add", "b")[0]
    assert refused(ws.p4, "add", "st*ar") == 6226


def test_nothing_to_submit_is_an_error(ws: Workspace) -> None:
    assert refused(ws.p4, "submit", "-d", "x") == 7218


def test_a_form_submits_its_files_alone(ws: Workspace) -> None:
    ws.write("a")
    ws.write("b")
    ws.p4.run("add", "a", "b")
    spec = ws.p4.fetch_change()
    assert len(spec["Files"]) == 2
    spec["Description"], spec["Files"] = "only a", [f"{ws.depot}/a"]
    assert "submittedChange" in ws.p4.run_submit(spec)[-1]
    (left,) = ws.p4.run("opened")
    assert left["depotFile"] == f"{ws.depot}/b"
    assert left["haveRev"] == "none"


def test_a_numbered_change_gathers_files_and_is_submitted(ws: Workspace) -> None:
    ws.write("a")
    spec = ws.p4.fetch_change()
    spec["Description"] = "numbered"
    number = ws.p4.save_change(spec)[0].split()[1]
    ws.p4.run("add", "-c", number, "a")
    assert ws.p4.run("opened", "-c", number)[0]["change"] == number
    (pending,) = ws.p4.run("changes", "-s", "pending", "-c", ws.name)
    assert pending["change"] == number
    assert "can't be deleted" in ws.p4.run("change", "-d", number)[0]
    ws.p4.run("reopen", "-c", "default", "a")
    ws.p4.run("reopen", "-c", number, "-t", "+x", "a")
    assert ws.p4.run("opened")[0]["type"] == "text+x"
    assert ws.p4.run("submit", "-c", number)[-1]["submittedChange"] == number


def test_an_older_number_is_renamed_when_it_is_submitted(make: Make) -> None:
    one, two = make("one"), make("two")
    one.write("a")
    spec = one.p4.fetch_change()
    spec["Description"] = "slow"
    number = one.p4.save_change(spec)[0].split()[1]
    one.p4.run("add", "-c", number, "a")
    later = two.add({"b": "1"})
    final = one.p4.run("submit", "-c", number)[-1]["submittedChange"]
    assert int(final) > int(later) > int(number)
    assert one.p4.run("describe", "-s", final)[0]["desc"] == "slow\n"
    assert refused(one.p4, "describe", "-s", number) == 6170


def test_an_outdated_edit_is_refused_and_stays_in_its_change(make: Make) -> None:
    one, two = make("one"), make("two")
    one.add({"a": "1"})
    two.p4.run("sync")
    two.p4.run("edit", "a")
    one.edit("a", "2")
    two.write("a", "3")
    assert refused(two.p4, "submit", "-d", "late") == 7210
    (opened,) = two.p4.run("opened")
    assert opened["change"].isdecimal()
    assert (two.root / "a").read_text() == "3"


def test_a_missing_file_aborts_the_submit(ws: Workspace) -> None:
    ws.write("a")
    ws.p4.run("add", "a")
    (ws.root / "a").unlink()
    refused(ws.p4, "submit", "-d", "gone")
    assert ws.p4.run("files", f"{ws.depot}/...") == []
    assert len(ws.p4.run("opened")) == 1


def test_unchanged_files_follow_the_submit_option(ws: Workspace) -> None:
    ws.add({"a": "1", "b": "1"})
    ws.p4.run("edit", "a", "b")
    ws.write("a", "2")
    ws.p4.run("submit", "-f", "revertunchanged", "-d", "half")
    assert ws.p4.run("opened") == []
    revisions = {
        x["depotFile"][-1]: x["rev"] for x in ws.p4.run("files", f"{ws.depot}/...")
    }
    assert revisions == {"a": "2", "b": "1"}


# --- reverting


def test_revert_brings_the_file_back(ws: Workspace) -> None:
    ws.add({"a": "1", "b": "1"})
    ws.p4.run("edit", "a")
    ws.write("a", "changed")
    ws.p4.run("delete", "b")
    ws.write("c")
    ws.p4.run("add", "c")
    actions = {x["depotFile"][-1]: x["action"] for x in ws.p4.run("revert", "...")}
    assert actions == {"a": "reverted", "b": "reverted", "c": "abandoned"}
    assert ws.tree() == {"a": b"1", "b": b"1", "c": b"x\n"}
    assert warned(ws.p4, "revert", "...") == [6526]


def test_revert_unchanged_keeps_what_was_changed(ws: Workspace) -> None:
    ws.add({"a": "1", "b": "1"})
    ws.p4.run("edit", "a", "b")
    ws.write("a", "2")
    assert [x["depotFile"][-1] for x in ws.p4.run("revert", "-a", "...")] == ["b"]
    assert [x["depotFile"][-1] for x in ws.p4.run("opened")] == ["a"]


def test_an_administrator_clears_what_another_client_has_open(make: Make) -> None:
    one, two = make("one"), make("two")
    one.add({"a": "1"})
    one.p4.run("edit", "a")
    one.write("a", "work")
    (item,) = two.p4.run("opened", "-C", one.name)
    assert item["client"] == one.name
    (record,) = two.p4.run("revert", "-C", one.name, f"{one.depot}/...")
    assert record["action"] == "cleared"
    assert (one.root / "a").read_text() == "work"


# --- syncing


@pytest.fixture
def history(make: Make) -> tuple[Workspace, list[str]]:
    """A depot directory with three changes: add a b c, edit a, delete b."""
    ws = make("history")
    numbers = [ws.add({"a": "1", "d/b": "1", "d/c": "1"}), ws.edit("a", "22")]
    ws.p4.run("delete", "d/b")
    numbers.append(ws.submit())
    return ws, numbers


def _have(ws: Workspace) -> dict[str, str]:
    return {
        x["depotFile"].removeprefix(ws.depot + "/"): x["haveRev"]
        for x in ws.p4.run("have")
    }


def test_sync_to_a_change_and_on_to_the_head(
    history: tuple[Workspace, list[str]], make: Make
) -> None:
    _, numbers = history
    ws = make()
    first = ws.p4.run("sync", f"@{numbers[0]}")
    assert [x["action"] for x in first] == ["added"] * 3
    assert first[0]["totalFileCount"] == "3"
    assert first[0]["change"] == numbers[0]
    assert first[0]["clientFile"] == str(ws.root / "a")
    actions = {x["depotFile"][-1]: x["action"] for x in ws.p4.run("sync")}
    assert actions == {"a": "updated", "b": "deleted"}
    assert ws.tree() == {"a": b"22", "d/c": b"1"}
    assert warned(ws.p4, "sync") == [6532]
    assert [x["action"] for x in ws.p4.run("sync", "#none")] == ["deleted"] * 2
    assert ws.tree() == {}


def test_revision_specifiers_choose_what_is_synced(
    history: tuple[Workspace, list[str]], make: Make
) -> None:
    source, numbers = history
    ws = make()
    for spec, expected in (
        ("...#1", {"a": "1", "d/b": "1", "d/c": "1"}),
        ("...#head", {"a": "2", "d/c": "1"}),
        ("...#none", {}),
        (f"...@{numbers[1]}", {"a": "2", "d/b": "1", "d/c": "1"}),
        (f"...@{source.name}", {"a": "2", "d/c": "1"}),
        (f"...@{numbers[0]}", {"a": "1", "d/b": "1", "d/c": "1"}),
        ("...@now", {"a": "2", "d/c": "1"}),
        ("d/...@2001/01/01", {"a": "2"}),
        ("d/...", {"a": "2", "d/c": "1"}),
    ):
        ws.p4.run("sync", spec)
        assert _have(ws) == expected, spec


def test_missing_revisions_are_named_by_their_kind(
    history: tuple[Workspace, list[str]], make: Make
) -> None:
    _, numbers = history
    ws = make()
    for argument, number in (
        (f"{ws.depot}/nothing", 6519),
        (f"{ws.depot}/a@{int(numbers[0]) - 1}", 6538),
        (f"{ws.depot}/a#99", 6542),
        (f"{ws.depot}/a@1999/01/01", 6539),
        (f"{ws.depot}/a@{ws.name}", 6540),
    ):
        assert warned(ws.p4, "files", argument) == [number], argument
    assert refused(ws.p4, "files", f"{ws.depot}/a@no-such-thing") == 6245
    assert refused(ws.p4, "files", f"{ws.depot}/a#x") == 6161


def test_a_sync_of_what_is_deleted_or_none_is_up_to_date(
    history: tuple[Workspace, list[str]], make: Make
) -> None:
    ws = make()
    assert warned(ws.p4, "sync", "d/b") == [6532]
    assert warned(ws.p4, "sync", "#none") == [6532]
    assert warned(ws.p4, "sync", "d/nothing") == [6519]
    assert warned(ws.p4, "sync", "//depot/somewhere/else") == [6519]


def test_flush_writes_the_have_list_and_no_file(
    history: tuple[Workspace, list[str]], make: Make
) -> None:
    source, numbers = history
    ws = make()
    assert len(ws.p4.run("flush", f"@{numbers[0]}")) == 3
    assert ws.tree() == {}
    assert _have(ws) == {"a": "1", "d/b": "1", "d/c": "1"}
    actions = {x["depotFile"][-1]: x["action"] for x in ws.p4.run("sync", "-k")}
    assert actions == {"a": "updated", "b": "deleted"}
    assert _have(ws) == {"a": "2", "d/c": "1"}
    source.p4.run("sync", "a#1")
    ws.p4.run("flush", "-q", f"@{source.name}")
    assert _have(ws) == {"a": "1", "d/c": "1"}
    ws.p4.run("flush", "#none")
    assert _have(ws) == {}


def test_a_flushed_copy_of_the_files_is_clean(
    history: tuple[Workspace, list[str]], make: Make
) -> None:
    source, _ = history
    ws = make()
    for name, content in source.tree().items():
        ws.write(name, content)
    ws.p4.run("flush", f"@{source.name}")
    assert warned(ws.p4, "reconcile", "-n", "-a", "-e", "-d") == [6827]
    assert warned(ws.p4, "sync") == [6532]


def test_sync_options(history: tuple[Workspace, list[str]], make: Make) -> None:
    ws = make()
    assert len(ws.p4.run("sync", "-n")) == 2
    assert _have(ws) == {}
    assert len(ws.p4.run("sync", "-m", "1")) == 1
    (totals,) = ws.p4.run("sync", "-q")
    assert totals["totalFileCount"] == "1"
    assert [x["action"] for x in ws.p4.run("sync", "-f")] == ["refreshed"] * 2
    other = make("populate")
    other.p4.run("sync", "-p")
    assert sorted(other.tree()) == ["a", "d/c"]
    assert _have(other) == {}


def test_sync_does_not_clobber_and_safe_sync_does_not_overwrite(
    history: tuple[Workspace, list[str]], make: Make
) -> None:
    _, numbers = history
    ws = make()
    ws.p4.run("sync", f"@{numbers[0]}")
    (ws.root / "a").chmod(0o644)
    (ws.root / "a").write_text("mine")
    assert refused(ws.p4, "sync", "a") == 8196
    assert _have(ws)["a"] == "1"
    assert (ws.root / "a").read_text() == "mine"
    (ws.root / "a").chmod(0o444)
    ws.p4.run("sync", "-s", "a")
    assert (ws.root / "a").read_text() == "mine"
    ws.p4.run("sync", "-f", "a")
    assert (ws.root / "a").read_text() == "22"


def test_a_changed_view_moves_and_removes_files(make: Make) -> None:
    ws = make()
    ws.add({"a/f": "1", "b/f": "2"})
    spec = ws.p4.fetch_client()
    spec["View"] = [f"{ws.depot}/a/... //{ws.name}/moved/..."]
    ws.p4.save_client(spec)
    ws.p4.run("sync")
    assert ws.tree() == {"moved/f": b"1"}
    assert ws.p4.run("have")[0]["clientFile"] == f"//{ws.name}/moved/f"


def test_views_with_exclusions_overlays_and_blanks(make: Make) -> None:
    source = make("source")
    source.add({"a/f": "a", "a/x/f": "ax", "b/f": "b", "b/g": "g", "s p/f": "s"})
    ws = make("viewed")
    spec = ws.p4.fetch_client()
    depot, name = ws.depot, ws.name
    spec["View"] = [
        f"{depot}/a/... //{name}/one/...",
        f"-{depot}/a/x/... //{name}/one/x/...",
        f"+{depot}/b/... //{name}/one/...",
        f'"{depot}/s p/..." "//{name}/t w/..."',
        f"{depot}/%%1/g //{name}/g-%%1",
    ]
    ws.p4.save_client(spec)
    ws.p4.run("sync")
    assert ws.tree() == {"one/f": b"b", "g-b": b"g", "t w/f": b"s"}
    assert ws.p4.run("where", f"{depot}/a/x/f") == []
    assert f"{depot}/a/x/f" not in {
        x["depotFile"] for x in ws.p4.run("files", f"//{name}/...")
    }
    assert ws.p4.run("where", "t w/f")[0]["depotFile"] == f"{depot}/s p/f"


def test_an_opened_file_is_not_overwritten(
    history: tuple[Workspace, list[str]], make: Make
) -> None:
    _, numbers = history
    ws = make()
    ws.p4.run("sync", f"@{numbers[0]}")
    ws.p4.run("edit", "a")
    ws.write("a", "mine")
    said = ws.p4.run("sync")
    assert any("is opened and not being changed" in str(x) for x in said)
    assert (ws.root / "a").read_text() == "mine"


def test_modtime_clients_get_the_submitters_time(make: Make) -> None:
    one = make("one")
    path = one.write("a", "1")
    os.utime(path, (1_600_000_000, 1_600_000_000))
    one.p4.run("add", "a")
    one.submit()
    two = make("two", Options="modtime")
    two.p4.run("sync")
    assert int((two.root / "a").stat().st_mtime) == 1_600_000_000


def test_line_ends_follow_the_client(make: Make) -> None:
    one = make("one")
    one.add({"a": "1\n2\n"})
    two = make("two", LineEnd="win")
    two.p4.run("sync")
    assert (two.root / "a").read_bytes() == b"1\r\n2\r\n"
    assert warned(two.p4, "reconcile", "-n") == [6827]


# --- reconciling


def test_reconcile_finds_edits_deletes_and_adds(ws: Workspace) -> None:
    # Written first: the client remembers which directories had none.
    ws.write(".p4ignore", "*.o\nbuild/\n")
    ws.add({"edited": "1", "deleted": "1", "same": "1"})
    for name in ("edited", "deleted"):
        (ws.root / name).chmod(0o644)
    ws.write("edited", "2")
    (ws.root / "deleted").unlink()
    for name in ("new", "d/new @1", "x.o", "build/out"):
        ws.write(name, "n")
    found = {
        x["clientFile"].removeprefix(f"{ws.root}/"): x["action"]
        for x in ws.p4.run("reconcile", "-n", "-a", "-e", "-d")
        if isinstance(x, dict)
    }
    assert found == {
        "edited": "edit",
        "deleted": "delete",
        "new": "add",
        "d/new @1": "add",
        ".p4ignore": "add",
    }
    only = [x["action"] for x in ws.p4.run("reconcile", "-n", "-e", "-d")]
    assert sorted(only) == ["delete", "edit"]
    assert "x.o" in str(ws.p4.run("reconcile", "-n", "-a", "-I"))
    assert len(ws.p4.run("reconcile", "-n", "d/...")) == 1
    ws.p4.run("reconcile")
    assert len(ws.p4.run("opened")) == 5
    ws.submit()
    assert warned(ws.p4, "reconcile", "-n") == [6827]


def test_status_previews_relative_names(ws: Workspace) -> None:
    ws.write("d/new")
    ws.p4.tagged = False
    assert ws.p4.run("status") == [
        f"d/new - reconcile to add {ws.depot}/d/new#1",
    ]
    assert ws.p4.run("opened") == []


# --- reports


def test_files_have_where_and_fstat_agree(ws: Workspace) -> None:
    number = ws.add({"d/f": "12345"})
    (file,) = ws.p4.run("files", f"{ws.depot}/...")
    assert (file["rev"], file["change"], file["action"]) == ("1", number, "add")
    (have,) = ws.p4.run("have", "d/f")
    assert have["path"] == str(ws.root / "d/f")
    assert have["clientFile"] == f"//{ws.name}/d/f"
    (where,) = ws.p4.run("where", "d/f")
    assert where["path"] == have["path"]
    (stats,) = ws.p4.run("fstat", "-Ol", "d/f")
    assert stats["clientFile"] == have["path"]
    assert stats["fileSize"] == "5"
    assert stats["digest"] == "827CCB0EEA8A706C4C34A16891F84E7B"
    assert ws.p4.run("fstat", "-T", "depotFile,haveRev", "d/f") == [
        {"depotFile": file["depotFile"], "haveRev": "1"}
    ]
    assert ws.p4.run("dirs", f"{ws.depot}/*")[0]["dir"] == f"{ws.depot}/d"
    assert ws.p4.run("dirs", "-H", f"{ws.depot}/*")[0]["dir"] == f"{ws.depot}/d"
    before = int(number) - 1
    assert warned(ws.p4, "dirs", f"{ws.depot}/*@{before}") != []
    ws.p4.run("sync", "-k", f"{ws.depot}/...#none")
    assert warned(ws.p4, "dirs", "-H", f"{ws.depot}/*") != []
    assert warned(ws.p4, "have", f"{ws.depot}/nothing") == [6520]


def test_print_gives_content_of_every_kind(ws: Workspace) -> None:
    binary = bytes(range(256)) * 2000
    ws.add({"t": "text ü\n", "b": binary})
    record, text = ws.p4.run_print(f"{ws.depot}/t")
    assert (record["rev"], text) == ("1", "text ü\n")
    assert ws.p4.run_print("-q", f"{ws.depot}/b")[-1] == binary
    target = ws.root / "out"
    ws.p4.run("print", "-q", "-o", str(target), f"{ws.depot}/b")
    assert target.read_bytes() == binary


def test_untagged_reports_are_lines(ws: Workspace) -> None:
    number = ws.add({"a": "1"})
    ws.p4.tagged = False
    depot, name = ws.depot, ws.name
    assert ws.p4.run("files", f"{depot}/...") == [
        f"{depot}/a#1 - add change {number} (text)"
    ]
    assert ws.p4.run("have") == [f"{depot}/a#1 - {ws.root}/a"]
    assert ws.p4.run("where", "a") == [f"{depot}/a //{name}/a {ws.root}/a"]
    assert ws.p4.run("sync", "-f") == [f"{depot}/a#1 - refreshing {ws.root}/a"]
    (line,) = ws.p4.run("changes", "-m1", f"{depot}/...")
    assert line.startswith(f"Change {number} on ")
    assert ws.p4.run("edit", "a") == [f"{depot}/a#1 - opened for edit"]
    assert ws.p4.run("opened") == [f"{depot}/a#1 - edit default change (text)"]
    assert ws.p4.run("revert", "a") == [f"{depot}/a#1 - was edit, reverted"]
    assert ws.p4.run("counter", "no-such") == ["0"]


def test_counters_and_depots(ws: Workspace) -> None:
    assert ws.p4.run("counter", f"c-{ws.name}")[0]["value"] == "0"
    ws.p4.run("counter", f"c-{ws.name}", "7")
    assert ws.p4.run("counter", "-i", f"c-{ws.name}")[0]["value"] == "8"
    assert int(ws.p4.run("counter", "change")[0]["value"]) >= 0
    assert {"depot"} <= {x["name"] for x in ws.p4.run("depots")}
    spec = ws.p4.fetch_depot("second")
    assert ws.p4.save_depot(spec) == ["Depot second saved."]
    assert refused(ws.p4, "depot", "-d", "third") == 6176
    assert ws.p4.run("depot", "-d", "second") == ["Depot second deleted."]


# --- many at once, and things going wrong


def test_concurrent_submitters_lose_nothing(make: Make) -> None:
    makers = [make(f"w{n}") for n in range(10)]

    def work(ws: Workspace) -> list[str]:
        return [ws.add({f"{ws.name}-{n}": f"{n}"}) for n in range(5)]

    with ThreadPoolExecutor(10) as pool:
        numbers = [number for found in pool.map(work, makers) for number in found]
    assert len(set(numbers)) == 50
    depot = makers[0].depot
    assert len(makers[0].p4.run("files", f"{depot}/...")) == 50
    assert len(makers[0].p4.run("changes", f"{depot}/...")) == 50


def test_one_of_many_editors_of_a_file_wins(make: Make) -> None:
    first = make("first")
    first.add({"f": "0"})
    editors = [make(f"e{n}") for n in range(5)]
    for ws in editors:
        ws.p4.run("sync")
        ws.p4.run("edit", "f")
        ws.write("f", ws.name)

    def submit(ws: Workspace) -> bool:
        try:
            ws.p4.run("submit", "-d", "x")
        except P4Exception:
            return False
        return True

    with ThreadPoolExecutor(5) as pool:
        results = list(pool.map(submit, editors))
    assert results.count(True) == 1
    winner = editors[results.index(True)]
    assert first.p4.run_print("-q", f"{first.depot}/f")[-1] == winner.name


def test_a_killed_server_loses_no_acknowledged_submit(tmp_path: Path) -> None:
    with lab_server(tmp_path) as server:
        ws = workspace(server, tmp_path, name="ws", depot="//depot")
        for round_number in range(3):
            number = ws.add({f"f{round_number}": str(round_number)})
            server.kill()
            server.start()
            ws.p4.disconnect()
            ws.p4.connect()
            assert ws.p4.run("changes", "-m1")[0]["change"] == number
            printed = ws.p4.run_print("-q", f"//depot/f{round_number}")
            assert printed[-1] == str(round_number)


@pytest.fixture
def faulty(tmp_path: Path) -> Iterator[tuple[LabServer, Workspace]]:
    with lab_server(tmp_path) as running:
        yield running, workspace(running, tmp_path, name="ws", depot="//depot")


def test_a_dropped_connection_before_or_after_the_effect(
    faulty: tuple[LabServer, Workspace],
) -> None:
    server, ws = faulty
    ws.write("a")
    ws.p4.run("add", "a")
    for moment, submitted in (("before", 0), ("after", 1)):
        server.faults({"command": "submit", "drop": moment, "times": 1})
        with pytest.raises(P4Exception):
            ws.p4.run("submit", "-d", "x")
        ws.p4.disconnect()
        ws.p4.connect()
        assert len(ws.p4.run("changes", "-s", "submitted")) == submitted


def test_errors_and_latency_come_and_go_while_it_runs(
    faulty: tuple[LabServer, Workspace],
) -> None:
    server, ws = faulty
    server.faults({"command": "sync", "error": "resource pressure", "times": 2})
    assert refused(ws.p4, "sync") == refused(ws.p4, "sync") == 7192
    assert warned(ws.p4, "sync") == [6519]
    server.faults({"command": "*", "latency_seconds": 0.3})
    started = time.monotonic()
    ws.p4.run("users")
    assert time.monotonic() - started >= 0.3


def test_an_rsh_port_shares_the_root_with_the_listener(
    faulty: tuple[LabServer, Workspace],
) -> None:
    server, ws = faulty
    ws.add({"a": "over tcp"})
    p4 = P4()
    p4.port = f"rsh:{sys.executable} -m provisioner.lab.perforce -r {server.root} -i"
    p4.user, p4.client, p4.password = "cloneyard", "ws", server.password
    p4.charset, p4.exception_level = "none", 1
    before = os.getcwd()
    os.chdir(Path(__file__).parents[2])
    try:
        p4.connect()
    finally:
        os.chdir(before)
    p4.cwd = str(ws.root)
    assert p4.run_print("-q", "//depot/a")[-1] == "over tcp"
    for number in range(300):
        ws.write(f"many/{number}", str(number))
    p4.run("reconcile")
    p4.run("submit", "-d", "over rsh")
    p4.disconnect()
    assert len(ws.p4.run("files", "//depot/many/...")) == 300


# --- shelving


def _shelve(ws: Workspace, *files: str) -> str:
    spec = ws.p4.fetch_change()
    spec["Description"] = "shelf"
    spec["Files"] = []
    number: str = ws.p4.save_change(spec)[0].split()[1]
    ws.p4.run("reopen", "-c", number, *files)
    ws.p4.run("shelve", "-c", number)
    return number


def test_a_shelf_keeps_work_for_another_client(make: Make) -> None:
    one, two = make("one"), make("two")
    one.add({"a": "1", "gone": "1"})
    one.p4.run("edit", "a")
    one.write("a", "work")
    one.p4.run("delete", "gone")
    one.write("new", "n")
    one.p4.run("add", "new")
    number = _shelve(one, "...")
    (listed,) = two.p4.run("changes", "-s", "shelved", "-c", one.name)
    assert listed["change"] == number
    shown = two.p4.run("describe", "-s", "-S", number)[0]
    assert shown["action"] == ["edit", "delete", "add"]
    assert two.p4.run_print("-q", f"{one.depot}/a@={number}")[-1] == "work"
    assert refused(one.p4, "submit", "-c", number) == 7578

    two.p4.run("sync")
    two.p4.run("unshelve", "-s", number)
    assert (two.root / "a").read_text() == "work"
    assert (two.root / "new").read_text() == "n"
    assert {x["action"] for x in two.p4.run("opened")} == {"edit", "delete", "add"}
    two.submit()
    assert two.p4.run_print("-q", f"{one.depot}/a")[-1] == "work"


def test_shelves_keep_their_client_from_being_deleted(make: Make) -> None:
    ws, other = make("shelver"), make("other")
    ws.add({"a": "1"})
    ws.p4.run("edit", "a")
    number = _shelve(ws, "a")
    ws.p4.run("revert", "a")
    assert refused(other.p4, "client", "-d", ws.name) == 6668
    assert refused(other.p4, "client", "-d", "-f", ws.name) == 6668
    assert other.p4.run("client", "-d", "-f", "-Fs", ws.name)
    assert other.p4.run("changes", "-s", "shelved", "-c", ws.name)
    other.p4.run("shelve", "-d", "-f", "-c", number)
    assert other.p4.run("changes", "-s", "shelved", "-c", ws.name) == []
    assert "deleted" in other.p4.run("change", "-d", "-f", number)[0]


def test_a_shelf_can_go_with_its_client(make: Make) -> None:
    ws, other = make("shelver"), make("other")
    ws.add({"a": "1"})
    ws.p4.run("edit", "a")
    number = _shelve(ws, "a")
    assert other.p4.run("client", "-d", "-f", "-Fd", ws.name)
    assert refused(other.p4, "describe", "-s", number) == 6170


# --- protections


def test_protections_hide_files_and_tell_who_may_read_them(
    server: LabServer, make: Make
) -> None:
    _user(server, "vera", "secret-5")
    ws = make()
    ws.add({"open/f": "1", "secret/f": "2"})
    spec = ws.p4.fetch_protect()
    before = list(spec["Protections"])
    assert "super user cloneyard * //..." in before
    spec["Protections"] = [
        "write user * * //...",
        f"list user vera * -{ws.depot}/secret/...",
        "super user cloneyard * //...",
    ]
    ws.p4.save_protect(spec)
    try:
        vera = server.connect(client="vera-ws", user="vera", password="secret-5")
        assert [x["depotFile"] for x in vera.run("files", f"{ws.depot}/...")] == [
            f"{ws.depot}/open/f"
        ]
        assert warned(vera, "print", f"{ws.depot}/secret/f") == [6519]
        assert vera.run("protects", "-m") == [{"permMax": "write"}]
        secret = f"{ws.depot}/secret/f"
        # -m looks at neither path nor exclusions, -M at both.
        assert ws.p4.run("protects", "-m", "-u", "vera", secret) == [
            {"permMax": "write"}
        ]
        assert vera.run("protects", "-M", secret) == [{"permMax": "none"}]
        assert vera.run("protects", "-M", f"{ws.depot}/...") == [{"permMax": "write"}]
        lines = ws.p4.run("protects", "-u", "vera", f"{ws.depot}/...")
        assert [("unmap" in line) for line in lines] == [False, True]
        assert refused(vera, "protects", "-u", "cloneyard") == 6185
        assert refused(vera, "protect", "-o") == 6185
    finally:
        ws.p4.save_protect({**spec, "Protections": before})


# --- streams


def test_a_stream_gives_its_clients_their_view(
    server: LabServer, tmp_path: Path
) -> None:
    p4 = server.connect(client="stream-ws")
    p4.save_depot({**p4.fetch_depot("str"), "Type": "stream"})
    main = p4.fetch_stream("-t", "mainline", "//str/main")
    main["Paths"] = ["share ...", "exclude docs/...", "import lib/... //depot/lib/..."]
    main["Ignored"] = [".o"]
    assert p4.save_stream(main) == ["Stream //str/main saved."]
    dev = p4.fetch_stream("-t", "development", "-P", "//str/main", "//str/dev")
    dev["Remapped"] = ["a/... b/..."]
    p4.save_stream(dev)
    client = p4.fetch_client("-S", "//str/main", "stream-ws")
    client["Root"], client["Host"] = str(tmp_path), ""
    assert client["View"] == [
        "//str/main/... //stream-ws/...",
        "-//str/main/docs/... //stream-ws/docs/...",
        "//depot/lib/... //stream-ws/lib/...",
        "-//str/main/....o //stream-ws/....o",
    ]
    p4.save_client(client)
    assert p4.fetch_client()["Stream"] == "//str/main"
    assert p4.run("info")[0]["clientStream"] == "//str/main"
    (tmp_path / "f").write_text("1")
    p4.cwd = str(tmp_path)
    p4.run("add", "f")
    p4.run("submit", "-d", "in a stream")
    assert p4.run("have")[0]["depotFile"] == "//str/main/f"
    switched = p4.fetch_client()
    switched["Stream"] = "//str/dev"
    p4.save_client(switched)
    assert p4.fetch_client()["View"] == [
        "//str/dev/... //stream-ws/...",
        "-//str/dev/docs/... //stream-ws/docs/...",
        "//depot/lib/... //stream-ws/lib/...",
        "//str/dev/a/... //stream-ws/b/...",
    ]
    assert p4.run("sync")[0]["action"] == "deleted"
    assert {x["Stream"] for x in p4.run("streams")} == {"//str/main", "//str/dev"}
    assert refused(p4, "stream", "-d", "//str/dev") == 6213


# --- labels and groups


def test_a_label_holds_revisions(ws: Workspace, make: Make) -> None:
    ws.add({"a": "1", "b": "1"})
    name = f"label-{ws.name}"
    ws.p4.save_label(ws.p4.fetch_label(name))
    assert len(ws.p4.run("tag", "-l", name, f"{ws.depot}/...")) == 2
    ws.edit("a", "2")
    other = make("labeled")
    other.p4.run("sync", f"@{name}")
    assert other.tree() == {"a": b"1", "b": b"1"}
    ws.p4.run("labelsync", "-l", name)
    assert other.p4.run("sync", f"@{name}")[0]["rev"] == "2"
    assert ws.p4.run("labels", "-e", name)[0]["Owner"] == "cloneyard"
    ws.p4.run("label", "-d", name)
    assert refused(ws.p4, "files", f"{ws.depot}/a@{name}") == 6245


def test_a_group_prolongs_logins_and_is_protected(server: LabServer) -> None:
    _user(server, "walt", "secret-6")
    admin = server.connect(client="none")
    spec = admin.fetch_group("builders")
    spec["Users"], spec["Timeout"] = ["walt"], "unlimited"
    assert admin.save_group(spec) == ["Group builders created."]
    walt = server.connect(client="none", user="walt", password="secret-6")
    assert int(walt.run_login(password="secret-6")[0]["TicketExpiration"]) > 10**8
    assert refused(walt, "group", "-d", "builders") == 6185
    assert admin.run("groups", "walt")[0]["group"] == "builders"


def test_a_quiet_sync_tells_its_progress(make: Make) -> None:
    class Told(P4Progress):  # type: ignore[misc]  # p4python carries no types
        def __init__(self) -> None:
            super().__init__()
            self.totals: list[int] = []
            self.positions: list[int] = []

        def setTotal(self, total: int) -> None:
            self.totals.append(total)

        def update(self, position: int) -> None:
            self.positions.append(position)

    one, two = make("one"), make("two")
    one.add({f"f{n}": "1" for n in range(20)})
    told = Told()
    two.p4.run("sync", "-q", progress=told)
    assert told.totals == [20]
    assert told.positions[-1] == 20
