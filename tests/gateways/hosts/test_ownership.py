"""Giving a tree away: everything below the root, and nothing else."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from provisioner.gateways.errors import Refused
from provisioner.gateways.hosts.ownership import change_ownership
from provisioner.gateways.hosts.privileges import CAPABILITIES
from provisioner.gateways.hosts.trees import native
from provisioner.gateways.hosts.trees.run import Walker, WalkReport
from tests.gateways.hosts.trees import (
    CHOWN,
    GROUP,
    OWNER,
    WALKERS,
    Chain,
    bind_mounted,
    needs_root,
    owners_below,
    plant,
    volume_of_its_own,
    walker_or_skip,
)

PROJECT = Path(__file__).parents[3]
NOBODY = 65534


def own(root: Path, walker: Walker) -> WalkReport:
    return change_ownership(root, uid=OWNER, gid=GROUP, walker=walker)


@needs_root
def test_gives_every_entry_and_the_root_to_uid_and_gid(
    tmp_path: Path, walker: Walker
) -> None:
    entries = plant(tmp_path / "clone")

    report = own(tmp_path / "clone", walker)

    assert (report.entries, report.done, report.already_right) == (
        entries,
        entries,
        0,
    )
    assert report.failed_count == 0
    assert report.failures == []
    assert owners_below(tmp_path / "clone") == {(OWNER, GROUP)}


@needs_root
def test_leaves_alone_what_is_right(tmp_path: Path, walker: Walker) -> None:
    root = tmp_path / "clone"
    entries = plant(root)
    own(root, walker)
    before = (root / "outer0/inner0/file0").stat().st_ctime_ns
    os.chown(root / "outer1/inner1/file1", OWNER, 0)

    report = own(root, walker)

    assert (report.done, report.already_right) == (1, entries - 1)
    assert (root / "outer0/inner0/file0").stat().st_ctime_ns == before


def test_what_is_already_the_callers_needs_no_rights(
    tmp_path: Path, walker: Walker
) -> None:
    if os.geteuid() == 0:
        pytest.skip("root is refused as an owner")
    entries = plant(tmp_path / "clone")
    report = change_ownership(
        tmp_path / "clone", uid=os.geteuid(), gid=os.getegid(), walker=walker
    )
    assert (report.already_right, report.failed_count) == (entries, 0)


@pytest.mark.parametrize(("uid", "gid"), [(0, 5), (5, 0), (-1, 5), (5, -1)])
def test_refuses_root_and_what_is_no_id(tmp_path: Path, uid: int, gid: int) -> None:
    with pytest.raises(ValueError, match="cannot own files"):
        change_ownership(tmp_path, uid=uid, gid=gid)


@pytest.mark.parametrize("number", [2**32 - 1, True])
def test_refuses_the_id_that_means_no_change(tmp_path: Path, number: int) -> None:
    with pytest.raises(ValueError, match="cannot own files"):
        change_ownership(tmp_path, uid=number, gid=5)


def test_refuses_a_root_that_is_no_directory_of_its_own(
    tmp_path: Path, walker: Walker
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path)
    for root, reason in (
        (Path("/"), "root of this host"),
        (Path("relative"), "cannot be examined"),
        (tmp_path / "file", "not a directory"),
        (tmp_path / "link", "symbolic link"),
        (tmp_path / "absent", "cannot be examined"),
        (tmp_path / "x" / "..", "cannot be examined|without '..'"),
    ):
        with pytest.raises(Refused, match=reason):
            own(root, walker)


@needs_root
def test_changes_links_themselves_and_never_what_they_lead_to(
    tmp_path: Path, walker: Walker
) -> None:
    plant(tmp_path / "clone")
    plant(tmp_path / "outside")
    (tmp_path / "clone/to_directory").symlink_to(tmp_path / "outside")
    (tmp_path / "clone/to_file").symlink_to("../outside/outer0/inner0/file0")
    (tmp_path / "clone/outer0/dangling").symlink_to("/nowhere")

    report = own(tmp_path / "clone", walker)

    assert report.failed_count == 0
    assert owners_below(tmp_path / "clone") == {(OWNER, GROUP)}
    assert owners_below(tmp_path / "outside") == {(0, 0)}


@needs_root
def test_a_directory_swapped_for_a_link_meanwhile_leads_nowhere(
    tmp_path: Path, walker: Walker
) -> None:
    plant(tmp_path / "outside", directories=4)
    plant(tmp_path / "clone", directories=12, files=20)
    is_over = threading.Event()

    def swap() -> None:
        number = 0
        while not is_over.is_set():
            number = (number + 1) % 12
            victim, aside = tmp_path / f"clone/outer{number}", tmp_path / "aside"
            victim.rename(aside)
            victim.symlink_to(tmp_path / "outside")
            victim.unlink()
            aside.rename(victim)

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        for _ in range(5):
            own(tmp_path / "clone", walker)
    finally:
        is_over.set()
        swapper.join()

    assert owners_below(tmp_path / "outside") == {(0, 0)}
    own(tmp_path / "clone", walker)
    assert owners_below(tmp_path / "clone") == {(OWNER, GROUP)}


@needs_root
def test_mounts_inside_are_skipped_and_named(tmp_path: Path, walker: Walker) -> None:
    entries = plant(tmp_path / "clone")
    plant(tmp_path / "outside")
    inside = tmp_path / "clone/outer1/mounted here"
    inside.mkdir()
    file_inside = tmp_path / "clone/outer2/file"
    file_inside.touch()
    with (
        bind_mounted(tmp_path / "outside", inside),
        bind_mounted(tmp_path / "outside/outer0/inner0/file0", file_inside),
    ):
        report = own(tmp_path / "clone", walker)
    assert sorted(report.skipped) == ["outer1/mounted here", "outer2/file"]
    assert report.entries == entries
    assert owners_below(tmp_path / "outside") == {(0, 0)}


@needs_root
def test_files_with_all_their_names_inside_are_given_away(
    tmp_path: Path, walker: Walker
) -> None:
    entries = plant(tmp_path / "clone")
    for number in range(3):
        os.link(
            tmp_path / "clone/outer0/inner0/file0",
            tmp_path / f"clone/outer{number}/other name",
        )
    report = own(tmp_path / "clone", walker)
    assert (report.done, report.failed_count) == (entries + 3, 0)
    assert owners_below(tmp_path / "clone") == {(OWNER, GROUP)}


@needs_root
def test_a_file_with_a_name_outside_is_left_and_named(
    tmp_path: Path, walker: Walker
) -> None:
    entries = plant(tmp_path / "clone")
    (tmp_path / "outside").touch()
    os.link(tmp_path / "outside", tmp_path / "clone/outer0/inside")

    report = own(tmp_path / "clone", walker)

    assert (tmp_path / "outside").stat().st_uid == 0
    assert (report.done, report.failed_count) == (entries, 1)
    (failure,) = report.failures
    assert (failure.path, failure.errno) == ("outer0/inside", errno.EMLINK)
    assert "hard links outside this tree" in str(failure)


@needs_root
def test_cleared_setuid_bits_are_counted(tmp_path: Path, walker: Walker) -> None:
    plant(tmp_path / "clone")
    (tmp_path / "clone/outer0/inner0/file0").chmod(0o4755)
    (tmp_path / "clone/outer0/inner0/file1").chmod(0o2755)
    (tmp_path / "clone/outer0").chmod(0o2755)
    report = own(tmp_path / "clone", walker)
    assert report.privileges_cleared == 2
    assert not (tmp_path / "clone/outer0/inner0/file0").stat().st_mode & 0o6000


@needs_root
@pytest.mark.parametrize("mode", [0o4755, 0o2755, 0o6755, 0o4644])
def test_a_clone_of_an_older_snapshot_loses_what_gives_privileges(
    tmp_path: Path, walker: Walker, mode: int
) -> None:
    """The kernel takes it from a file that changes hands; beside others, too.

    Source: chown(2), "the S_ISUID and S_ISGID mode bits are cleared"; capabilities(7).
    """
    plant(tmp_path / "clone", files=12)
    files = [tmp_path / f"clone/outer0/inner0/file{n}" for n in (0, 5, 11)]
    for file in files:
        file.chmod(mode)
        os.setxattr(file, CAPABILITIES, CHOWN)

    assert own(tmp_path / "clone", walker).failed_count == 0

    for file in files:
        assert stat.S_IMODE(file.stat().st_mode) == mode & 0o1777
        assert CAPABILITIES not in os.listxattr(file)


NAMES = st.lists(
    st.binary(min_size=1, max_size=80)
    .map(lambda name: name.replace(b"/", b"\n").replace(b"\0", b"\xff"))
    .filter(lambda name: name not in (b".", b"..")),
    min_size=1,
    max_size=12,
    unique=True,
)


@needs_root
@settings(max_examples=12, deadline=None)
@given(names=NAMES)
@pytest.mark.parametrize("walker_name", WALKERS)
def test_any_name_that_a_file_can_have_is_found(
    walker_name: Walker, names: list[bytes]
) -> None:
    walker = walker_or_skip(walker_name)
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory, "clone")
        root.mkdir()
        for name in names:
            os.mkdir(os.path.join(os.fsencode(root), name))
            os.close(
                os.open(
                    os.path.join(os.fsencode(root), name, name), os.O_CREAT, mode=0o600
                )
            )
        report = own(root, walker)
        assert (report.done, report.failed_count) == (1 + 2 * len(names), 0)
        assert owners_below(root) == {(OWNER, GROUP)}


@needs_root
@pytest.mark.parametrize("most_open", [None, 64])
def test_a_chain_deeper_than_any_path_is_owned_to_its_end(
    chain: Chain, most_open: int | None, walker: Walker
) -> None:
    report = _own_with_open_files(chain.root, most_open=most_open, walker=walker)

    assert report == f"{chain.entries} {chain.entries} 0"
    assert os.stat("last", dir_fd=chain.end_fd).st_uid == OWNER


def _own_with_open_files(root: Path, *, most_open: int | None, walker: Walker) -> str:
    limit = f"resource.setrlimit(resource.RLIMIT_NOFILE, ({most_open}, {most_open}))\n"
    return _run_python(
        "import resource\n" + (limit if most_open else "") + "print(report())",
        root=root,
        walker=walker,
    ).stdout.strip()


SCRIPT = """
import logging, sys
from pathlib import Path
from provisioner.gateways.hosts.ownership import change_ownership
from provisioner.gateways.hosts.privileges import CAPABILITIES
from provisioner.gateways.hosts.trees import native

