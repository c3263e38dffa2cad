"""Scratch directories: gone at their end, found by their tag if that never comes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from provisioner.gateways.hosts.scratch import (
    PREFIX,
    remove_scratch,
    scratch_directory,
    scratch_left,
)
from provisioner.gateways.owners import Ids

OWNER = Ids(uid=20000, gid=20000)
KILLED = """
import os, sys
from provisioner.gateways.hosts.scratch import scratch_directory
from provisioner.gateways.owners import Ids
with scratch_directory("one-measure1", Ids(uid=20000, gid=20000)) as made:
    (made / "tree").mkdir()
    (made / "tree" / "file").write_text("content")
    os.kill(os.getpid(), 9)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_one_is_gone_at_its_end(temporary: Path) -> None:
    with scratch_directory("one-data", OWNER) as made:
        (made / "file").write_text("content")
        assert scratch_left("one", OWNER) == [made]
        if os.geteuid() == 0:
            assert made.stat().st_uid == OWNER.uid
    assert list(temporary.iterdir()) == []


def test_what_a_killed_process_left_is_found_by_its_tag_and_removed(
    temporary: Path,
) -> None:
    killed = subprocess.run(
        [sys.executable, "-c", KILLED],
        env={**os.environ, "TMPDIR": str(temporary)},
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    [left] = scratch_left("one", OWNER)
    assert scratch_left("on", OWNER) == scratch_left("two", OWNER) == []

    remove_scratch("one-measure2", OWNER)
    assert left.exists()
    remove_scratch("one", OWNER)
    remove_scratch("one", OWNER)

    assert list(temporary.iterdir()) == []


def test_what_others_named_alike_does_not_count(temporary: Path) -> None:
    (temporary / f"{PREFIX}one-file").write_text("no directory")
    (temporary / "elsewhere").mkdir()
    (temporary / f"{PREFIX}one-link").symlink_to(temporary / "elsewhere")
    if os.geteuid() == 0:
        strange = temporary / f"{PREFIX}one-strange"
        strange.mkdir()
        os.chown(strange, 20007, 20007)

    assert scratch_left("one", OWNER) == []
