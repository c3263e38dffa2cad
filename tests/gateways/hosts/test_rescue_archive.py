"""Archives of unsubmitted work: what goes in, what is said of it, what stays out."""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
import subprocess
import tarfile
import threading
from pathlib import Path
from typing import Any

import pytest

from provisioner.gateways.errors import Refused, TransientGatewayError
from provisioner.gateways.hosts.rescue_archive import (
    ArchiveEntry,
)
from provisioner.gateways.hosts.rescues.verifying import Damaged
from provisioner.lib.refusals import StepCutShort
from tests.gateways.hosts.trees import bind_mounted, needs_root
from tests.support.rescue_archives import (
    GID,
    UID,
    archive,
    left_in_rescue,
    root,
    rows_of,
    unpacked,
    untracked,
    verified,
)

__all__ = ["root"]


# --- what goes in


def test_files_come_out_as_they_went_in(root: Path, tmp_path: Path) -> None:
    (root / "src").mkdir()
    (root / "src/tool").write_bytes(b"#!/bin/sh\n")
    (root / "src/tool").chmod(0o750)
    os.utime(root / "src/tool", ns=(10**18, 10**18 + 500_000_000))
    (root / "big").write_bytes(os.urandom(3 << 20))
    (root / "empty").touch()
    (root / "link").symlink_to("/etc/passwd")

    report = archive(root, untracked("src/tool", "big", "empty", "link"))

    out = unpacked(report, tmp_path / "out")
    assert (out / "big").read_bytes() == (root / "big").read_bytes()
    assert (out / "empty").read_bytes() == b""
    tool = (out / "src/tool").stat()
    assert (tool.st_mode & 0o7777, tool.st_mtime) == (0o750, 10**9 + 0.5)
    assert os.readlink(out / "link") == "/etc/passwd"
    assert (report.files, report.problems) == (4, ())
    assert report.size_bytes == (3 << 20) + 10
    assert report.counts == {
        "untracked": {"count": 4, "stored": 4, "bytes": (3 << 20) + 10}
    }


def test_the_directory_is_the_owners_alone(root: Path) -> None:
    (root / "file").write_text("mine")

    report = archive(root, untracked("file"))

    assert report.directory.parent == root.parent / "rescue/alice"
    assert report.directory.name.startswith("main-1-2")
    assert re.search(r"Z-abc123[0-9a-f]{4}$", report.directory.name)
    for path in (report.directory.parent, report.directory):
        found = path.stat()
        assert (found.st_uid, found.st_gid) == (UID, GID)
        assert found.st_mode & 0o7777 == 0o700
    for path in report.directory.iterdir():
        found = path.stat()
        assert (found.st_uid, found.st_gid) == (UID, GID)
        assert found.st_mode & 0o7777 == 0o600


def test_the_manifest_says_what_everything_was(root: Path) -> None:
    (root / "edited").write_bytes(b"mine\n")
    entries = [
        ArchiveEntry(
            path="edited",
            kind="opened",
            action="edit",
            depot_path="//depot/edited",
            revision=3,
            change="12",
            type="text",
            reason="It could not be shelved.",
        ),
        ArchiveEntry(path="gone", kind="missing", depot_path="//depot/gone"),
    ]

    report = archive(root, entries, metadata={"client": "alice-main-1"})

    rows = rows_of(report)
    edited = rows["edited"]
    assert edited["sha256"] == hashlib.sha256(b"mine\n").hexdigest()
    assert (edited["state"], edited["size"], edited["mode"]) == ("stored", 5, "0644")
    assert (edited["kind"], edited["action"], edited["change"]) == (
        "opened",
        "edit",
        "12",
    )
    assert (edited["depot_path"], edited["revision"]) == ("//depot/edited", 3)
    assert edited["reason"] == "It could not be shelved."
    assert rows["gone"] == {
        "path": "gone",
        "kind": "missing",
        "depot_path": "//depot/gone",
        "state": "missing",
    }
    manifest = json.loads((report.directory / "manifest.json").read_bytes())
    assert manifest["metadata"]["client"] == "alice-main-1"
    assert not report.problems


def test_the_checksums_are_those_of_sha256sum(root: Path) -> None:
    (root / "file").write_text("mine")

    report = archive(root, untracked("file"))

    checked = subprocess.run(
        ["sha256sum", "--strict", "-c", "SHA256SUMS"],
        cwd=report.directory,
        check=True,
        capture_output=True,
        text=True,
    )
    assert {line.split(":")[0] for line in checked.stdout.splitlines()} == {
        "work.tar",
        "manifest.json",
        "README.txt",
    }
    digest = hashlib.sha256((report.directory / "work.tar").read_bytes()).hexdigest()
    assert report.sha256 == digest == verified(report.directory)["work.tar"]


def test_the_readme_says_how_to_bring_it_back(root: Path) -> None:
    report = archive(root, [], metadata={"shelves": [{"change": 7, "was": "default"}]})

    readme = (report.directory / "README.txt").read_text()
    assert "tar -xpf work.tar" in readme
    assert "p4 unshelve -s 7" in readme
    assert "p4 reconcile" in readme