root, uid, gid, walker, native.PLACE = *sys.argv[1:5], Path(sys.argv[5])
logging.disable()

def report():
    given = change_ownership(Path(root), uid=int(uid), gid=int(gid), walker=walker)
    return f"{given.entries} {given.done} {given.failed_count}"
"""


def _run_python(
    code: str,
    *,
    root: Path,
    walker: Walker,
    uid: int = OWNER,
    gid: int = GROUP,
    as_nobody: bool = False,
) -> subprocess.CompletedProcess[str]:
    who: dict[str, Any] = {}
    if as_nobody:
        who = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    python = _everybodys_python() if as_nobody else sys.executable
    place = _everybodys_place(root.parent) if as_nobody else native.PLACE
    return subprocess.run(
        [python, "-c", SCRIPT + code, str(root), str(uid), str(gid), walker, place],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=60,
        **who,
    )


def _everybodys_place(directory: Path) -> Path:
    """Return a place for the compiled walk that other uids can reach."""
    place = directory / "libexec"
    if native.PLACE.exists() and not place.exists():
        shutil.copytree(native.PLACE, place)
    return place


def _everybodys_python() -> str:
    """Return an interpreter that other uids can run, or skip the test."""
    for python in (sys.executable, "/usr/bin/python3"):
        try:
            done = subprocess.run(
                [python, "-c", "import sys; assert sys.version_info >= (3, 11)"],
                user=NOBODY,
                group=NOBODY,
                extra_groups=[],
                cwd=PROJECT,
                capture_output=True,
            )
        except OSError:
            continue
        if done.returncode == 0:
            return python
    pytest.skip("other uids cannot run a Python 3.11 here")


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory that other uids can reach, unlike tmp_path."""
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o711)  # noqa: S103 - that is its purpose
        yield Path(directory)


