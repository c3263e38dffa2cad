"""Counting what is unsubmitted, and choosing what of it to archive."""

from __future__ import annotations

from pathlib import Path

import pytest

from provisioner.gateways.hosts.inventory import (
    UnsubmittedFiles,
    count_unsubmitted,
    entries_to_archive,
    opened_before,
)
from provisioner.gateways.perforce.types import (
    NotDone,
    OpenedFile,
    PendingChange,
    ReconcileFinding,
    Shelf,
    ShelvedFile,
    ShelveReport,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "clone").mkdir()
    return tmp_path / "clone"


def opened(name: str, *, action: str = "edit", change: str = "default") -> OpenedFile:
    return OpenedFile(
        depot_file=f"//depot/{name}",
        client_file=f"//ws/{name}",
        action=action,
        change=change,
        user="alice",
        client="ws",
        type="text",
        revision=2,
    )


def finding(action: str, path: Path | str) -> ReconcileFinding:
    return ReconcileFinding(action=action, depot_file="//depot/x", path=str(path))


def pending(change: int, *, files: int = 0, is_shelved: bool = False) -> PendingChange:
    return PendingChange(
        change=change,
        user="alice",
        client="ws",
        description="Work.",
        is_shelved=is_shelved,
        files=files,
    )


def test_everything_is_counted_by_kind_with_sizes(root: Path) -> None:
    (root / "a b").mkdir()
    for name, size in (("edited", 10), ("a b/@new", 20), ("opened", 40)):
        (root / name).write_bytes(bytes(size))
    (root / "link").symlink_to("/etc/passwd")
    shelved = ShelvedFile(
        depot_file="//depot/s",
        action="edit",
        type="text",
        revision=1,
        size_bytes=80,
        digest="",
    )

    counts = count_unsubmitted(
        UnsubmittedFiles(
            client="ws",
            root=str(root),
            findings=[
                finding("edit", root / "edited"),
                finding("add", root / "a b/@new"),
                finding("add", root / "link"),
                finding("delete", root / "gone"),
            ],
            opened=[opened("opened"), opened("deleted", action="delete")],
            pending=[pending(1), pending(2, files=1), pending(3, is_shelved=True)],
            shelved={3: [shelved]},
        ),
        seen_at=root,
    )

    assert counts == {
        "changed": {"count": 1, "bytes": 10},
        "untracked": {"count": 2, "bytes": 20},
        "missing": {"count": 1, "bytes": 0},
        "opened": {"count": 2, "bytes": 40},
        "pending": {"count": 1, "bytes": 0},
        "shelved": {"count": 1, "bytes": 80},
    }


def test_a_size_is_never_one_of_a_file_elsewhere(root: Path) -> None:
    (root.parent / "outside").mkdir()
    (root.parent / "outside/secret").write_bytes(bytes(1000))
    (root / "dir").symlink_to(root.parent / "outside")

    counts = count_unsubmitted(
        UnsubmittedFiles(
            client="ws",
            root=str(root),
            findings=[
                finding("add", root / "dir/secret"),
                finding("add", root.parent / "outside/secret"),
                finding("add", root / "../outside/secret"),
            ],
        ),
        seen_at=root,
    )

    assert counts == {"untracked": {"count": 3, "bytes": 0}}


def test_the_root_of_the_client_need_not_be_where_we_see_it(root: Path) -> None:
    (root / "new").write_bytes(bytes(7))

    counts = count_unsubmitted(
        UnsubmittedFiles(
            client="ws", root="/elsewhere/", findings=[finding("add", "/elsewhere/new")]
        ),
        seen_at=root,
    )

    assert counts["untracked"]["bytes"] == 7


def test_what_a_shelf_has_is_not_archived() -> None:
    unsubmitted = UnsubmittedFiles(
        client="ws",
        root="/r",
        findings=[finding("add", "/r/new"), finding("delete", "/r/gone")],
        opened=[opened("shelved"), opened("odd%40", change="7"), opened("bobs")],
    )
    report = ShelveReport(
        shelves=(
            Shelf(change=9, was="default", files=("//depot/shelved",), made_by_us=True),
        ),
        not_shelved=(NotDone(depot_file="//depot/odd%40", reason="No."),),
    )

    entries = {entry.path: entry for entry in entries_to_archive(unsubmitted, [report])}

    assert set(entries) == {"odd@", "bobs", "new", "gone"}
    odd = entries["odd@"]
    assert (odd.kind, odd.action, odd.change, odd.revision) == (
        "opened",
        "edit",
        "7",
        2,
    )
    assert (odd.type, odd.reason) == ("text", "No.")
    assert entries["bobs"].reason == "It could not be shelved as alice."
    assert (entries["new"].kind, entries["gone"].kind) == ("untracked", "missing")


def test_what_lies_where_a_file_is_opened_for_delete_is_archived(root: Path) -> None:
    (root / "kept").write_text("still here")
    (root / "link").symlink_to("kept")
    (root / "directory").mkdir()
    names = ("kept", "link", "directory", "gone")
    files = [opened(name, action="delete") for name in names]
    report = ShelveReport(
        shelves=(
            Shelf(
                change=9,
                was="default",
                files=tuple(file.depot_file for file in files),
                made_by_us=True,
            ),
        ),
        not_shelved=(),
    )
    unsubmitted = UnsubmittedFiles(client="ws", root=str(root), opened=files)

    entries = entries_to_archive(unsubmitted, [report], seen_at=root)

    assert [(entry.path, entry.action) for entry in entries] == [
        ("kept", "delete"),
        ("link", "delete"),
    ]
    assert entries_to_archive(unsubmitted, [report]) == []


def test_the_changes_of_before_are_reported(root: Path) -> None:
    report = ShelveReport(shelves=(), not_shelved=(), moved={"9": "default"})

    before = opened_before([opened("a", change="9"), opened("b", change="7")], [report])

    assert [file.change for file in before] == ["default", "7"]
