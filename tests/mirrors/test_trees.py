"""Every file, owner, mode and time is the same at both sites."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from provisioner.gateways.ontap.types import CloneSpec
from provisioner.lab.ontap.server import OntapConfig, OntapLab
from provisioner.mirrors.actions import mirror_create, mirror_transfer
from provisioner.mirrors.models import Mirror
from tests.support.mirrored_labs import PASSWORD, End
from tests.support.mirrors import MirrorScene
from tests.support.ontap_volumes import IMAGE_BYTES, entries, fill, makes_images


@pytest.fixture
def two_clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OntapLab]:
    """Two clusters with a btrfs each, where this host can make them."""
    root = tmp_path_factory.mktemp("mirrored-trees")
    image = IMAGE_BYTES if makes_images() else None
    far = OntapConfig(
        root / "b", password=PASSWORD, cluster="far", svm="svm_far", btrfs_bytes=image
    )
    config = OntapConfig(root / "a", password=PASSWORD, peer=far, btrfs_bytes=image)
    with OntapLab(config) as lab:
        yield lab


def test_trees_are_equal_at_both_sites_after_the_first_and_the_next_transfer(
    mirror_scene: MirrorScene,
) -> None:
    scene = mirror_scene
    tree = _files_of_the_template(scene)
    fill(tree)
    os.lchown(tree / "link", 1234, 2345)
    os.chown(tree / "deep", 1235, 2346)
    scene.publish("c101.b2")
    mirror = scene.settled(
        mirror_create(by=scene.by, template=scene.template, site=scene.site)
    )
    first = _assert_equal(scene, mirror, "c101.b2")

    (tree / "secret").chmod(0o640)
    os.chown(tree / "secret", 1236, 2347)
    os.utime(tree / "secret", ns=(1, 5_000_000_011))
    (tree / "dangling").unlink()
    (tree / "deep" / "run").rename(tree / "deep" / "er" / "ran")
    newest = scene.publish("c102.b3")
    mirror_transfer(by=scene.by, mirror=mirror, snapshot=newest)
    assert scene.settled(mirror).state == Mirror.State.READY, mirror.status_message

    assert _assert_equal(scene, mirror, "c102.b3") != first


def _files_of_the_template(scene: MirrorScene) -> Path:
    root = scene.labs.source.lab.array.root
    return root / "data" / "volumes" / scene.template.volume_uuid


def _assert_equal(scene: MirrorScene, mirror: Mirror, snapshot: str) -> dict[str, str]:
    """Compare clones of a snapshot at both sites, as their hosts see them."""
    home = _seen(scene.labs.source, scene.template.volume_name, snapshot)
    there = _seen(scene.labs.destination, mirror.volume_name, snapshot)
    assert len(home) > 5
    assert there == home
    return home


def _seen(end: End, parent: str, snapshot: str) -> dict[str, str]:
    """Return the facts of every entry of a mounted clone of a snapshot.

    The time of its root is that of the clone: `.snapshot` appears there.
    """
    name = f"seen_{snapshot.replace('.', '_')}"
    clone = end.gateway.create_clone(
        CloneSpec(
            name=name,
            parent_volume=parent,
            parent_snapshot=snapshot,
            comment="cloneyard-test",
            uid=None,
            gid=None,
        )
    )
    end.gateway.mount_volume(clone.uuid, junction_path=f"/{name}")
    root = end.lab.mount_root / name
    status = root.stat()
    return {
        ".": f"{status.st_mode:o} {status.st_uid}:{status.st_gid}",
        **{str(path.relative_to(root)): _facts(path) for path in entries(root)},
    }


def _facts(path: Path) -> str:
    status = path.lstat()
    content = ""
    if path.is_symlink():
        content = os.readlink(path)
    elif path.is_file():
        content = hashlib.sha256(path.read_bytes()).hexdigest()
    links = 0 if path.is_dir() else status.st_nlink
    return (
        f"{status.st_mode:o} {status.st_uid}:{status.st_gid} {status.st_mtime_ns} "
        f"{links} {content}"
    )