@needs_root
def test_without_root_it_says_that_and_why_it_could_not(
    open_directory: Path, walker: Walker
) -> None:
    root = open_directory / "clone"
    entries = plant(root)
    change_ownership(root, uid=NOBODY, gid=NOBODY, walker=walker)

    same = _run_python(
        "print(report())",
        root=root,
        walker=walker,
        uid=NOBODY,
        gid=NOBODY,
        as_nobody=True,
    )
    other = _run_python("print(report())", root=root, walker=walker, as_nobody=True)

    assert same.stdout.strip() == f"{entries} 0 0"
    assert "Refused" in other.stderr
    assert "only root may change owners" in other.stderr
    assert f"runs as uid {NOBODY}" in other.stderr
    assert owners_below(root) == {(NOBODY, NOBODY)}


@needs_root
def test_every_failure_is_named_and_counted(
    open_directory: Path, walker: Walker
) -> None:
    root = open_directory / "clone"
    root.mkdir()
    for number in range(1200):
        (root / f"file{number}").touch()
    (root / "closed").mkdir(mode=0o700)
    os.chown(root, NOBODY, NOBODY)

    told = _run_python(
        "done = change_ownership(\n"
        "    Path(root), uid=65534, gid=65534, walker=walker\n"
        ")\n"
        "assert done.failures_file is not None\n"
        "lines = done.failures_file.read_text().splitlines()\n"
        "print(done.failed_count, len(done.failures), len(set(lines)))\n"
        "done.failures_file.unlink()",
        root=root,
        walker=walker,
        as_nobody=True,
    )

    assert told.stderr == ""
    assert told.stdout.split() == ["1201", "1000", "1201"]


