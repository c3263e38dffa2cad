"""What the lab's reports and forms say where a server is exact about it."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from P4 import P4, P4Exception

from tests.support.lab_perforce import (
    LabServer,
    Workspace,
    refused,
    warned,
    workspace,
)

pytestmark = pytest.mark.timeout(90, method="thread")


@pytest.fixture
def mark() -> str:
    return f"m{uuid.uuid4().hex[:8]}"  # no name may be a number


@pytest.fixture
def ws(server: LabServer, tmp_path: Path, mark: str) -> Workspace:
    """A client with a file `a` of three revisions and a file `b` of one."""
    made = workspace(server, tmp_path, name=f"ws-{mark}", depot=f"//depot/{mark}")
    made.add({"a": "1\n", "b": "b\n"})
    made.edit("a", "2\n")
    made.edit("a", "3\n")
    return made


def untagged(p4: P4, *command: str) -> list[str]:
    with p4.at_exception_level(1):
        lines: list[str] = p4.run(*command, tagged=False)
    return lines


def changes_of(ws: Workspace) -> list[int]:
    """Return the changes of the client's files, the oldest first."""
    found = ws.p4.run("changes", f"{ws.depot}/...")
    return sorted(int(change["change"]) for change in found)


# --- opened


@pytest.mark.parametrize("arguments", [[], ["a"], ["-a", "//depot/..."]])
def test_records_of_opened_files_say_nothing_where_nothing_is_open(
    ws: Workspace, arguments: list[str]
) -> None:
    # git-p4 takes any answer for an opened file.
    assert ws.p4.run("opened", *arguments) == []
    assert ws.p4.warnings == []
    assert untagged(ws.p4, "opened", *arguments) == []
    assert "not opened" in ws.p4.warnings[0]


# --- relative revisions


@pytest.mark.parametrize(
    ("relation", "which", "expected"),
    [
        (">", 1, [3, 2]),
        (">=", 1, [3, 2, 1]),
        ("<", 2, [1]),
        ("<=", 2, [2, 1]),
        ("=", 2, [2]),
    ],
)
@pytest.mark.parametrize("sign", ["@", "#"])
def test_revisions_above_and_below(
    ws: Workspace, sign: str, relation: str, which: int, expected: list[int]
) -> None:
    number = which if sign == "#" else changes_of(ws)[which - 1]
    [found] = ws.p4.run("filelog", f"a{sign}{relation}{number}")
    assert found["rev"] == [str(each) for each in expected]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("@>{0},@<={1}", [2]),
        ("@>{0},<={1}", [2]),
        ("@>={0},@<{2}", [2, 1]),
        ("#>1,#<=2", [2]),
        ("#2,#<3", [2]),
        ("@{0},#2", [2, 1]),
        ("@>={0},@<={2},@<{2},@>{0}", [2]),
        ("#<=head", [3, 2, 1]),
        ("#>1,#<=head", [3, 2]),
        ("@={1}", [2]),
    ],
)
def test_ranges_have_relations_too(
    ws: Workspace, spec: str, expected: list[int]
) -> None:
    [found] = ws.p4.run("filelog", "a" + spec.format(*changes_of(ws)))
    assert found["rev"] == [str(each) for each in expected]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("#>head", "Can't yet do relative operations on '#head'"),
        ("#<head", "Can't yet do relative operations on '#head'"),
        ("#add", "the revision #add is not part of the lab"),
        ("#1,#delete", "the revision #delete is not part of the lab"),
        ("#x", "Invalid revision number 'x'"),
        ("@1,@2,@3,@4,@5", "Unintelligible revision specification"),
        ("@>=1,@>2020/01/01", "is not part of the lab"),
    ],
)
def test_what_cannot_be_in_a_range_is_refused_by_name(
    ws: Workspace, spec: str, said: str
) -> None:
    with pytest.raises(P4Exception, match=said):
        ws.p4.run("files", f"a{spec}")


def test_nothing_above_the_last_change(ws: Workspace) -> None:
    last = changes_of(ws)[-1]
    assert warned(ws.p4, "files", f"a@>{last}") == [6533]
    assert warned(ws.p4, "files", "a#>3") == [6537]
    assert warned(ws.p4, "files", "b#<1") == [6548]
    assert [c["change"] for c in ws.p4.run("changes", f"a@>={last}")] == [str(last)]


def test_what_is_above_a_client_is_refused_by_name(ws: Workspace) -> None:
    with pytest.raises(Exception, match=r"@>.* of a client is not part of the lab"):
        ws.p4.run("files", f"a@>{ws.name}")


