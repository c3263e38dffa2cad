"""Hostile trees: whatever lies or moves in a clone, nothing outside it changes.

Each attack is tried on all that walks as root: chown and removal, by both walks.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest

from provisioner.gateways.hosts.ownership import change_ownership
from provisioner.gateways.hosts.removal import remove_contents
from provisioner.gateways.hosts.trees.run import Walker
from tests.gateways.hosts.trees import (
    GROUP,
    OWNER,
    bind_mounted,
    needs_root,
    owners_below,
    plant,
    volume_of_its_own,
)

pytestmark = [pytest.mark.integration, needs_root]

AT_FDCWD, RENAME_EXCHANGE = -100, 2
ROUNDS = 3

Walk = Callable[[Path], object]


@pytest.fixture(params=["chown", "removal"])
def walk(request: pytest.FixtureRequest, walker: Walker) -> Walk:
    """One of the things that are done to whole trees."""
    if request.param == "removal":
        return partial(remove_contents, walker=walker)
    return partial(change_ownership, uid=OWNER, gid=GROUP, walker=walker)


def state_of(root: Path) -> dict[bytes, tuple[object, ...]]:
    """Return what must not change of every inode: existence, kind, owner, content."""
    found: dict[bytes, tuple[object, ...]] = {}
    for directory, names, files in os.walk(os.fsencode(root)):
        for path in (directory, *(os.path.join(directory, n) for n in names + files)):
            status = os.lstat(path)
            content: object = None
            if stat.S_ISREG(status.st_mode):
                content = Path(os.fsdecode(path)).read_bytes()
            elif stat.S_ISLNK(status.st_mode):
                content = os.readlink(path)
            found[path] = (
                *(status.st_ino, status.st_mode, status.st_uid, status.st_gid),
                content,
            )
    return found


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """What an attacker would like to have; checked afterwards."""
    root = tmp_path / "outside"
    plant(root)
    for file in root.rglob("file*"):
        file.write_text(str(file))
    before = state_of(root)
    yield root
    assert state_of(root) == before


@contextmanager
def meanwhile(attack: Callable[[], None]) -> Iterator[None]:
    """Repeat an attack in a thread; an attack that no longer can ends quietly."""
    is_over = threading.Event()

    def repeat() -> None:
        while not is_over.is_set():
            try:
                attack()
            except OSError:
                continue  # The walk has just removed what was to be moved.

    attacker = threading.Thread(target=repeat)
    attacker.start()
    try:
        yield
    finally:
        is_over.set()
        attacker.join()


def exchange(one: Path, other: Path) -> None:
    """Swap two names at one stroke. Source: renameat2(2)."""
    libc = ctypes.CDLL(None, use_errno=True)
    names = os.fsencode(one), os.fsencode(other)
    if libc.renameat2(AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def replant(root: Path) -> None:
    """Make the clone anew, with names to walk while the attack goes on."""
    if root.exists():
        shutil.rmtree(root)
    plant(root, directories=8, files=8)


def test_links_out_of_the_clone_lead_nowhere(
    tmp_path: Path, outside: Path, walk: Walk
) -> None:
    clone = tmp_path / "clone"
    plant(clone)
    targets = (
        *(str(outside), f"{outside}/outer0/inner0/file0", "../outside/outer1"),
        *("..", "../..", "/", "/etc/passwd", "/nowhere", "."),
    )
    for number, target in enumerate(targets):
        (clone / f"link{number}").symlink_to(target)
        (clone / "outer1/inner1" / f"link{number}").symlink_to(target)
    walk(clone)


def test_files_linked_from_outside_keep_owner_and_content(
    tmp_path: Path, outside: Path, walk: Walk
) -> None:
    clone = tmp_path / "clone"
    plant(clone)
    for number, file in enumerate(sorted(outside.rglob("file*"))):
        os.link(file, clone / "outer1" / f"link{number}")
    walk(clone)


@pytest.mark.parametrize("is_whole", [False, True])
def test_directories_swapped_for_links_meanwhile_lead_nowhere(
    tmp_path: Path, outside: Path, walk: Walk, is_whole: bool
) -> None:
    with _volume(tmp_path, is_whole=is_whole) as volume:
        clone = volume / "files"
        for _ in range(ROUNDS):
            replant(clone)
            for number in range(8):
                (clone / f"trap{number}").symlink_to(outside)
                (clone / f"outer{number}/trap").symlink_to(outside / "outer0/inner0")

            def swap(clone: Path = clone) -> None:
                for number in range(8):
                    exchange(clone / f"outer{number}", clone / f"trap{number}")
                    exchange(clone / f"outer{number}", clone / f"trap{number}")
                    inside = clone / f"outer{number}"
                    exchange(inside / "inner0", inside / "trap")

            with meanwhile(swap):
                walk(volume)


@pytest.mark.parametrize("is_whole", [False, True])
def test_files_swapped_for_links_meanwhile_lead_nowhere(
    tmp_path: Path, outside: Path, walk: Walk, is_whole: bool
) -> None:
    with _volume(tmp_path, is_whole=is_whole) as volume:
        clone = volume / "files"
        for _ in range(ROUNDS):
            replant(clone)
            for number in range(8):
                trap = clone / f"outer{number}/inner0/trap"
                trap.symlink_to(outside / "outer0/inner0/file0")

            def swap(clone: Path = clone) -> None:
                for number in range(8):
                    directory = clone / f"outer{number}/inner0"
                    exchange(directory / "file3", directory / "trap")

            with meanwhile(swap):
                walk(volume)


@contextmanager
def _volume(tmp_path: Path, *, is_whole: bool) -> Iterator[Path]:
    """Make a root to walk: a volume of its own, or just a directory."""
    root = tmp_path / "clone"
    if is_whole:
        with volume_of_its_own(root):
            yield root
    else:
        root.mkdir()
        yield root


def test_a_linked_file_whose_directory_moves_meanwhile_is_not_given_away(
    tmp_path: Path, outside: Path, walk: Walk
) -> None:
    clone, files = tmp_path / "clone", sorted(outside.rglob("file*"))
    for _ in range(ROUNDS):
        replant(clone)
        for number in range(8):
            os.link(files[number], clone / f"outer{number}/inner0/linked")

        def move(clone: Path = clone) -> None:
            for number in range(8):
                (clone / f"outer{number}/inner0").rename(clone / f"moved{number}")
                (clone / f"moved{number}").rename(clone / f"outer{number}/inner0")

        with meanwhile(move):
            walk(clone)


def test_a_directory_moved_out_meanwhile_leads_nowhere(
    tmp_path: Path, outside: Path, walk: Walk
) -> None:
    clone, aside = tmp_path / "clone", tmp_path / "aside"
    for _ in range(ROUNDS):
        replant(clone)
        aside.mkdir()
        shutil.copytree(outside, aside / "beside")
        before = state_of(aside / "beside")

        def move(clone: Path = clone, aside: Path = aside) -> None:
            for number in range(8):
                (clone / f"outer{number}").rename(aside / "moved")
                (aside / "moved").rename(clone / f"outer{number}")

        with meanwhile(move):
            walk(clone)
        assert state_of(aside / "beside") == before
        shutil.rmtree(aside)


def test_mounts_inside_are_not_entered(
    tmp_path: Path, outside: Path, walk: Walk
) -> None:
    clone = tmp_path / "clone"
    plant(clone)
    directory, file = clone / "outer1/mounted", clone / "outer2/inner2/mounted file"
    directory.mkdir()
    file.touch()
    (clone / "outer0/again").mkdir()
    with (
        bind_mounted(outside, directory),
        bind_mounted(outside / "outer0/inner0/file0", file),
        bind_mounted(outside / "outer1", clone / "outer0/again"),
    ):
        walk(clone)


@pytest.mark.parametrize("kind", ["directory", "file"])
def test_a_mount_inside_whose_path_changes_meanwhile_is_not_entered(
    tmp_path: Path, outside: Path, walk: Walk, kind: str
) -> None:
    clone = tmp_path / "clone"
    source = outside if kind == "directory" else outside / "outer0/inner0/file0"
    for _ in range(ROUNDS):
        replant(clone)
        with ExitStack() as mounts:
            for number in range(8):
                inside = clone / f"outer{number}/inner1/mounted"
                inside.mkdir() if kind == "directory" else inside.touch()
                mounts.enter_context(bind_mounted(source, inside))

            def move(clone: Path = clone) -> None:
                for number in range(8):
                    (clone / f"outer{number}").rename(clone / "other")
                    (clone / "other").rename(clone / f"outer{number}")

            with meanwhile(move):
                walk(clone)


def test_a_volume_with_a_mount_inside_keeps_it_apart(
    tmp_path: Path, outside: Path, walk: Walk
) -> None:
    with volume_of_its_own(tmp_path / "volume"):
        plant(tmp_path / "volume/files", files=40)
        file = tmp_path / "volume/files/outer2/inner2/file39"
        with bind_mounted(outside / "outer0/inner0/file0", file):
            walk(tmp_path / "volume")


def test_pipes_sockets_and_devices_are_not_opened(
    tmp_path: Path, outside: Path, walk: Walk
) -> None:
    clone = tmp_path / "clone"
    plant(clone)
    null = os.stat("/dev/null")
    os.mkfifo(clone / "outer0/pipe")
    os.mknod(clone / "outer1/null", stat.S_IFCHR | 0o666, null.st_rdev)
    with socket.socket(socket.AF_UNIX) as listening:
        here = os.open(clone, os.O_RDONLY)
        listening.bind(f"/proc/self/fd/{here}/socket")
        os.close(here)
    walk(clone)
    now = os.stat("/dev/null")
    assert (now.st_uid, now.st_mode) == (null.st_uid, null.st_mode)
    assert os.listdir(clone) == [] or owners_below(clone) == {(OWNER, GROUP)}


def test_no_name_is_an_instruction(tmp_path: Path, outside: Path, walk: Walk) -> None:
    clone = tmp_path / "clone"
    plant(clone)
    names = (
        *(
            b"-R",
            b"--",
            b"...",
            b" ..",
            b".. ",
            b"..\n",
            b"\n",
            b"\x01",
            b"*",
            b"$(id)",
        ),
        *(b'"', b"\\", b'"]}', b"\xff\xfe", b"\xc3", "\u00e4".encode(), b"%s%n"),
        *(b"\xed\xb3\xbf", b"x" * 255),
    )
    for name in names:
        path = os.path.join(os.fsencode(clone), name)
        os.mkdir(path)
        os.close(os.open(os.path.join(path, name), os.O_CREAT))
        os.symlink(os.fsencode(outside), os.path.join(path, b"link"))
    walk(clone)
    assert os.listdir(clone) == [] or owners_below(clone) == {(OWNER, GROUP)}


@pytest.mark.parametrize(
    "name", [b'\n"\\\x01', b"\xff\xfe", "\u00e4\U0001f600".encode()]
)
def test_failures_name_any_name_as_it_is(
    tmp_path: Path, outside: Path, walker: Walker, name: bytes
) -> None:
    clone = tmp_path / "clone"
    plant(clone)
    below = os.path.join(os.fsencode(clone), b"outer0", name)
    os.mkdir(below)
    os.link(outside / "outer0/inner0/file0", os.path.join(below, name))
    report = change_ownership(clone, uid=OWNER, gid=GROUP, walker=walker)
    (failure,) = report.failures
    assert os.fsencode(failure.path) == b"outer0/" + name + b"/" + name
