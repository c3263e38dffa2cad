"""A day in a workspace on the lab: what differs, cleaning up, changing one's mind."""

from __future__ import annotations

import re
import uuid
from pathlib import Path

import pytest
from P4 import P4Exception

from tests.support.lab_perforce import (
    LabServer,
    Workspace,
    refused,
    warned,
    workspace,
)

pytestmark = pytest.mark.timeout(90, method="thread")


@pytest.fixture
def ws(server: LabServer, tmp_path: Path) -> Workspace:
    """A client with four files, as they were submitted."""
    mark = uuid.uuid4().hex[:8]
    made = workspace(server, tmp_path, name=f"ws-{mark}", depot=f"//depot/{mark}")
    made.add({"a": "1\n2\n3\n", "b": "b\n", "c": "c\n", "bin": b"\0\1"})
    return made


def overwrite(ws: Workspace, name: str, content: str) -> None:
    (ws.root / name).chmod(0o644)
    ws.write(name, content)


def actions(ws: Workspace) -> dict[str, str]:
    return {x["depotFile"].rpartition("/")[2]: x["action"] for x in ws.p4.run("opened")}


# --- diff


def test_a_diff_shows_what_changed_in_opened_files(ws: Workspace) -> None:
    ws.p4.run("edit", "a", "bin")
    ws.write("a", "1\ntwo\n3\n")
    ws.write("bin", b"\0\2")
    overwrite(ws, "b", "not opened\n")

    text, *lines, binary, differ = ws.p4.run("diff")

    assert text["depotFile"] == f"{ws.depot}/a"
    assert lines == ["2c2", "< 2", "---", "> two"]
    assert binary["depotFile"] == f"{ws.depot}/bin"
    assert differ == "(... files differ ...)"
    unified = ws.p4.run("diff", "-du", "a")
    assert unified[-4:] == [" 1", "-2", "+two", " 3"]


def test_a_diff_against_a_revision_needs_no_open_file(ws: Workspace) -> None:
    ws.edit("a", "1\n2\nthree\n")

    assert ws.p4.run("diff", "a#1")[1:] == ["3c3", "< 3", "---", "> three"]
    assert len(ws.p4.run("diff", "-f", "a")) == 1
    assert ws.p4.run("diff", "-f", "-Od", "a") == []
    assert warned(ws.p4, "diff", "a") == [6526]


def test_files_are_listed_by_how_they_differ(ws: Workspace) -> None:
    ws.p4.run("edit", "a", "bin")
    ws.write("a", "changed\n")
    overwrite(ws, "b", "changed\n")
    (ws.root / "c").unlink()

    def listed(letter: str) -> dict[str, str]:
        return {
            x["depotFile"].rpartition("/")[2]: x.get("status", "")
            for x in ws.p4.run("diff", f"-s{letter}")
        }

    assert listed("a") == {"a": ""}
    assert listed("r") == {"bin": ""}
    assert listed("e") == {"b": ""}
    assert listed("d") == {"c": ""}
    assert listed("l") == {"b": "diff", "c": "missing"}
    ws.p4.run("revert", "a")
    assert warned(ws.p4, "diff", "-sa") == [6517]


# --- diff2


def test_two_revisions_are_held_against_each_other(ws: Workspace) -> None:
    ws.edit("a", "1\ntwo\n3\n4\n")
    ws.edit("bin", b"\0\2")
    a, other = f"{ws.depot}/a", f"{ws.depot}/bin"

    record, text = ws.p4.run("diff2", f"{a}#1", f"{a}#2")

    assert record == {
        **{"status": "content", "depotFile": a, "rev": "1", "type": "text"},
        **{"depotFile2": a, "rev2": "2", "type2": "text"},
    }
    assert text == "2c2\n< 2\n---\n> two\n3a4\n> 4\n"
    _, text = ws.p4.run("diff2", "-du0", "a#1", "a")
    assert text == "@@ -2,1 +2,1 @@\n-2\n+two\n@@ -3,0 +4,1 @@\n+4\n"
    _, text = ws.p4.run("diff2", "-ds", f"{a}#2", f"{a}#1")
    assert text == (
        "add 0 chunks 0 lines\ndeleted 1 chunks 1 lines\nchanged 1 chunks 1 / 1 lines\n"
    )
    assert ws.p4.run("diff2", f"{other}#1", other)[1] == "(... files differ ...)"
    ws.p4.tagged = False
    assert ws.p4.run("diff2", "-q", f"{a}#1", f"{a}#2") == [
        f"==== {a}#1 (text) - {a}#2 (text) ==== content"
    ]