# --- labels


def test_labels_that_have_a_file(ws: Workspace, mark: str) -> None:
    for name, file in ((f"l-a-{mark}", "a#2"), (f"l-b-{mark}", "b")):
        ws.p4.run("tag", "-l", name, file)

    def labels(*arguments: str) -> list[str]:
        return [label["label"] for label in ws.p4.run("labels", *arguments)]

    assert labels("a") == [f"l-a-{mark}"]
    assert labels(f"{ws.depot}/...") == [f"l-a-{mark}", f"l-b-{mark}"]
    assert labels("a#2,2") == [f"l-a-{mark}"]
    assert labels("a#3,3") == []
    assert ws.p4.warnings == []


def test_a_shelf_is_found_by_its_files(ws: Workspace) -> None:
    ws.p4.run("edit", "a")
    form = ws.p4.fetch_change()
    form["Description"] = "a shelf"
    number = str(ws.p4.save_change(form)[0]).split()[1]
    ws.p4.run("shelve", "-c", number)
    ws.p4.run("revert", "//...")
    found = ws.p4.run("changes", "-s", "shelved", f"{ws.depot}/...")
    assert [change["change"] for change in found] == [number]
    assert ws.p4.run("changes", "-s", "shelved", f"{ws.depot}/b") == []


def test_a_file_leaves_a_label_whatever_its_revision(ws: Workspace, mark: str) -> None:
    ws.p4.run("tag", "-l", mark, "a#1", "b")
    ws.p4.run("delete", "b")
    ws.submit()

    gone = ws.p4.run("tag", "-d", "-l", mark, "a", "b")

    assert [(file["rev"], file["action"]) for file in gone] == [
        ("1", "deleted"),
        ("1", "deleted"),
    ]
    assert warned(ws.p4, "files", f"{ws.depot}/...@{mark}") == [6541]
    assert warned(ws.p4, "tag", "-d", "-l", mark, "a") == [6522]
    assert untagged(ws.p4, "tag", "-l", mark, "a") == [f"{ws.depot}/a#3 - added"]


# --- files, submit


def test_all_revisions_of_files(ws: Workspace) -> None:
    found = ws.p4.run("files", "-a", f"{ws.depot}/...")
    assert [(f["depotFile"][-1], f["rev"]) for f in found] == [
        *(("a", "3"), ("a", "2"), ("a", "1")),
        ("b", "1"),
    ]
    assert [f["rev"] for f in ws.p4.run("files", "-a", "a#2")] == ["2", "1"]


def test_a_description_is_kept_as_it_was_given(ws: Workspace) -> None:
    number = ws.edit("a", "4\n")
    assert ws.p4.run("describe", "-s", number)[0]["desc"] == "change"


# --- forms


def test_an_empty_view_stays_empty(ws: Workspace) -> None:
    form = f"Client: {ws.name}\nRoot: {ws.root}\nView:\n"
    ws.p4.input = form
    ws.p4.run("client", "-i")

    assert "View" not in ws.p4.fetch_client()
    gone = [file["action"] for file in ws.p4.run("sync", "-n", "//...") if file]
    assert gone == ["deleted", "deleted"]
    # Without the field it is the view of a new client.
    ws.p4.input = form.replace("View:\n", "")
    ws.p4.run("client", "-i")
    assert ws.p4.fetch_client()["View"] == [f"//depot/... //{ws.name}/..."]


@pytest.mark.parametrize("line", ["//depot/...", "//depot/... //ws/... more"])
def test_a_view_line_has_two_words(ws: Workspace, line: str) -> None:
    ws.p4.input = f"Client: {ws.name}\nRoot: {ws.root}\nView:\n\t{line}\n"
    assert refused(ws.p4, "client", "-i") == 4140
    assert "Wrong number of words for field 'View'." in str(ws.p4.errors[0])


def test_who_is_new_has_the_address_of_their_client(
    server: LabServer, mark: str
) -> None:
    admin = server.connect(client="desk")
    assert admin.fetch_user(f"new-{mark}")["Email"] == f"new-{mark}@desk"


