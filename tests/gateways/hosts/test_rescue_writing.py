"""The writer of archives, from inside: files that change, and any name there can be."""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from provisioner.gateways.hosts.rescues import writing
from provisioner.gateways.hosts.rescues.place import NoPlace, Place
from provisioner.gateways.hosts.rescues.reading import BehindLink, NotThere, Tree
from provisioner.gateways.hosts.rescues.verifying import (
    Damaged,
    verify,
)
from provisioner.gateways.hosts.rescues.writing import Archive

Json = dict[str, Any]

COMPONENT = st.binary(min_size=1, max_size=40).filter(
    lambda name: not set(name) & {0, ord("/")} and name not in (b".", b"..")
)
CONTENT = st.one_of(
    st.binary(max_size=2000),
    st.binary(min_size=1, max_size=60)
    .filter(lambda target: 0 not in target)
    .map(lambda target: ("link", target)),
)
TREES = st.dictionaries(
    st.lists(COMPONENT, min_size=1, max_size=3).map(b"/".join), CONTENT, max_size=8
)


@contextmanager
def directory_fd(path: Path) -> Iterator[int]:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield fd
    finally:
        os.close(fd)


def write(
    root: Path,
    out: Path,
    entries: list[Json],
    *,
    tell: Callable[[int], None] = lambda files: None,
) -> Archive:
    with Tree.at(root) as tree, directory_fd(out) as directory:
        archive = Archive(directory, tree, metadata={}, tell=tell)
        archive.write(entries)
        assert verify(directory) == archive.sums
    return archive


def rows_in(out: Path) -> list[Json]:
    rows: list[Json] = json.loads((out / "manifest.json").read_text())["entries"]
    return rows


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "root").mkdir()
    (tmp_path / "out").mkdir()
    return tmp_path / "root", tmp_path / "out"


# --- any tree


def plant(root: Path, tree: dict[bytes, Any]) -> dict[str, Any]:
    """Make what of the tree can be made; return it by path from the root."""
    planted = {}
    for path, content in tree.items():
        place = os.path.join(os.fsencode(root), path)
        try:
            os.makedirs(os.path.dirname(place), exist_ok=True)
            if isinstance(content, tuple):
                os.symlink(content[1], place)
            else:
                fd = os.open(
                    place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
                )
                with os.fdopen(fd, "wb") as file:
                    file.write(content)
        except OSError:
            continue  # a file or link stands where this one wants a directory
        planted[os.fsdecode(path)] = content
    return planted


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(tree=TREES)
def test_every_tree_comes_back_from_tar_and_manifest(
    tmp_path_factory: pytest.TempPathFactory, tree: dict[bytes, Any]
) -> None:
    place = tmp_path_factory.mktemp("any")
    root, out = place / "root", place / "out"
    root.mkdir()
    out.mkdir()
    planted = plant(root, tree)
    outside = {p for p in planted if _is_through_link(root, p)}

    write(root, out, [{"path": path, "kind": "untracked"} for path in sorted(planted)])

    rows = {row["path"]: row for row in rows_in(out)}
    assert planted.keys() <= rows.keys()
    found: dict[str, Any] = {}
    with tarfile.open(out / "work.tar", errors="surrogateescape") as tar:
        for member in tar:
            if member.issym():
                found[member.name] = ("link", os.fsencode(member.linkname))
            else:
                content = tar.extractfile(member)
                assert content is not None
                found[member.name] = content.read()
    assert found == {p: c for p, c in planted.items() if p not in outside}
    for path, row in rows.items():
        assert (row["state"] == "stored") == (path in found)


def _is_through_link(root: Path, path: str) -> bool:
    place = os.path.join(root, path)
    while (place := os.path.dirname(place)) != str(root):
        if os.path.islink(place):
            return True
    return False


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(where=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_no_flipped_bit_goes_unnoticed(
    tmp_path_factory: pytest.TempPathFactory, where: float, bit: int
) -> None:
    place = tmp_path_factory.mktemp("bit")
    root, out = place / "root", place / "out"
    root.mkdir()
    out.mkdir()
    (root / "file").write_bytes(b"content")
    write(root, out, [{"path": "file", "kind": "untracked"}])
    sizes = [(path, path.stat().st_size) for path in sorted(out.iterdir())]
    position = int(where * sum(size for _, size in sizes))
    while position >= sizes[0][1]:
        position -= sizes.pop(0)[1]
    path = sizes[0][0]
    data = bytearray(path.read_bytes())
    data[position] ^= 1 << bit
    path.write_bytes(data)

    with directory_fd(out) as directory, pytest.raises(Damaged):
        verify(directory)


# --- files that change while they are read


def test_a_file_that_changes_once_is_read_again(places: tuple[Path, Path]) -> None:
    root, out = places
    (root / "before").write_bytes(b"before")
    (root / "file").write_bytes(b"first")
    (root / "later").write_bytes(b"later")
    told: list[int] = []

    def tell(files: int) -> None:
        if files == 1:
            told.append(files)
        if len(told) == 2:
            (root / "file").write_bytes(b"second and longer")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "TELL_EVERY_SECONDS", 0)
        archive = write(
            root,
            out,
            [{"path": name, "kind": "changed"} for name in ("before", "file", "later")],
            tell=tell,
        )

    assert archive.problems == []
    assert [row["state"] for row in rows_in(out)] == ["stored"] * 3
    with tarfile.open(out / "work.tar") as tar:
        contents = [tar.extractfile(member) for member in tar]
        assert [c.read() for c in contents if c] == [
            b"before",
            b"second and longer",
            b"later",
        ]


