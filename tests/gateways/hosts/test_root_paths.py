"""Which files of a build name the directory that it ran in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from provisioner.gateways.hosts import root_paths
from provisioner.gateways.hosts.root_paths import sample_root_paths


def test_files_that_the_build_made_are_searched(tmp_path: Path) -> None:
    root = tmp_path / "t-main"
    (root / "out").mkdir(parents=True)
    (root / "out" / "main.d").write_bytes(b"\0main.o: " + bytes(root) + b"/src/main.c")
    (root / "out" / "main.o").write_bytes(b"\x7fELF relative/src/main.c")
    versioned = root / "README"
    versioned.write_text(f"see {root}/out")
    versioned.chmod(0o444)

    *named, tally = sample_root_paths(root)

    assert [finding.path for finding in named] == ["out/main.d"]
    assert str(root) in named[0].sentence
    assert tally.sentence == "absolute_root: 1 of 2 writable files."


def test_another_directory_with_a_longer_name_is_another(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(f"{tmp_path}2/x {tmp_path}-old {tmp_path}.bak")
    assert sample_root_paths(tmp_path) == []
    (tmp_path / "a").write_text(f"cd {tmp_path}")
    assert len(sample_root_paths(tmp_path)) == 2


def test_links_pipes_and_what_lies_outside_are_not_read(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text(str(root))
    (root / "link").symlink_to(outside / "file")
    (root / "directory").symlink_to(outside)
    os.mkfifo(root / "pipe")
    assert sample_root_paths(root) == []


def test_time_and_numbers_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        (tmp_path / f"file{number}").write_text(str(tmp_path))
    assert sample_root_paths(tmp_path, seconds=-1) == []

    monkeypatch.setattr(root_paths, "FILES", 10)
    findings = sample_root_paths(tmp_path)
    assert "10 of a sample of 10 writable files" in findings[-1].sentence

    monkeypatch.setattr(root_paths, "FILES", 1000)
    monkeypatch.setattr(root_paths, "NAMED", 5)
    findings = sample_root_paths(tmp_path)
    assert len(findings) == 6
    assert "20 of 20" in findings[-1].sentence  # of one directory, no more


def test_names_that_are_no_text_can_be_stored(tmp_path: Path) -> None:
    with open(bytes(tmp_path) + b"/\xff", "wb") as file:
        file.write(bytes(tmp_path))
    for finding in sample_root_paths(tmp_path):
        finding.path.encode()
        finding.sentence.encode()