def test_two_directories_are_held_against_each_other(ws: Workspace) -> None:
    files = {"x/same": "s\n", "x/gone": "g\n", "x/type": "t\n", "x/text": "1\n"}
    ws.add(files)
    ws.add({"y/same": "s\n", "y/new": "n\n", "y/type": "t\n", "y/text": "2"})
    ws.p4.run("edit", "-t", "text+x", "y/type")
    ws.p4.run("submit", "-d", "type")
    there = (f"{ws.depot}/x/...", f"{ws.depot}/y/...")

    def found(*words: str) -> dict[str, str]:
        records = [x for x in ws.p4.run("diff2", *words) if isinstance(x, dict)]
        # Without a first file, the client takes the 2 for the index of a list.
        paths = [(x["depotFile"], x["status"]) for x in records]
        return {
            (path[-1] if isinstance(path, list) else path).rpartition("/")[2]: status
            for path, status in paths
        }

    differing = {
        **{"gone": "left only", "new": "right only"},
        **{"text": "content", "type": "types"},
    }
    assert found(*there) == {**differing, "same": "identical"}
    assert found("-q", *there) == found("-Od", *there) == differing
    assert found(f"//{ws.name}/x/...", f"//{ws.name}/y/...") == found(*there)
    assert ws.p4.run("diff2", "-du", *there)[4] == (
        "@@ -1,1 +1,1 @@\n-1\n+2\n\\ No newline at end of file\n"
    )
    ws.p4.run("delete", "x/same")
    ws.p4.run("submit", "-d", "less")
    assert found(*there)["same"] == "right only"
    assert found(f"{ws.depot}/x/...#1", there[1])["same"] == "identical"
    ws.p4.tagged = False
    first, *_, last = ws.p4.run("diff2", "-q", *there)
    assert first == f"==== {ws.depot}/x/gone#1 - <none> ==="
    assert last.endswith(f"(text) - {ws.depot}/y/type#2 (text+x) ==== types")
    assert f"==== <none> - {ws.depot}/y/new#1 ====" in ws.p4.run("diff2", *there)


def test_a_long_text_is_compared_soon_or_by_name_alone(ws: Workspace) -> None:
    ws.add({"long": "\n" * 20_000, "longer": "\n" * 20_001})
    ws.edit("long", "\n" * 19_999 + "x\n")
    ws.edit("longer", "\n" * 20_001 + "x\n")

    assert ws.p4.run("diff2", "long#1", "long#2")[1].endswith("> x\n")
    assert ws.p4.run("diff2", "-q", "longer#1", "longer")[0]["status"] == "content"
    with pytest.raises(P4Exception, match="not part of the lab"):
        ws.p4.run("diff2", "longer#1", "longer")


def test_a_comparison_that_finds_nothing_says_why(ws: Workspace) -> None:
    a = f"{ws.depot}/a"
    assert warned(ws.p4, "diff2", "-q", a, a) == [6517]
    assert warned(ws.p4, "diff2", f"{ws.depot}/no/...", f"{ws.depot}/nor/...") == [6519]
    for words in (["a"], [f"{ws.depot}/...", a], ["-dc", a, a], ["-u", a, a]):
        with pytest.raises(P4Exception):
            ws.p4.run("diff2", *words)


# --- revert and tag


def test_a_revert_removes_added_files_where_it_is_told_to(ws: Workspace) -> None:
    ws.write("new", "new\n")
    ws.p4.run("add", "new")
    ws.p4.run("edit", "a")
    ws.write("a", "changed\n")

    preview = ws.p4.run("revert", "-w", "-n", "//...")
    assert [x["action"] for x in preview] == ["reverted", "deleted"]
    assert (ws.root / "new").exists()
    ws.p4.tagged = False
    assert ws.p4.run("revert", "-w", "new") == [
        f"{ws.depot}/new#none - was add, deleted"
    ]
    assert not (ws.root / "new").exists()
    ws.write("new", "new\n")
    ws.p4.run("add", "new")
    ws.p4.run("revert", "//...")
    assert (ws.root / "new").exists()
    assert (ws.root / "a").read_text() == "1\n2\n3\n"


