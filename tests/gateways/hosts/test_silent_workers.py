"""Helpers end when their worker is stopped or cut off: another may have its step."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.conf import settings

from provisioner.gateways import fence
from provisioner.gateways.hosts import nursery, rescue_archive
from provisioner.gateways.hosts.descent import ENTER
from provisioner.gateways.hosts.processes import (
    BEAT,
    BEGIN,
    PUBLISH,
    READ_BYTES,
    bare_command,
)
from provisioner.gateways.hosts.removal import remove_contents
from provisioner.gateways.hosts.run_as import run_as
from provisioner.gateways.hosts.trees import native
from provisioner.gateways.hosts.trees.run import Walker
from provisioner.lib.refusals import StepCutShort
from tests.gateways.hosts import errand
from tests.gateways.hosts.errand import OWNER
from tests.gateways.hosts.trees import WALKERS, plant, walker_or_skip
from tests.support.rescue_archives import GID, UID, root, untracked

__all__ = ["root"]

pytestmark = pytest.mark.integration

WITHIN_SECONDS = 20.0
SILENT_SECONDS = 0.5
FILES_IN_EACH = 500


def command_of(walker: Walker) -> list[str]:
    if walker == "sequential":
        return bare_command("provisioner.gateways.hosts.trees.sequential")
    return [str(native.build()), str(os.getpid())]


@contextmanager
def removing(
    walker: Walker,
    tree: Path,
    *,
    after: Sequence[str] = (),
    silent_seconds: float = SILENT_SECONDS,
) -> Iterator[subprocess.Popen[bytes]]:
    """Start the process that removes what is in a tree."""
    root_fd = os.open(tree, ENTER)
    order = [str(silent_seconds), str(root_fd), "0", "remove"]
    with subprocess.Popen(
        [*after, *command_of(walker), *order],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=[root_fd],
    ) as walk:
        os.close(root_fd)
        yield walk


def test_a_walk_whose_worker_is_silent_ends(tmp_path: Path) -> None:
    walker = walker_or_skip("compiled")
    tree = tmp_path / "tree"
    plant(tree, directories=9, files=FILES_IN_EACH)

    with removing(walker, tree) as walk:
        begin(walk)
        os.kill(walk.pid, signal.SIGSTOP)  # it works on slowly
        time.sleep(2 * SILENT_SECONDS)
        os.kill(walk.pid, signal.SIGCONT)
        assert walk.wait(WITHIN_SECONDS) == 1

    assert list(tree.iterdir())


@pytest.mark.parametrize("walker", WALKERS)
def test_a_walk_that_began_late_ends_at_once(walker: Walker, tmp_path: Path) -> None:
    walker_or_skip(walker)
    tree = tmp_path / "tree"
    plant(tree, directories=2, files=3)
    late = ["sh", "-c", f'sleep {2 * SILENT_SECONDS}; exec "$@"', "late"]

    with removing(walker, tree, after=late) as walk:
        assert walk.stdin is not None
        walk.stdin.write(BEAT)  # said before it listened, nobody knows when
        walk.stdin.flush()
        assert walk.wait(WITHIN_SECONDS) == 1

    assert len(list(tree.iterdir())) == 2


@pytest.mark.parametrize("walker", WALKERS)
def test_a_walk_takes_nothing_said_before_it_was_ready_for_leave(
    walker: Walker, tmp_path: Path
) -> None:
    walker_or_skip(walker)
    tree = tmp_path / "tree"
    plant(tree, directories=2, files=3)

    with removing(walker, tree, silent_seconds=4 * SILENT_SECONDS) as walk:
        assert walk.stdin is not None
        walk.stdin.write(BEAT)  # then its worker was frozen
        walk.stdin.flush()
        assert walk.wait(WITHIN_SECONDS) == 1

    assert len(list(tree.iterdir())) == 2


@pytest.fixture
def place_of_helper() -> Iterator[Path]:
    """A directory that the helper may write to, who is somebody else."""
    with tempfile.TemporaryDirectory() as place:
        if os.geteuid() == 0:
            os.chown(place, OWNER.uid, OWNER.gid)
        yield Path(place)


def test_a_helper_takes_nothing_said_before_it_was_ready_for_leave(
    place_of_helper: Path,
) -> None:
    child = nursery.fork_child()
    order = {
        "module": "tests.gateways.hosts.errand",
        "function": "touch",
        "arguments": {"path": str(place_of_helper / "touched")},
        "called_back": [],
        "uid": OWNER.uid,
        "gid": OWNER.gid,
        "parent": child.parent,
        "silent_seconds": 4 * SILENT_SECONDS,
    }
    child.stdin.write(json.dumps(order).encode() + b"\n")
    child.stdin.write(BEAT * 8 * READ_BYTES)  # more than it reads with its order
    child.stdin.flush()

    assert child.wait(WITHIN_SECONDS) == 1
    for pipe in (child.stdin, child.stdout, child.stderr):
        pipe.close()
    assert not list(place_of_helper.iterdir())


def leave_that_ends() -> Callable[[], None]:
    """Return permission that is given once: the worker froze after it had asked."""
    answers = iter([None])

    def leave() -> None:
        if next(answers, StepCutShort) is not None:
            raise StepCutShort

    return leave


@pytest.mark.parametrize("walker", WALKERS)
def test_a_walk_whose_leave_ended_as_it_began_touches_nothing(
    walker: Walker, tmp_path: Path
) -> None:
    walker_or_skip(walker)
    tree = tmp_path / "tree"
    plant(tree, directories=2, files=3)
    before = sorted(tree.rglob("*"))

    with fence.asking(leave_that_ends()), pytest.raises(StepCutShort):
        remove_contents(tree, walker=walker)

    assert sorted(tree.rglob("*")) == before


def test_a_helper_whose_leave_ended_as_it_began_does_nothing(
    place_of_helper: Path,
) -> None:
    with fence.asking(leave_that_ends()), pytest.raises(StepCutShort):
        run_as(OWNER, errand.touch, place_of_helper / "touched")

    assert not list(place_of_helper.iterdir())


STOPPED = """
import sys
from pathlib import Path
from provisioner.gateways import fence
fence.SILENT_SECONDS = 0.5
from provisioner.gateways.hosts.removal import remove_contents
print(flush=True)
remove_contents(Path(sys.argv[1]), walker="sequential")
print("removed", flush=True)
"""


def walks_of(worker: subprocess.Popen[str]) -> list[int]:
    tasks = Path(f"/proc/{worker.pid}/task")
    return [
        int(child)
        for task in tasks.iterdir()
        for child in (task / "children").read_text().split()
    ]


def test_a_walk_of_a_stopped_worker_removes_nothing_more(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    plant(tree, directories=9, files=FILES_IN_EACH)
    with subprocess.Popen(
        [sys.executable, "-c", STOPPED, str(tree)],
        cwd=settings.BASE_DIR,
        stdout=subprocess.PIPE,
        text=True,
    ) as worker:
        try:
            assert worker.stdout is not None
            worker.stdout.readline()
            while not (walks := walks_of(worker)):
                assert worker.poll() is None
            os.kill(worker.pid, signal.SIGSTOP)
            os.kill(walks[0], signal.SIGSTOP)  # it works on slowly
            time.sleep(2 * SILENT_SECONDS)
            os.kill(walks[0], signal.SIGCONT)
            ends = time.monotonic() + WITHIN_SECONDS
            stat = Path(f"/proc/{walks[0]}/stat")
            while ") Z " not in stat.read_text():
                assert time.monotonic() < ends
                time.sleep(0.01)
        finally:
            worker.kill()

    assert list(tree.iterdir())


def archiving(tree: Path, *, silent_seconds: float) -> subprocess.Popen[bytes]:
    """Start the process that archives one file, with its order."""
    order = {
        "root": str(tree),
        "rescue_root": str(tree.parent / "rescue"),
        "owner": "alice",
        "name": "hers-20260101T000000Z-abcdef0000",
        "leftover": r"\.hers-.*",
        "uid": UID,
        "gid": GID,
        "only_complete": True,
        "silent_seconds": silent_seconds,
        "metadata": {"workspace": "hers", "owner": "alice", "shelves": []},
        "earlier": None,
    }
    return rescue_archive.start(order, untracked("mine"))


def names_in_rescue(tree: Path) -> list[str]:
    return os.listdir(tree.parent / "rescue" / "alice")


def said_by(process: subprocess.Popen[bytes], word: str) -> None:
    """Read what it says up to a word."""
    assert process.stdout is not None
    for line in process.stdout:
        if word in json.loads(line):
            return
    raise AssertionError(f"It did not say {word}.")


def begin(process: subprocess.Popen[bytes]) -> None:
    """Let it begin once it is ready."""
    said_by(process, "ready")
    assert process.stdin is not None
    os.write(process.stdin.fileno(), BEGIN)


def test_an_archive_takes_nothing_said_before_it_was_ready_for_leave(
    root: Path,
) -> None:
    (root / "mine").write_text("work")

    with archiving(root, silent_seconds=4 * SILENT_SECONDS) as process:
        assert process.stdin is not None
        process.stdin.write(BEAT * 2 * READ_BYTES)  # then its worker was frozen
        process.stdin.flush()
        assert process.wait(WITHIN_SECONDS) == 1

    assert not list((root.parent / "rescue").iterdir())


def test_an_archive_gets_no_name_where_its_worker_is_silent(root: Path) -> None:
    (root / "mine").write_text("work")

    with archiving(root, silent_seconds=4 * SILENT_SECONDS) as process:
        begin(process)
        said_by(process, "complete")
        assert process.wait(WITHIN_SECONDS) == 1

    assert all(name.startswith(".") for name in names_in_rescue(root))


def test_an_archive_gets_its_name_once_its_worker_says_so(root: Path) -> None:
    (root / "mine").write_text("work")

    with archiving(root, silent_seconds=WITHIN_SECONDS) as process:
        assert process.stdin is not None
        begin(process)
        said_by(process, "complete")
        process.stdin.write(BEAT)
        process.stdin.write(PUBLISH)
        process.stdin.flush()
        said_by(process, "archived")

    assert names_in_rescue(root) == ["hers-20260101T000000Z-abcdef0000"]
