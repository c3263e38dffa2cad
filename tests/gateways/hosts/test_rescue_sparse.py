"""Holes stay holes, refused archives go, and two of one second do not meet."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from provisioner.gateways.hosts.rescue_archive import ArchiveIncomplete
from tests.support.rescue_archives import (
    archive,
    left_in_rescue,
    root,
    untracked,
    verified,
)

__all__ = ["root"]

MIB = 1 << 20
NAME = "disk-ü image.raw"

SIZE = 16 * MIB

# Where data lies in files of that size: offsets in bytes.
LAYOUTS = {
    "nothing": [],
    "begin": [0],
    "middle": [8 * MIB],
    "end": [SIZE - 4096],
    "several": [0, 2 * MIB, 3 * MIB, SIZE - 4096],
}


def sparse(path: Path, offsets: list[int]) -> None:
    with path.open("wb") as file:
        for offset in offsets:
            file.seek(offset)
            file.write(os.urandom(4096))
        file.truncate(SIZE)


def taken(path: Path) -> int:
    return path.stat().st_blocks * 512


@pytest.mark.parametrize(
    ("layout", "name"),
    [*((layout, NAME) for layout in LAYOUTS), ("middle", 60 * "ab/" + "file")],
)
def test_holes_stay_holes(layout: str, name: str, root: Path, tmp_path: Path) -> None:
    """By GNU tar and by Python, with the checksum of all of the content."""
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    sparse(root / name, LAYOUTS[layout])
    content = hashlib.sha256((root / name).read_bytes()).hexdigest()

    report = archive(root, [*untracked(name), *untracked("gone")])

    work = report.directory / "work.tar"
    assert taken(work) < MIB
    verified(report.directory)
    out = tmp_path / "out"
    out.mkdir()
    subprocess.run(["tar", "-xpf", str(work), "-C", str(out)], check=True)
    came = out / name
    assert hashlib.sha256(came.read_bytes()).hexdigest() == content
    assert taken(came) <= taken(root / name) + 65536
    with tarfile.open(work, errors="surrogateescape") as tar:
        [member] = tar.getmembers()
        assert (member.name, member.size) == (name, SIZE)


def test_a_name_that_is_no_text_is_stored_with_its_holes_written_out(
    root: Path, tmp_path: Path
) -> None:
    """No tar reads such a name back from the header of a sparse file."""
    name = "disk-\udcff.raw"
    sparse(root / name, [0])

    report = archive(root, untracked(name))

    out = tmp_path / "out"
    out.mkdir()
    work = str(report.directory / "work.tar")
    subprocess.run(["tar", "-xpf", work, "-C", str(out)], check=True)
    assert (out / name).read_bytes() == (root / name).read_bytes()


def test_what_has_no_holes_is_stored_as_ever(root: Path) -> None:
    (root / "plain").write_bytes(os.urandom(MIB))

    report = archive(root, untracked("plain"))

    with tarfile.open(report.directory / "work.tar") as tar:
        [member] = tar.getmembers()
        assert not member.issparse()


def test_an_archive_that_lacks_something_is_not_kept(root: Path) -> None:
    (root / "here").write_text("x")

    for _ in range(3):
        with pytest.raises(ArchiveIncomplete) as incomplete:
            archive(root, untracked("here", "gone"), only_complete=True)

    assert [problem.path for problem in incomplete.value.problems] == ["gone"]
    assert left_in_rescue(root) == []


def test_two_within_a_second_do_not_meet(root: Path) -> None:
    (root / "here").write_text("x")

    names = {archive(root, untracked("here")).directory.name for _ in range(4)}

    assert len(names) == 4


def test_the_size_of_a_file_is_not_the_room_that_it_needs(root: Path) -> None:
    """A disk image that is empty takes next to nothing, however large it is."""
    with (root / "huge").open("wb") as file:
        file.truncate(256 * MIB)

    report = archive(root, untracked("huge"))

    assert taken(report.directory / "work.tar") < MIB