def test_a_label_is_made_by_its_first_tag(ws: Workspace) -> None:
    name = f"label-{ws.name}"
    with pytest.raises(P4Exception, match="doesn't exist"):
        ws.p4.run("tag", "-d", "-l", name, "a")

    ws.p4.run("tag", "-l", name, "a")

    assert [x["depotFile"] for x in ws.p4.run("files", f"@{name}")] == [f"{ws.depot}/a"]
    (label,) = ws.p4.run("labels", "-e", name)
    assert (label["Owner"], label["Options"]) == (ws.p4.user, "unlocked noautoreload")


def test_sizes_are_listed_or_added_up(ws: Workspace) -> None:
    everything = f"{ws.depot}/..."
    ws.p4.run("delete", "c")
    ws.submit()

    listed = ws.p4.run("sizes", everything)
    assert [(x["depotFile"][-1], x["fileSize"]) for x in listed] == [
        *(("a", "6"), ("b", "2"), ("n", "2"))
    ]
    assert ws.p4.run("sizes", "-m", "1", everything, tagged=False) == [
        f"{ws.depot}/a#1 6 bytes"
    ]
    (total,) = ws.p4.run("sizes", "-s", everything)
    assert (total["path"], total["fileCount"], total["fileSize"]) == (
        *(everything, "3", "10"),
    )
    assert ws.p4.run("sizes", "-s", everything, tagged=False) == [
        f"{everything} 3 files 10 bytes"
    ]
    assert warned(ws.p4, "sizes", f"{ws.depot}/none") == [6519]


def test_labels_are_chosen_by_name_and_owner(ws: Workspace) -> None:
    for name in (f"{ws.name}-L1", f"{ws.name}-l2"):
        ws.p4.run("tag", "-l", name, f"{ws.depot}/...")

    def names(*options: str) -> list[str]:
        found = [x["label"] for x in ws.p4.run("labels", *options)]
        return [name.removeprefix(f"{ws.name}-") for name in found]

    assert names("-e", f"{ws.name}-*") == ["L1", "l2"]
    assert names("-e", f"{ws.name}-l*") == ["l2"]
    assert names("-E", f"{ws.name}-L*") == ["L1", "l2"]
    assert names("-e", f"{ws.name}-*", "-m", "1") == ["L1"]
    assert names("-e", f"{ws.name}-*", "-u", "nobody") == []
    assert names("-u", "cloneyard", "-e", f"{ws.name}-L1") == ["L1"]


def test_clients_and_labels_are_listed_on_a_line_each(ws: Workspace) -> None:
    ws.p4.run("tag", "-l", f"label-{ws.name}", "a")
    ws.p4.tagged = False

    (client,) = ws.p4.run("clients", "-e", ws.name)
    (label,) = ws.p4.run("labels", "-e", f"label-{ws.name}")

    for line, name in ((client, ws.name), (label, f"label-{ws.name}")):
        assert "\n" not in line
        assert line.split()[1] == name
        assert line.endswith(f"'Created by {ws.p4.user}. '")


# --- clean and reconcile


def test_cleaning_gives_back_what_was_had(ws: Workspace) -> None:
    before = ws.tree()
    overwrite(ws, "a", "spoiled\n")
    (ws.root / "b").unlink()
    ws.write("made/by/hand")

    shown = ws.p4.run("clean", "-n")
    assert ws.tree() != before
    done = ws.p4.run("clean")

    assert done == shown
    assert {x["action"] for x in done} == {"refreshed", "added", "deleted"}
    assert ws.tree() == before
    assert actions(ws) == {}
    assert warned(ws.p4, "reconcile", "-w") == [6827]


def test_cleaning_leaves_opened_files_alone(ws: Workspace) -> None:
    ws.p4.run("edit", "a")
    ws.write("a", "work\n")

    assert warned(ws.p4, "clean") == [6827]
    assert ws.tree()["a"] == b"work\n"


def test_reconcile_follows_a_change_of_mind(ws: Workspace) -> None:
    ws.p4.run("edit", "a")
    (ws.root / "a").unlink()
    ws.p4.run("delete", "b")
    ws.write("b", "back again\n")

    ws.p4.run("reconcile", "-n")
    assert actions(ws) == {"a": "edit", "b": "delete"}
    ws.p4.run("reconcile")

    assert actions(ws) == {"a": "delete", "b": "edit"}
    ws.submit()
    assert set(ws.tree()) == {"b", "bin", "c"}
    assert ws.p4.run("print", "-q", "b")[-1] == "back again\n"