@pytest.mark.parametrize("change", ["grow", "shrink", "rewrite"])
def test_a_file_that_goes_on_changing_is_marked(
    places: tuple[Path, Path], change: str
) -> None:
    root, out = places
    (root / "file").write_bytes(b"a" * (3 << 20))
    (root / "later").write_bytes(b"later")

    def disturb(files: int) -> None:
        if files:
            return
        with (root / "file").open("r+b") as file:
            if change == "grow":
                file.seek(0, os.SEEK_END)
                file.write(b"more")
            elif change == "shrink":
                file.truncate(os.fstat(file.fileno()).st_size - 1)
            else:
                file.write(os.urandom(4))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "TELL_EVERY_SECONDS", 0)
        archive = write(
            root,
            out,
            [{"path": name, "kind": "changed"} for name in ("file", "later")],
            tell=disturb,
        )

    assert [row["state"] for row in rows_in(out)] == ["torn", "stored"]
    assert [problem[:2] for problem in archive.problems] == [["file", "torn"]]
    with tarfile.open(out / "work.tar") as tar:
        assert tar.getnames() == ["file", "later"]


def test_what_was_just_found_and_is_gone_is_a_problem(
    places: tuple[Path, Path],
) -> None:
    root, out = places

    archive = write(
        root,
        out,
        [
            {"path": "found", "kind": "untracked"},
            {"path": "gone", "kind": "missing"},
            {"path": "opened", "kind": "opened", "action": "edit"},
        ],
    )

    assert [row["state"] for row in rows_in(out)] == [
        "vanished",
        "missing",
        "missing",
    ]
    assert [problem[0] for problem in archive.problems] == ["found"]


def test_a_large_sparse_file_is_streamed(places: tuple[Path, Path]) -> None:
    root, out = places
    with (root / "sparse").open("wb") as file:
        file.truncate(64 << 20)
        file.seek(32 << 20)
        file.write(b"here")

    archive = write(root, out, [{"path": "sparse", "kind": "untracked"}])

    assert archive.counts["untracked"]["bytes"] == 64 << 20


def test_the_manifest_is_json_for_everyone(places: tuple[Path, Path]) -> None:
    root, out = places
    (root / "a\nb\udcff").write_text("odd")

    write(root, out, [{"path": "a\nb\udcff", "kind": "untracked"}])

    manifest = json.loads((out / "manifest.json").read_bytes())
    assert manifest["format"] == 1
    assert manifest["entries"][0]["path"] == "a\nb\udcff"


# --- attacks


def test_a_directory_in_place_of_an_untracked_file_is_a_problem(
    places: tuple[Path, Path],
) -> None:
    root, out = places
    (root / "closed").mkdir()
    (root / "was-a-file").mkdir()

    archive = write(
        root,
        out,
        [
            {"path": "closed", "kind": "untracked"},
            {"path": "was-a-file", "kind": "changed"},
        ],
    )

    assert [row["state"] for row in rows_in(out)] == ["unreadable", "directory"]
    assert archive.problems == [
        ["closed", "unreadable", "Its content cannot be listed."]
    ]


def test_a_directory_that_becomes_a_link_is_not_followed(
    places: tuple[Path, Path],
) -> None:
    root, out = places
    (root / "dir").mkdir()
    (root / "dir/file").write_bytes(b"mine")
    (out / "file").write_bytes(b"secret")
    with Tree.at(root) as tree:
        with tree.opened("dir/file") as found:
            assert os.read(found.fd, 10) == b"mine"
        (root / "dir").rename(root / "moved")
        (root / "dir").symlink_to(out)
        # Its directory is still open: it is the one that was there.
        with tree.opened("dir/file") as found:
            assert os.read(found.fd, 10) == b"mine"
        with pytest.raises(NotThere), tree.opened("other"):
            pass
        with pytest.raises(BehindLink), tree.opened("dir/file"):
            pass


def test_swaps_during_the_work_leak_nothing(places: tuple[Path, Path]) -> None:
    """A link to outside takes the place of a directory, and of a file, all the time."""
    root, out = places
    outside = out.parent / "outside"
    outside.mkdir()
    names = [f"file{number}" for number in range(50)]
    (root / "dir").mkdir()
    for name in names:
        (outside / name).write_bytes(b"SECRET")
        (root / "dir" / name).write_bytes(b"mine")
    (root / "link").symlink_to(outside)
    (root / "flip").write_bytes(b"mine")
    (root / "flop").symlink_to(outside / "file0")

    def swap(one: str, two: str) -> None:
        (root / one).rename(root / "aside")
        (root / two).rename(root / one)
        (root / "aside").rename(root / two)

    def disturb(files: int) -> None:
        swap("dir", "link")
        swap("flip", "flop")

    paths = [f"{way}/{name}" for name in names for way in ("dir", "flip", "link")]
    entries = [{"path": path, "kind": "changed"} for path in (*paths, "flip", "flop")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "TELL_EVERY_SECONDS", 0)
        write(root, out, entries * 2, tell=disturb)

    assert b"SECRET" not in (out / "work.tar").read_bytes()
    states = {row["state"] for row in rows_in(out)}
    assert {"stored", "behind_link"} <= states


def test_an_owner_who_replaces_the_directory_gains_nothing(
    places: tuple[Path, Path],
) -> None:
    """The owner may rename what is in their own directory; then it is not taken."""
    _, out = places
    order = {
        "rescue_root": str(out),
        "owner": "alice",
        "name": "main-1",
        "uid": os.geteuid() or 20123,
        "gid": os.getegid() or 20124,
        "leftover": "",
    }

    with Place.prepared(order) as place:
        (out / "alice/.main-1.partial").rename(out / "alice/taken")
        (out / "alice/.main-1.partial").mkdir()
        with pytest.raises(NoPlace) as caught:
            place.publish()

    assert caught.value.code == "rescue_replaced"
