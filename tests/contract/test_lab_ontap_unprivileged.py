"""The lab run by an ordinary user, driven by NetApp's client.

Junctions are symlinks then, files are copied unless their filesystem shares blocks, and
nothing changes owner; the ready line says so. What the API says stays the same.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from netapp_ontap import HostConnection, NetAppRestError
from netapp_ontap.resources import Snapshot, Volume

CHECKOUT = Path(__file__).parents[2]
# Nobody in particular.
USER = 65533
# The interpreter may be root's alone: what is loaded late is loaded by a first lab.
_PROGRAM = """
import os, pathlib, sys, tempfile
import encodings.idna, linecache, stringprep, traceback
from provisioner.lab.ontap.__main__ import main
from provisioner.lab.ontap.server import OntapConfig, OntapLab
with tempfile.TemporaryDirectory() as directory:
    with OntapLab(OntapConfig(pathlib.Path(directory))):
        pass
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(int(sys.argv[1]))
    os.setuid(int(sys.argv[1]))
del sys.argv[1]
sys.exit(main())
"""


@pytest.fixture(scope="module")
def ready() -> Iterator[dict[str, Any]]:
    """Start the lab as the user, with an image asked for that it cannot have."""
    root = Path(tempfile.mkdtemp(prefix="cloneyard-user-", dir="/var/tmp"))
    if os.geteuid() == 0:
        os.chown(root, USER, USER)
    command = [sys.executable, "-c", _PROGRAM, str(USER), "--root", str(root / "lab")]
    process = subprocess.Popen(
        [*command, "--btrfs", "1GB"],
        cwd=CHECKOUT,
        env={**os.environ, "LAB_ONTAP_PASSWORD": "secret"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    line = process.stdout.readline()
    try:
        assert line, process.stderr.read()
        yield {**json.loads(line), "pid": process.pid}
    finally:
        process.terminate()
        _, said = process.communicate(timeout=60)
        shutil.rmtree(root)
    assert process.returncode == 0
    assert "continuing without" in said
    assert "Traceback" not in said


@pytest.fixture(autouse=True)
def client(ready: dict[str, Any]) -> Iterator[None]:
    connection = HostConnection(
        ready["host"],
        port=ready["port"],
        username=ready["user"],
        password=ready["password"],
        verify=ready["ca_file"],
        poll_interval=0.05,
    )
    connection.session.trust_env = False
    with connection:
        yield
        clones_first = sorted(
            Volume.get_collection(fields="clone,is_svm_root"),
            key=lambda volume: not volume.clone.is_flexclone,
        )
        for volume in clones_first:
            if not volume.is_svm_root:
                volume.delete(force=True)
        connection.session.close()


def write(ready: dict[str, Any], inside: str, text: str) -> Path:
    path: Path = Path(ready["mount_root"]) / inside
    path.write_text(text)
    path.chmod(0o666)
    return path


def template(ready: dict[str, Any]) -> Volume:
    volume = Volume(
        name="t",
        svm={"name": "svm_dev"},
        aggregates=[{"name": "aggr1"}],
        guarantee={"type": "none"},
        nas={"path": "/t", "uid": 1001, "gid": 1001, "unix_permissions": "755"},
    )
    volume.post(poll=True)
    write(ready, "t/file", "before")
    return volume


def clone_of(name: str, **fields: Any) -> Volume:
    clone = {
        "is_flexclone": True,
        "parent_volume": {"name": "t"},
        "parent_snapshot": {"name": "s"},
    }
    volume = Volume(name=name, svm={"name": "svm_dev"}, clone=clone, **fields)
    volume.post(poll=True)
    return volume


def test_the_ready_line_says_how_it_works(ready: dict[str, Any]) -> None:
    status = Path(f"/proc/{ready['pid']}/status").read_text()
    (uids,) = [line for line in status.splitlines() if line.startswith("Uid:")]
    assert "\t0\t" not in f"{uids}\t"
    assert ready["junction_method"] == "symlink"
    assert ready["copy_method"] in ("copy", "reflink", "btrfs")
    assert not os.path.ismount(Path(ready["ca_file"]).parent / "data")


def test_a_clone_has_its_files_and_its_owner_as_a_value(ready: dict[str, Any]) -> None:
    volume = template(ready)
    Snapshot(volume.uuid, name="s").post(poll=True)
    write(ready, "t/file", "after")
    clone = clone_of("c", nas={"path": "/c", "uid": 1002, "gid": 1003})
    clone.get(fields="nas,clone,space")
    assert (clone.nas.uid, clone.nas.gid, clone.nas.path) == (1002, 1003, "/c")
    top = Path(ready["mount_root"])
    assert (top / "c").is_symlink()
    assert (top / "c" / "file").read_text() == "before"
    assert (top / "c").stat().st_uid == (top / "t").stat().st_uid
    write(ready, "c/file", "mine")
    assert (top / "t" / "file").read_text() == "after"
    with pytest.raises(NetAppRestError):
        volume.delete(force=True)
    clone.nas = {"path": ""}
    clone.patch(poll=True)
    assert not (top / "c").exists()
    clone.delete(force=True)
    assert sorted(path.name for path in top.iterdir()) == ["t"]


def test_junctions_nest_and_stay_out_of_snapshots(ready: dict[str, Any]) -> None:
    volume = template(ready)
    Snapshot(volume.uuid, name="s").post(poll=True)
    inner = clone_of("inner", nas={"path": "/t/inner"})
    top = Path(ready["mount_root"])
    assert (top / "t" / "inner" / "file").read_text() == "before"
    Snapshot(volume.uuid, name="with_junction").post(poll=True)
    outer = clone_of("outer", nas={"path": "/outer"})
    assert not (top / "outer" / "inner").exists()
    inside = Volume(
        name="second",
        svm={"name": "svm_dev"},
        clone={
            "is_flexclone": True,
            "parent_volume": {"name": "t"},
            "parent_snapshot": {"name": "with_junction"},
        },
        nas={"path": "/second"},
    )
    inside.post(poll=True)
    assert (top / "second" / "inner").is_dir()
    assert not (top / "second" / "inner").is_symlink()
    for volume in (inside, outer, inner):
        volume.delete(force=True)
    assert not (top / "t" / "inner").exists()


def test_restore_and_split(ready: dict[str, Any]) -> None:
    volume = template(ready)
    Snapshot(volume.uuid, name="s").post(poll=True)
    file = write(ready, "t/file", "spoilt")
    volume.patch(poll=True, **{"restore_to.snapshot.name": "s"})
    assert file.read_text() == "before"
    clone = clone_of("c", nas={"path": "/c"})
    clone.clone = {"split_initiated": True}
    clone.patch(poll=True)
    for _ in range(200):
        clone.get(fields="clone")
        if not clone.clone.is_flexclone:
            break
    volume.delete(force=True)
    assert (Path(ready["mount_root"]) / "c" / "file").read_text() == "before"


def test_a_directory_that_is_closed_to_it_is_not_measured(
    ready: dict[str, Any],
) -> None:
    volume = template(ready)
    closed = Path(ready["mount_root"]) / "t" / "closed"
    closed.mkdir(mode=0o000)  # of root, or closed to ourselves
    try:
        for _ in range(2):
            volume.get(fields="space")
            assert volume.space.used >= 0
        with pytest.raises(NetAppRestError, match="enough space to create a snapshot"):
            Snapshot(volume.uuid, name="s").post(poll=True)
        assert list(Snapshot.get_collection(volume.uuid)) == []
    finally:
        closed.rmdir()
    Snapshot(volume.uuid, name="s").post(poll=True)