# --- printing a part


def test_a_part_of_a_file_is_printed(ws: Workspace) -> None:
    def text(*options: str) -> str:
        return str(ws.p4.run("print", "-q", *options, "a")[-1])

    assert text("--offset=2", "--size=3") == "2\n3"
    assert text("--size=1") == "1"
    assert text("--offset=0", "--size=0") == "1\n2\n3\n"


# --- how forms are defined


def test_definitions_of_forms_are_shown(ws: Workspace) -> None:
    client = ws.p4.fetch_spec("client")

    assert "301 Client word 32 key" in client["Fields"]
    assert "View 2" in client["Words"]
    assert any(line.startswith("LineEnd local/unix") for line in client["Values"])
    for kind in ("user", "change", "depot", "label", "branch", "group", "stream"):
        assert ws.p4.fetch_spec(kind)["Fields"]
    with pytest.raises(P4Exception, match="Unknown spec type"):
        ws.p4.fetch_spec("poem")
    with pytest.raises(P4Exception, match="changing a spec is not part of the lab"):
        ws.p4.save_spec("job", ws.p4.fetch_spec("job"))


def test_an_fstat_is_filtered_by_what_it_tells(ws: Workspace) -> None:
    ws.edit("a", "new\n")
    everything = f"{ws.depot}/..."

    def names(*words: str) -> list[str]:
        found = ws.p4.run("fstat", *words, "-T", "depotFile", everything)
        return [x["depotFile"].rpartition("/")[2] for x in found]

    assert names("-F", "headRev>1") == ["a"]
    assert names("-F", "headType=text & ^headRev=2") == ["b", "c"]
    assert names("-F", "headType=binary | headRev=2", "-m", "1") == ["a"]
    assert names("-Ol", "-F", "fileSize<=2") == ["b", "bin", "c"]
    assert warned(ws.p4, "fstat", "-F", "headRev=9", everything) == [6519]
    for words in (["-F", "headRev"], ["-Sd"], ["-Rs"]):
        with pytest.raises(P4Exception):
            ws.p4.run("fstat", *words, everything)


def test_an_fstat_names_places_in_both_syntaxes(ws: Workspace) -> None:
    (found,) = ws.p4.run("fstat", "-Op", "a")
    assert found["clientFile"] == f"//{ws.name}/a"
    assert found["path"] == str(ws.root / "a")


def test_an_fstat_tells_of_so_many_files(ws: Workspace) -> None:
    assert len(ws.p4.run("fstat", "-m", "2", f"{ws.depot}/...")) == 2


# --- renaming outside of Perforce


def test_a_file_that_was_renamed_by_hand_becomes_a_move(ws: Workspace) -> None:
    (ws.root / "a").rename(ws.write("new/a", ""))
    (ws.root / "bin").rename(ws.root / "program")
    (ws.root / "c").unlink()
    ws.write("d", "c is not this\n")
    wanted = {
        "a": "move/delete",
        "bin": "move/delete",
        "c": "delete",
        "d": "add",
        "new/a": "move/add",
        "program": "move/add",
    }

    shown = ws.p4.run("reconcile", "-n")
    assert {x["depotFile"][len(ws.depot) + 1 :]: x["action"] for x in shown} == wanted
    assert actions(ws) == {}
    ws.p4.run("reconcile")

    opened = {x["depotFile"][len(ws.depot) + 1 :]: x for x in ws.p4.run("opened")}
    assert {name: x["action"] for name, x in opened.items()} == wanted
    assert opened["program"]["type"] == "binary"
    ws.submit()
    made = ws.p4.run_filelog("new/a")[0].revisions[0]
    assert (made.action, made.integrations[0].how) == ("move/add", "moved from")
    assert warned(ws.p4, "reconcile", "-n") == [6827]


def test_only_what_is_looked_for_is_paired(ws: Workspace) -> None:
    (ws.root / "a").rename(ws.root / "z")

    def shown(*options: str) -> list[str]:
        return [x["action"] for x in ws.p4.run("reconcile", "-n", *options)]

    assert shown("-a") == ["add"]
    assert shown("-d") == ["delete"]
    assert shown("-e") == []
    assert sorted(shown("-a", "-d")) == ["move/add", "move/delete"]


