"""`cloneyard rescue`: what was rescued of a workspace, listed and downloaded."""

from __future__ import annotations

import json
import os
import shutil
import stat
import tarfile
from pathlib import Path

import pytest

from provisioner.cli import cloneyard
from provisioner.demo.processes import Child
from provisioner.workspaces.models import Rescue
from tests.support.command_line import CommandLine
from tests.support.rescues import area, host, kept_host, rescue, warm_host

__all__ = ["area", "host", "kept_host", "rescue", "warm_host"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]


def test_its_owner_lists_and_downloads_what_was_rescued(
    command_line: CommandLine, rescue: Rescue, host: Child, tmp_path: Path
) -> None:
    name, to = rescue.workspace.name, tmp_path / "hers.tar"

    listed = command_line.run("rescue", name)
    as_json = command_line.run("rescue", name, "--json")
    saved = command_line.run("rescue", name, "-o", str(to))

    assert listed.returncode == cloneyard.DONE, listed.stderr
    assert "SIZE" in listed.stdout
    assert "src/notes.txt" in listed.stdout
    assert r"caf\xe9 <b>.txt" in listed.stdout
    assert "70,000" in listed.stdout
    assert len(json.loads(as_json.stdout)["entries"]) == 4
    assert saved.returncode == cloneyard.DONE, saved.stderr
    assert "its checksum matches" in saved.stderr
    assert to.read_bytes() == (Path(rescue.directory) / "work.tar").read_bytes()
    assert stat.S_IMODE(to.stat().st_mode) == 0o600
    with tarfile.open(to) as archive:
        assert len(archive.getnames()) == 3


def test_an_archive_that_was_changed_is_not_kept(
    command_line: CommandLine, rescue: Rescue, host: Child, tmp_path: Path
) -> None:
    with (Path(rescue.directory) / "work.tar").open("r+b") as archive:
        archive.write(b"X")
    before = os.listdir(tmp_path)

    saved = command_line.run(
        "rescue", rescue.workspace.name, "-o", str(tmp_path / "x.tar")
    )

    assert saved.returncode == cloneyard.FAILED
    assert "its checksum does not match" in saved.stderr
    assert os.listdir(tmp_path) == before


def test_what_was_removed_or_never_was_is_said(
    command_line: CommandLine, rescue: Rescue, host: Child, tmp_path: Path
) -> None:
    name, to = rescue.workspace.name, str(tmp_path / "x.tar")
    other = command_line.run("rescue", name, "--id", "999999")
    shutil.rmtree(rescue.directory)

    removed = command_line.run("rescue", name, "-o", to)
    Rescue.objects.all().delete()
    nothing = command_line.run("rescue", name)

    assert (other.returncode, nothing.returncode) == (cloneyard.NOT_FOUND,) * 2
    assert "There is no rescue of" in nothing.stderr
    assert removed.returncode == cloneyard.REFUSED
    assert "The archive was removed:" in removed.stderr
    assert not Path(to).exists()