def test_a_deleted_file_of_an_overlay_hides_the_one_below(
    server: LabServer, tmp_path: Path, mark: str
) -> None:
    below = workspace(server, tmp_path, name=f"below-{mark}", depot=f"//depot/{mark}/1")
    above = workspace(server, tmp_path, name=f"above-{mark}", depot=f"//depot/{mark}/2")
    below.add({"f": "below\n", "g": "below\n"})
    above.add({"f": "above\n"})
    both = workspace(
        *(server, tmp_path),
        name=f"both-{mark}",
        depot=f"//depot/{mark}/1",
        View=[
            f"//depot/{mark}/1/... //both-{mark}/...",
            f"+//depot/{mark}/2/... //both-{mark}/...",
        ],
    )
    both.p4.run("sync")
    assert both.tree() == {"f": b"above\n", "g": b"below\n"}

    above.p4.run("delete", "f")
    above.submit()
    both.p4.run("sync")
    assert both.tree() == {"g": b"below\n"}


# --- fstat, describe, lists


def test_every_revision_of_a_file_is_told(ws: Workspace) -> None:
    found = ws.p4.run("fstat", "-Of", "-T", "depotFile, headRev", f"{ws.depot}/...")
    assert [(f["depotFile"][-1], f["headRev"]) for f in found] == [
        *(("a", "3"), ("a", "2"), ("a", "1")),
        ("b", "1"),
    ]
    assert [f["depotFile"][-1] for f in ws.p4.run("fstat", "-r", "a", "b")] == [
        *("a", "b")
    ]
    backwards = ws.p4.run("fstat", "-r", f"{ws.depot}/...")
    assert [f["depotFile"][-1] for f in backwards] == ["b", "a"]


def test_a_file_without_the_fields_is_a_failure(ws: Workspace) -> None:
    # Source: git's t9810 and t9815 say `! p4 fstat -T action FILE` of a closed file.
    with pytest.raises(P4Exception, match="no such field"):
        ws.p4.run("fstat", "-T", "action", "a")
    ws.p4.run("edit", "a")
    assert ws.p4.run("fstat", "-T", "action", "a") == [{"action": "edit"}]


def test_attributes_are_asked_for_and_there_are_none(ws: Workspace) -> None:
    assert ws.p4.run("fstat", "-Oa", "a") == ws.p4.run("fstat", "a")


def test_what_the_client_knows_is_left_out(ws: Workspace) -> None:
    ws.p4.run("edit", "a")
    for option in ("-Os", "-s"):
        [known] = ws.p4.run("fstat", option, "a")
        assert not {"clientFile", "haveRev", "action", "isMapped"} & known.keys()


def test_files_that_wait_for_a_resolve(
    ws: Workspace, server: LabServer, tmp_path: Path
) -> None:
    other = workspace(server, tmp_path, name=f"o-{ws.name}", depot=ws.depot)
    other.p4.run("sync")
    other.p4.run("edit", "a")
    ws.edit("a", "4\n")
    assert [f["depotFile"] for f in other.p4.run("fstat", "-Rn", "a", "b")] == [
        f"{ws.depot}/a"
    ]
    other.p4.run("sync")

    [waiting] = other.p4.run("fstat", "-Or", "-Ru", f"{ws.depot}/...")
    assert waiting["unresolved"] == "1"
    assert waiting["resolveFromFile"] == [f"{ws.depot}/a"]
    assert warned(other.p4, "fstat", "-Rr", f"{ws.depot}/...") == [6519]
    other.p4.run("resolve", "-ay")
    assert other.p4.run("fstat", "-Rr", "-Or", "a")[0]["resolved"] == "1"


def test_added_files_are_described_with_their_content(ws: Workspace) -> None:
    first = changes_of(ws)[0]
    with_content = "".join(untagged(ws.p4, "describe", "-a", "-du", str(first)))
    assert "+1\n" in with_content
    assert "+b\n" in with_content
    assert "+1\n" not in "".join(untagged(ws.p4, "describe", "-du", str(first)))


def test_branches_are_chosen(ws: Workspace, mark: str) -> None:
    for name in (f"One-{mark}", f"two-{mark}"):
        ws.p4.save_branch({"Branch": name, "View": ["//depot/a/... //depot/b/..."]})

    def branches(*options: str) -> list[str]:
        return [branch["branch"] for branch in ws.p4.run("branches", *options)]

    assert branches("-e", f"*-{mark}") == [f"One-{mark}", f"two-{mark}"]
    assert branches("-E", f"one-{mark}") == [f"One-{mark}"]
    assert branches("-e", f"*-{mark}", "-m", "1") == [f"One-{mark}"]
    assert branches("-u", "nobody") == []


