"""The .snapshot directory of volumes, as who mounts them sees it."""

from __future__ import annotations

import os

import pytest

from provisioner.lab.ontap.server import OntapLab
from tests.support.ontap_rest import Rest
from tests.support.ontap_volumes import VOLUMES
from tests.support.volume_moves import TO, until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")

ACCESS = "snapshot_directory_access_enabled"


def test_it_shows_every_snapshot_and_nobody_writes_there(
    rest: Rest, lab: OntapLab
) -> None:
    uuid = rest.volume("v", nas={"path": "/v"})
    root = lab.mount_root / "v"
    (root / "file").write_text("first")
    rest.snapshot(uuid, "s1")
    (root / "file").write_text("second")
    second = rest.snapshot(uuid, "s2")

    assert sorted(os.listdir(root / ".snapshot")) == ["s1", "s2"]
    assert (root / ".snapshot" / "s1" / "file").read_text() == "first"
    assert (root / ".snapshot" / "s2" / "file").read_text() == "second"
    assert not (root / ".snapshot" / "s2" / ".snapshot").exists()
    for place in (root / ".snapshot", root / ".snapshot" / "s1"):
        with pytest.raises(OSError, match="Read-only file system"):
            (place / "new").write_text("x")

    rest.done("PATCH", f"{VOLUMES}/{uuid}/snapshots/{second}", {"name": "s3"})
    assert sorted(os.listdir(root / ".snapshot")) == ["s1", "s3"]
    rest.done("DELETE", f"{VOLUMES}/{uuid}/snapshots/{second}")
    assert os.listdir(root / ".snapshot") == ["s1"]


def test_it_follows_its_volume(rest: Rest, lab: OntapLab) -> None:
    uuid = rest.volume("v", nas={"path": "/v"})
    (lab.mount_root / "v" / "file").write_text("first")
    rest.snapshot(uuid, "s1")
    rest.done("PATCH", f"{VOLUMES}/{uuid}", {"nas.path": "/w"})
    (lab.mount_root / "w" / "file").write_text("second")
    rest.done("PATCH", f"{VOLUMES}/{uuid}", {"restore_to.snapshot.name": "s1"})

    assert (lab.mount_root / "w" / "file").read_text() == "first"
    shown = lab.mount_root / "w" / ".snapshot" / "s1" / "file"
    assert shown.read_text() == "first"

    rest.clone("c", "v", clone={"parent_snapshot": {"name": "s1"}}, nas={"path": "/c"})
    shared = lab.mount_root / "c" / ".snapshot" / "s1" / "file"
    assert shared.read_text() == "first"


def test_a_clone_of_a_moved_volume_has_snapshots_of_its_own(
    rest: Rest, lab: OntapLab
) -> None:
    uuid = rest.volume("v", nas={"path": "/v"})
    rest.snapshot(uuid, "s1")
    clone = rest.clone(
        "c", "v", clone={"parent_snapshot": {"name": "s1"}}, nas={"path": "/c"}
    )
    rest.done("PATCH", f"{VOLUMES}/{uuid}", TO)
    until(rest, uuid, "success")

    rest.snapshot(clone, "s2")

    assert sorted(os.listdir(lab.mount_root / "c" / ".snapshot")) == ["s1", "s2"]


def test_a_volume_may_be_without_it(rest: Rest, lab: OntapLab) -> None:
    uuid = rest.volume("v", nas={"path": "/v"}, **{ACCESS: False})
    rest.snapshot(uuid, "s1")
    assert os.listdir(lab.mount_root / "v") == []

    rest.done("PATCH", f"{VOLUMES}/{uuid}", {ACCESS: True})
    assert os.listdir(lab.mount_root / "v" / ".snapshot") == ["s1"]

    rest.done("PATCH", f"{VOLUMES}/{uuid}", {ACCESS: False})
    assert os.listdir(lab.mount_root / "v") == []