def test_progress_ends_with_everything(root: Path) -> None:
    for name in ("a", "b"):
        (root / name).write_bytes(b"12345")
    seen: list[int] = []

    archive(root, untracked("a", "b", "gone"), progress=seen.append)

    assert seen[-1] == 3


def test_special_files_are_only_named(root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "directory").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.open(".", os.O_RDONLY)
        os.chdir(root)
        try:
            listener.bind("socket")
        finally:
            os.fchdir(here)
            os.close(here)

    report = archive(root, untracked("pipe", "socket", "directory"))

    rows = rows_of(report)
    assert {name: row["state"] for name, row in rows.items()} == {
        "pipe": "special",
        "socket": "special",
        "directory": "unreadable",  # else what is in it would have been named
    }
    assert report.files == 0
    assert {problem.path for problem in report.problems} == {*rows}


@needs_root
def test_what_others_own_is_rescued_too(root: Path) -> None:
    (root / "theirs").write_text("secret")
    os.chown(root / "theirs", 20999, 20999)
    (root / "theirs").chmod(0o600)

    report = archive(root, untracked("theirs"))

    assert not report.problems
    assert rows_of(report)["theirs"]["uid"] == 20999


# --- what stays out


def test_a_link_on_the_way_is_kept_and_not_followed(root: Path) -> None:
    (root.parent / "outside").mkdir()
    (root.parent / "outside/secret").write_text("secret")
    (root / "dir").symlink_to(root.parent / "outside")

    report = archive(root, untracked("dir/secret", "dir/other"))

    rows = rows_of(report)
    assert rows["dir/secret"]["state"] == "behind_link"
    assert rows["dir"]["link_target"] == str(root.parent / "outside")
    assert not report.problems
    with tarfile.open(report.directory / "work.tar") as tar:
        assert tar.getnames() == ["dir"]


def test_hard_links_and_odd_names_come_out_and_nothing_outside_changes(
    root: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.write_text("shared")
    names = ["one", "two", "\n", "..\n", " ..", "...", "-rf", "*", "a\nb/\n"]
    (root / "a\nb").mkdir()
    for name in names[:2]:
        os.link(outside, root / name)
    for name in names[2:]:
        (root / name).write_text(name)
    before = outside.stat()

    report = archive(root, untracked(*names))

    assert not report.problems
    assert inode_of(outside) == inode_of_status(before)
    out = unpacked(report, tmp_path / "out")
    assert [(out / name).read_text() for name in names] == ["shared"] * 2 + names[2:]
    assert (out / "one").stat().st_ino != before.st_ino


def inode_of(path: Path) -> tuple[int, ...]:
    return inode_of_status(path.stat())


def inode_of_status(status: os.stat_result) -> tuple[int, ...]:
    """Return all of an inode that a change of any kind would change."""
    owner = (status.st_uid, status.st_gid, status.st_mode, status.st_nlink)
    return (*owner, status.st_ino, status.st_mtime_ns, status.st_ctime_ns)


@pytest.mark.parametrize("path", ["../outside", "/etc/passwd", "a/../../outside", "."])
def test_paths_that_lead_outside_are_refused(root: Path, path: str) -> None:
    (root.parent / "outside").write_text("secret")
    (root / "a").mkdir()

    report = archive(root, untracked(path))

    assert rows_of(report)[path]["state"] == "unreadable"
    assert report.problems
    with tarfile.open(report.directory / "work.tar") as tar:
        assert tar.getnames() == []


@needs_root
def test_another_file_system_is_not_entered(root: Path) -> None:
    (root.parent / "elsewhere").mkdir()
    (root / "mounted").mkdir()
    with bind_mounted(Path("/proc/self"), root / "mounted"):
        report = archive(root, untracked("mounted/status"))

    assert rows_of(report)["mounted/status"]["state"] == "unreadable"


def test_names_of_directories_are_checked(root: Path) -> None:
    for change in (
        {"owner": "../bob"},
        {"owner": ".."},
        {"workspace": "a/b"},
        {"tag": "toolong"},
        {"uid": 0},
    ):
        with pytest.raises(ValueError):
            archive(root, [], **change)
    assert left_in_rescue(root) == []


# --- the rescue area


def test_a_missing_rescue_area_is_reported(root: Path) -> None:
    with pytest.raises(Refused) as caught:
        archive(root, [], rescue_root=root.parent / "absent")

    assert caught.value.remote_code == "rescue_root_missing"
    assert "does not exist" in caught.value.sentence


def test_a_link_is_no_rescue_area_and_no_owner(root: Path) -> None:
    (root.parent / "elsewhere").mkdir()
    (root.parent / "link").symlink_to("elsewhere")
    (root.parent / "rescue/alice").symlink_to(root.parent / "elsewhere")

    for place in (root.parent / "link", root.parent / "rescue"):
        with pytest.raises(Refused):
            archive(root, [], rescue_root=place)
    assert list((root.parent / "elsewhere").iterdir()) == []


@needs_root
def test_a_full_disk_leaves_nothing_behind(root: Path) -> None:
    (root / "big").write_bytes(os.urandom(4 << 20))
    small = root.parent / "small"
    small.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", small], check=True
    )
    try:
        with pytest.raises(Refused) as caught:
            archive(root, untracked("big"), rescue_root=small)
        assert list(small.iterdir()) == []
    finally:
        subprocess.run(["umount", small], check=True)
    assert caught.value.remote_code == "rescue_disk_full"
    assert "are free" in caught.value.sentence