def test_each_of_several_equal_files_moves_once(ws: Workspace) -> None:
    ws.add({"one/x": "same\n", "one/y": "same\n"})
    ws.write("two/y", "same\n")
    ws.write("two/z", "same\n")
    for name in ("x", "y"):
        (ws.root / "one" / name).unlink()

    ws.p4.run("reconcile")
    ws.submit()

    origins = {
        name: ws.p4.run_filelog(f"two/{name}")[0].revisions[0].integrations[0].file
        for name in "yz"
    }
    assert sorted(origins.values()) == [f"{ws.depot}/one/{name}" for name in "xy"]


def test_what_the_depot_has_and_the_client_has_not_is_no_add(ws: Workspace) -> None:
    ws.p4.run("flush", "a#0", "b#0")
    overwrite(ws, "b", "changed\n")
    ws.p4.run("delete", "c")
    ws.submit()
    ws.write("c", "anew\n")

    found = [x for x in ws.p4.run("reconcile", "-n", "-a") if isinstance(x, dict)]

    # Its head is deleted: what is on disk is not in the depot.
    assert [(x["depotFile"], x["action"]) for x in found] == [(f"{ws.depot}/c", "add")]
    assert [x["depotFile"] for x in ws.p4.run("reconcile", "-k")] == [f"{ws.depot}/a"]


# --- what took from what


def test_integrations_are_told_from_both_sides(ws: Workspace) -> None:
    assert warned(ws.p4, "integrated", f"{ws.depot}/...") == [6521]
    ws.p4.run("integrate", "a", "copy")
    number = ws.submit()

    told = {x["toFile"]: x for x in ws.p4.run("integrated", f"{ws.depot}/...")}

    assert told[f"{ws.depot}/copy"] == {
        "toFile": f"{ws.depot}/copy",
        "fromFile": f"{ws.depot}/a",
        "startToRev": "#none",
        "endToRev": "#1",
        "startFromRev": "#none",
        "endFromRev": "#1",
        "how": "branch from",
        "change": number,
    }
    assert told[f"{ws.depot}/a"]["how"] == "branch into"
    ws.p4.tagged = False
    try:
        (line,) = ws.p4.run("integrated", "copy")
        assert line == f"{ws.depot}/copy#1 - branch from {ws.depot}/a#1"
    finally:
        ws.p4.tagged = True


# --- sync, submit and describe


def test_an_update_is_a_sync_that_looks_first(ws: Workspace) -> None:
    ws.edit("a", "newer\n")
    ws.p4.run("sync", "a#1")
    (ws.root / "a").chmod(0o644)
    ws.write("a", "mine\n")
    (ws.root / "a").chmod(0o444)

    said = ws.p4.run("update", "a")

    assert "can't update modified file" in said[0]
    assert (ws.root / "a").read_text() == "mine\n"


def test_populating_leaves_alone_what_is_had(ws: Workspace) -> None:
    ws.edit("a", "newer\n")
    ws.p4.run("sync", "a#1")
    ws.p4.run("flush", "b#0")
    (ws.root / "b").unlink()

    assert warned(ws.p4, "sync", "-p", "a", "b") == [6532]

    assert (ws.root / "a").read_text() == "1\n2\n3\n"
    assert (ws.root / "b").read_text() == "b\n"
    assert [x["depotFile"] for x in ws.p4.run("have", "b")] == []


@pytest.mark.parametrize("words", ["-s -f", "-p -k", "-p -f", "-s -p", "-s -k"])
def test_ways_to_sync_that_exclude_each_other(ws: Workspace, words: str) -> None:
    assert refused(ws.p4, "sync", *words.split()) == 7198


@pytest.mark.parametrize(
    ("option", "way"),
    [("submitunchanged+reopen", []), ("submitunchanged", ["-r"])],
    ids=["by the client", "by -r"],
)
def test_what_was_submitted_is_opened_again(
    ws: Workspace, option: str, way: list[str]
) -> None:
    spec = ws.p4.fetch_client()
    spec["SubmitOptions"] = option
    ws.p4.save_client(spec)
    ws.p4.run("edit", "a")
    ws.p4.run("delete", "b")
    ws.write("a", "newer\n")

    ws.p4.run("submit", *way, "-d", "and on")

    (opened,) = ws.p4.run("opened")
    assert opened["depotFile"] == f"{ws.depot}/a"
    assert (opened["rev"], opened["action"], opened["change"]) == (
        "2",
        "edit",
        "default",
    )
    assert (ws.root / "a").stat().st_mode & 0o222
    ws.write("a", "newest\n")
    ws.p4.run("submit", "-f", "submitunchanged", "-d", "and done")
    assert ws.p4.run("opened") == []
    assert ws.p4.run("print", "-q", "a")[-1] == "newest\n"