def test_streams_are_chosen(server: LabServer, mark: str) -> None:
    admin = server.connect(client="neutral")
    admin.save_depot({"Depot": f"s{mark}", "Type": "stream", "Map": f"s{mark}/..."})
    for name, kind, parent in (
        ("main", "mainline", "none"),
        ("dev", "development", f"//s{mark}/main"),
    ):
        stream = {"Stream": f"//s{mark}/{name}", "Name": name, "Parent": parent}
        admin.save_stream({**stream, "Type": kind, "Paths": ["share ..."]})

    def streams(*options: str) -> list[str]:
        found = admin.run("streams", *options, f"//s{mark}/...")
        return [stream["Stream"].rpartition("/")[2] for stream in found]

    assert streams() == ["dev", "main"]
    assert streams("-m", "1") == ["dev"]
    assert streams("-F", "Type=mainline") == ["main"]
    assert streams("-F", f"Parent=//s{mark}/main") == ["dev"]


# --- types


def test_a_new_file_has_the_type_of_its_name(ws: Workspace, server: LabServer) -> None:
    admin = server.connect(client="neutral")
    assert admin.fetch_typemap().get("TypeMap", []) == []
    lines = [f"binary+w {ws.depot}/....bin", f"+l {ws.depot}/....art"]
    assert admin.save_typemap({"TypeMap": lines}) == ["Typemap saved."]
    try:
        assert admin.save_typemap({"TypeMap": lines}) == ["Typemap not changed."]
        assert admin.fetch_typemap()["TypeMap"] == lines
        for name in ("x.bin", "x.art", "x.txt"):
            ws.write(name)
        opened = ws.p4.run("add", "x.bin", "x.art", "x.txt")
        assert [file["type"] for file in opened] == ["binary+w", "text+l", "text"]
        ws.p4.run("revert", "-k", "//...")
        found = ws.p4.run("reconcile", "-n", "x.bin")
        assert [file["type"] for file in found] == ["binary+w"]
    finally:
        admin.save_typemap({"TypeMap": []})
    assert refused(admin, "typemap") == 7198


def test_a_type_nobody_knows_is_in_no_table(server: LabServer) -> None:
    admin = server.connect(client="neutral")
    admin.input = "TypeMap:\n\tnonsense //depot/...\n"
    assert refused(admin, "typemap", "-i") == 6165


def test_triggers_are_kept(server: LabServer) -> None:
    admin = server.connect(client="neutral")
    line = "check change-submit //depot/... /bin/true"
    try:
        assert admin.save_triggers({"Triggers": [line]}) == ["Triggers saved."]
        assert admin.fetch_triggers()["Triggers"] == [line]
    finally:
        admin.save_triggers({"Triggers": []})
    admin.input = "Triggers:\n\ttoo few words\n"
    assert refused(admin, "triggers", "-i") == 4140
    admin.input = "Triggers:\n\tname whenever //... command\n"
    assert refused(admin, "triggers", "-i") == 4144


def test_tables_are_for_administrators(server: LabServer, mark: str) -> None:
    person = server.person(f"p-{mark}")
    admin = server.connect(client="neutral")
    before = admin.fetch_protect()
    table = [f"write user p-{mark} * //...", f"super user {admin.user} * //..."]
    admin.save_protect({"Protections": table})
    try:
        for table_name in ("typemap", "triggers"):
            assert refused(person, table_name, "-o") == 6185
    finally:
        admin.save_protect(before)


def test_an_opened_file_is_typed_as_if_it_were_new(ws: Workspace) -> None:
    ws.p4.run("open", "a")
    ws.write("a", bytes(range(256)))
    ws.p4.run("revert", "-k", "a")
    (ws.root / "a").chmod(0o755)

    assert ws.p4.run("edit", "-t", "auto", "a")[0]["type"] == "binary+x"


def test_a_file_is_printed_where_a_program_reads_it(
    ws: Workspace, capfd: pytest.CaptureFixture[str]
) -> None:
    # The client writes it itself, with its own line ends and charset.
    assert ws.p4.run("print", "-q", "-o", "-", "a", "b") == []
    assert capfd.readouterr().out == "3\nb\n"
    assert not (ws.root / "-").exists()
    ws.add({"empty": ""})
    assert ws.p4.run("print", "-q", "empty") == [""]
    assert "".join(ws.p4.run("print", "-q", "-a", "a#2")) == "2\n1\n"
    assert len(ws.p4.run("print", "-m", "1", f"{ws.depot}/...")) == 2
