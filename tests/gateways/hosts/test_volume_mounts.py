"""Volumes are mounted one by one, with mount(8) of this host.

NFS is not in every kernel: tmpfs takes the source and the options of an NFS mount, and
the kernel lists them in the same way.
"""

from __future__ import annotations

import dataclasses
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from provisioner.gateways.errors import Busy, Refused, Unreachable
from provisioner.gateways.fence import asking
from provisioner.gateways.hosts import volume_mounts
from provisioner.gateways.hosts.mounts import mounts_at
from provisioner.gateways.hosts.volume_mounts import VolumeMount

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")

TMPFS = ("mount", "-t", "tmpfs")
OTHER = "10.0.0.8:/w-hers"


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[VolumeMount]:
    directory = tmp_path / "a b" / "w-hers"
    directory.parent.mkdir()
    yield VolumeMount(
        source="10.0.0.7:/w-hers",
        directory=directory,
        options="size=1m,noatime",
        command=TMPFS,
        is_lab=True,
    )
    while mounts_at(directory):
        subprocess.run(["umount", "-l", str(directory)], check=True)


def ensure(volume: VolumeMount) -> None:
    volume.ensure(addresses=lambda: ["10.0.0.7"])


def test_a_volume_is_mounted_once_with_its_options(volume: VolumeMount) -> None:
    ensure(volume)
    ensure(volume)

    [mount] = mounts_at(volume.directory)
    assert mount.source == volume.source
    assert {"noatime", "nosuid", "nodev"} <= set(mount.options)


def test_workers_that_mount_at_once_mount_once(volume: VolumeMount) -> None:
    slow = ("/bin/sh", "-c", 'sleep 0.3; exec mount -t tmpfs "$@"', "mount")
    slowly = dataclasses.replace(volume, command=slow)
    threads = [threading.Thread(target=ensure, args=(slowly,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(mounts_at(volume.directory)) == 1


def test_what_comes_from_another_source_is_refused_with_both(
    volume: VolumeMount,
) -> None:
    ensure(dataclasses.replace(volume, source=OTHER))

    with pytest.raises(Refused) as refusal:
        ensure(volume)
    with pytest.raises(Refused) as kept:
        volume.remove()
    assert kept.value.sentence == refusal.value.sentence
    assert OTHER in refusal.value.sentence
    assert volume.source in refusal.value.sentence
    assert len(mounts_at(volume.directory)) == 1


def test_only_nfs_is_taken_for_a_volume_but_in_the_lab(volume: VolumeMount) -> None:
    strict = dataclasses.replace(volume, is_lab=False)
    with pytest.raises(Refused, match=r"\(tmpfs\) is mounted"):
        ensure(strict)


def test_only_a_server_of_the_svm_is_asked(volume: VolumeMount) -> None:
    strict = dataclasses.replace(volume, is_lab=False, source=OTHER)
    with pytest.raises(Refused, match=r"10\.0\.0\.8 is not an address at which"):
        ensure(strict)
    assert not volume.directory.exists()


def test_a_mount_root_that_is_open_to_others_is_refused(volume: VolumeMount) -> None:
    volume.directory.parent.chmod(0o777)
    with pytest.raises(Refused, match="can be written to by others"):
        ensure(volume)


def test_a_mount_that_fails_says_why_and_is_tried_again(volume: VolumeMount) -> None:
    denied = ("/bin/sh", "-c", "echo mount.nfs: access denied by server. >&2; exit 32")
    with pytest.raises(Unreachable, match="access denied by server"):
        ensure(dataclasses.replace(volume, command=denied))
    ensure(volume)
    assert volume.is_mounted()


def test_a_server_that_is_silent_is_given_up(
    volume: VolumeMount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(volume_mounts, "ANSWERS_WITHIN_SECONDS", 0.2)
    silent = ("/bin/sh", "-c", "exec sleep 60")
    with pytest.raises(Unreachable, match=r"did not end within 0\.2 s"):
        ensure(dataclasses.replace(volume, command=silent))


def test_a_command_that_is_not_there_is_named(volume: VolumeMount) -> None:
    with pytest.raises(Refused, match=r"mount\.of\.nobody cannot be started"):
        ensure(dataclasses.replace(volume, command=("mount.of.nobody",)))


def test_a_worker_killed_after_the_mount_leaves_what_the_next_one_takes(
    volume: VolumeMount,
) -> None:
    killed = ("/bin/sh", "-c", 'mount -t tmpfs "$@"; kill -9 $PPID', "mount")
    code = (
        "from pathlib import Path\n"
        "from provisioner.gateways.hosts.volume_mounts import VolumeMount\n"
        f"VolumeMount(source={volume.source!r}, options='', command={killed!r},"
        f" directory=Path({str(volume.directory)!r}), is_lab=True)"
        ".ensure(addresses=list)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code]).returncode
    assert ended == -9, shlex.join(killed)

    ensure(volume)

    assert len(mounts_at(volume.directory)) == 1


def test_what_is_left_of_a_volume_that_is_gone_is_mounted_anew(
    volume: VolumeMount, tmp_path: Path
) -> None:
    server = tmp_path / "served"
    bind = ("/bin/sh", "-c", f'mount --bind {server} "$4"', "mount")
    bound = dataclasses.replace(volume, command=bind)
    server.mkdir()
    ensure(bound)
    server.rmdir()
    server.mkdir()
    (server / "new").touch()

    ensure(bound)

    assert os.listdir(volume.directory) == ["new"]
    assert len(mounts_at(volume.directory)) == 1


def test_a_volume_is_unmounted_and_its_directory_removed(volume: VolumeMount) -> None:
    volume.remove()
    ensure(volume)
    # As after a worker that was killed while it mounted.
    command = [*TMPFS, volume.source, str(volume.directory)]
    subprocess.run(command, check=True)

    volume.remove()
    volume.remove()

    assert not volume.directory.exists()


def test_files_that_somebody_has_open_keep_it_mounted(volume: VolumeMount) -> None:
    ensure(volume)
    with (volume.directory / "file").open("w") as file:
        with pytest.raises(Busy, match=r"still mounted on this host: .*busy"):
            volume.remove()
        file.write("kept")
    assert (volume.directory / "file").read_text() == "kept"

    volume.remove()

    assert not volume.directory.exists()


def test_what_was_written_below_the_mount_stays(volume: VolumeMount) -> None:
    volume.directory.mkdir()
    (volume.directory / "note").write_text("mine")
    ensure(volume)
    volume.remove()
    assert (volume.directory / "note").read_text() == "mine"


def test_nothing_is_mounted_or_unmounted_without_leave(volume: VolumeMount) -> None:
    def refuse() -> None:
        raise PermissionError

    with asking(refuse), pytest.raises(PermissionError):
        ensure(volume)
    assert not volume.directory.exists()
    ensure(volume)
    with asking(refuse), pytest.raises(PermissionError):
        volume.remove()
    assert volume.is_mounted()