def test_describe_shows_what_a_change_changed(ws: Workspace) -> None:
    ws.p4.run("edit", "a", "bin")
    ws.p4.run("delete", "b")
    ws.write("a", "1\ntwo\n3\n")
    ws.write("bin", b"\0\2")
    number = ws.submit()

    with ws.p4.at_exception_level(1):
        told = ws.p4.run("describe", number, tagged=False)

    text = "\n".join(told)
    assert f"... {ws.depot}/a#2 edit" in text or f"{ws.depot}/a#2 edit" in text
    assert f"==== {ws.depot}/a#2 (text) ====" in text
    assert "2c2\n< 2\n---\n> two\n" in text
    assert f"==== {ws.depot}/bin#2 (binary) ====" in text
    assert "(... files differ ...)" in text
    assert f"==== {ws.depot}/b#2" not in text
    unified = "\n".join(ws.p4.run("describe", "-du1", number, tagged=False))
    assert "@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n" in unified
    assert "====" not in "\n".join(ws.p4.run("describe", "-s", number, tagged=False))
    assert len(ws.p4.run("describe", "-s", number)) == 1


def test_describe_shows_what_a_shelf_would_change(ws: Workspace) -> None:
    ws.p4.run("edit", "a")
    ws.write("a", "1\ntwo\n3\n")
    ws.p4.run("shelve", "-i", input=ws.p4.run("change", "-o", tagged=False)[0])
    number = ws.p4.run("changes", "-s", "shelved", "-c", ws.name)[0]["change"]

    shelved = "\n".join(ws.p4.run("describe", "-S", number, tagged=False))
    pending = "\n".join(ws.p4.run("describe", number, tagged=False))

    assert "Shelved files ..." in shelved
    assert "2c2\n< 2\n---\n> two\n" in shelved
    assert "====" not in pending
    ws.p4.run("shelve", "-d", "-c", number)
    ws.p4.run("revert", "-k", "//...")
    ws.p4.run("change", "-d", number)


def test_the_history_of_a_file_says_where_it_came_from(ws: Workspace) -> None:
    ws.p4.run("edit", "b")
    ws.p4.run("move", "b", "b2")
    number = ws.submit("moved\nfor a reason that is longer than what is shown")
    ws.edit("b2", "newer\n")
    ws.p4.run("integrate", f"{ws.depot}/b2", f"{ws.depot}/b3")
    ws.submit("branched")

    _, *lines = ws.p4.run("filelog", f"{ws.depot}/b2", tagged=False)
    long = ws.p4.run("filelog", "-l", "-t", f"{ws.depot}/b2", tagged=False)

    assert lines[1] == f"branch into {ws.depot}/b3#1"
    assert lines[2].startswith(f"#1 change {number} move/add on ")
    assert lines[2].endswith("(text) 'moved for a reason that is long'")
    assert lines[3] == f"moved from {ws.depot}/b#1"
    assert long[3].endswith(
        "\n\n\tmoved\n\tfor a reason that is longer than what is shown\n"
    )
    assert re.search(r" on \d{4}/\d\d/\d\d \d\d:\d\d:\d\d by ", long[3])


def test_reopening_says_what_became_of_a_file(ws: Workspace) -> None:
    ws.p4.run("edit", "a")
    said = [
        ws.p4.run("reopen", *words.split(), "a", tagged=False)[0].partition(" - ")[2]
        for words in ("-t text+x", "-t text+x", "-c default", "-t text -c default")
    ]
    assert said == [
        "reopened; type text+x",
        "nothing changed; type text+x",
        "nothing changed; default change",
        "reopened; type text; default change",
    ]


@pytest.mark.parametrize(
    "command",
    ["clients x", "depots x", "counters x", "reload -c x y"],
)
def test_arguments_that_would_do_nothing_are_refused(
    ws: Workspace, command: str
) -> None:
    assert refused(ws.p4, *command.split()) == 7198