@needs_root
def test_killed_at_any_point_it_leaves_nobody_and_can_be_repeated(
    tmp_path: Path, walker: Walker
) -> None:
    root = tmp_path / "clone"
    entries = plant(root, directories=20, files=40)
    first = root / "outer19/inner19/file0"
    for wait_for in (lambda: root, lambda: first):
        _wait_until_ended(_start_and_kill(root, wait_for, walker=walker))
    report = own(root, walker)
    assert report.entries == entries
    assert report.failed_count == 0
    assert owners_below(root) == {(OWNER, GROUP)}


def _start_and_kill(
    root: Path, wait_for: Callable[[], Path], *, walker: Walker
) -> set[int]:
    script, place = SCRIPT + "report()", native.PLACE
    arguments = [str(root), str(OWNER), str(GROUP), walker, str(place)]
    process = subprocess.Popen([sys.executable, "-c", script, *arguments], cwd=PROJECT)
    _wait(lambda: wait_for().lstat().st_uid == OWNER or process.poll() is not None)
    descendants = _descendants(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return descendants


def _descendants(pid: int) -> set[int]:
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(status.parent.name)] = int(fields[1])
    found = {pid}
    while (
        more := {child for child, parent in parents.items() if parent in found} - found
    ):
        found |= more
    return found - {pid}


def _is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def _wait_until_ended(pids: set[int]) -> None:
    _wait(lambda: not any(_is_alive(pid) for pid in pids))


def _wait(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.002)


KILL_IT = """
import os, signal, threading
from pathlib import Path

def parent(status):
    try: return int(status.read_text().rpartition(")")[2].split()[1])
    except OSError: return 0

def kill():
    while True:
        for status in Path("/proc").glob("[0-9]*/stat"):
            if parent(status) == os.getpid():
                os.kill(int(status.parent.name), signal.SIGKILL)
                return

threading.Thread(target=kill, daemon=True).start()
print(report())
"""


@needs_root
def test_a_killed_process_is_an_error_and_not_a_hang(
    tmp_path: Path, walker: Walker
) -> None:
    plant(tmp_path / "clone", directories=20, files=40)
    done = _run_python(KILL_IT, root=tmp_path / "clone", walker=walker)
    # Either all was done before the process was killed, or the caller is told.
    assert done.returncode == 0 or "TransientGatewayError" in done.stderr


@needs_root
def test_progress_is_reported(tmp_path: Path, walker: Walker) -> None:
    entries = plant(tmp_path / "clone")
    seen: list[WalkReport] = []
    change_ownership(
        tmp_path / "clone",
        uid=OWNER,
        gid=GROUP,
        progress=seen.append,
        walker=walker,
    )
    assert seen[-1].entries == entries
    assert seen[-1].seconds > 0


@needs_root
def test_in_a_volume_of_its_own_all_is_owned_too(
    tmp_path: Path, walker: Walker
) -> None:
    root = tmp_path / "clone"
    with volume_of_its_own(root):
        entries = 1 + plant(root / "files", files=80)
        os.link(root / "files/outer0/inner0/file0", root / "files/other name")
        for number in range(70, 80):
            os.chown(root / f"files/outer2/inner2/file{number}", OWNER, GROUP)
        report = own(root, walker)
        assert report.failures == []
        assert (report.entries, report.failed_count) == (entries + 1, 0)
        assert owners_below(root) == {(OWNER, GROUP)}
        again = own(root, walker)
        assert (again.done, again.already_right) == (0, entries + 1)


@needs_root
def test_in_a_volume_of_its_own_unvisited_links_are_no_failure(
    tmp_path: Path, walker: Walker
) -> None:
    root = tmp_path / "clone"
    with volume_of_its_own(root):
        (root / "many").mkdir()
        (root / "few").mkdir()
        for number in range(200):
            (root / "many" / f"file{number}").touch()
        for number in range(0, 200, 10):
            os.link(root / "many" / f"file{number}", root / "few" / f"link{number}")
        report = own(root, walker)
        assert report.failures == []
        assert report.entries == 1 + 2 + 200 + 20
        assert owners_below(root) == {(OWNER, GROUP)}