@needs_root
@pytest.mark.parametrize("inodes", [1, 3, 5])
def test_a_rescue_area_without_inodes_is_told_from_a_full_one(
    inodes: int, root: Path
) -> None:
    (root / "notes").write_text("mine")
    small = root.parent / "small"
    small.mkdir()
    options = f"size=20m,nr_inodes={inodes}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", small], check=True)
    try:
        with pytest.raises(Refused) as caught:
            archive(root, untracked("notes"), rescue_root=small)
        assert list(small.iterdir()) == []
    finally:
        subprocess.run(["umount", small], check=True)
    assert caught.value.remote_code == "rescue_out_of_inodes"
    assert "no inodes left" in caught.value.sentence


@needs_root
def test_a_read_only_rescue_area_is_reported(root: Path) -> None:
    place = root.parent / "readonly"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", place], check=True)
    try:
        with pytest.raises(Refused) as caught:
            archive(root, [], rescue_root=place)
    finally:
        subprocess.run(["umount", place], check=True)
    assert caught.value.remote_code == "rescue_read_only"


# --- again


def test_what_a_killed_try_left_is_replaced(root: Path) -> None:
    (root / "file").write_text("mine")
    owner = root.parent / "rescue/alice"
    owner.mkdir()
    leftover = owner / ".main-1-20260101T000000Z-abc1230000.partial"
    another = owner / ".main-1-20260101T000000Z-zzz999.partial"
    for directory in (leftover, another):
        directory.mkdir()
        (directory / "work.tar").write_text("half")

    report = archive(root, untracked("file"))

    assert not leftover.exists()
    assert another.exists()
    assert report.directory.is_dir()


def test_a_step_that_lost_its_leave_leaves_nothing_behind(root: Path) -> None:
    (root / "file").write_text("mine")

    def lose_leave(files: int) -> None:
        raise StepCutShort

    with pytest.raises(StepCutShort):
        archive(root, untracked("file"), progress=lose_leave)

    assert left_in_rescue(root) == []


def test_a_process_that_was_killed_leaves_no_directory_that_looks_complete(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "file").write_text("mine")
    started: list[subprocess.Popen[bytes]] = []
    original = subprocess.Popen

    def remembered(*args: Any, **kwargs: Any) -> subprocess.Popen[bytes]:
        started.append(original(*args, **kwargs))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", remembered)

    def kill(files: int) -> None:
        started[-1].kill()

    with pytest.raises(TransientGatewayError):
        archive(root, untracked("file"), progress=kill)
    names = [path.name for path in (root.parent / "rescue/alice").iterdir()]
    assert [
        bool(re.search(r"-abc123[0-9a-f]{4}\.partial$", name)) for name in names
    ] == [True]

    archive(root, untracked("file"))
    names = [path.name for path in (root.parent / "rescue/alice").iterdir()]
    assert [bool(re.search(r"-abc123[0-9a-f]{4}$", name)) for name in names] == [True]


# --- reading it back


@pytest.mark.parametrize("name", ["work.tar", "manifest.json", "README.txt"])
def test_damage_is_found(root: Path, name: str) -> None:
    (root / "file").write_text("mine")
    report = archive(root, untracked("file"))
    path = report.directory / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)

    with pytest.raises(Damaged):
        verified(report.directory)


def test_a_tar_file_that_is_not_the_manifests_is_found(root: Path) -> None:
    (root / "a").write_text("a")
    (root / "b").write_text("b")
    one, two = (
        archive(root, untracked(name), tag=f"00000{name}") for name in ("a", "b")
    )
    (one.directory / "work.tar").write_bytes((two.directory / "work.tar").read_bytes())
    sums = (one.directory / "SHA256SUMS").read_text()
    (one.directory / "SHA256SUMS").write_text(sums.replace(one.sha256, two.sha256))

    with pytest.raises(Damaged):
        verified(one.directory)


# --- attacks


def test_swaps_while_it_works_leak_nothing(root: Path) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (root / "dir").mkdir()
    names = [f"file{number}" for number in range(200)]
    for name in names:
        (outside / name).write_bytes(b"SECRET")
        (root / "dir" / name).write_bytes(b"mine")
    (root / "link").symlink_to(outside)
    is_over = threading.Event()

    def swap() -> None:
        while not is_over.is_set():
            (root / "dir").rename(root / "aside")
            (root / "link").rename(root / "dir")
            (root / "aside").rename(root / "link")

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        paths = [f"{way}/{name}" for way in ("dir", "link") for name in names]
        reports = [
            archive(root, untracked(*paths), tag=f"00000{number}")
            for number in range(3)
        ]
    finally:
        is_over.set()
        swapping.join()

    for report in reports:
        assert b"SECRET" not in (report.directory / "work.tar").read_bytes()
