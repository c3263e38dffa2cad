"""The data plane: btrfs subvolumes, reflinks and copies give the same trees."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from provisioner.lab.ontap.array import forget
from provisioner.lab.ontap.dataplane.loop import attach_image, detach_image
from provisioner.lab.ontap.dataplane.plane import (
    DataPlane,
    DirectoryPlane,
    SubvolumePlane,
    choose_plane,
)
from provisioner.lab.ontap.dataplane.trees import (
    copy_bytes,
    measure_tree,
    own_tree,
    reflink,
    remove_tree,
)
from provisioner.lab.ontap.namespace import mounts_below
from provisioner.lab.ontap.server import OntapConfig, OntapLab
from tests.support.ontap_rest import Rest, rest_to
from tests.support.ontap_volumes import IMAGE_BYTES, VOLUMES, fill, needs_image, shape

BLOCKS_BYTES = 16 * 2**20


@pytest.fixture(scope="module")
def btrfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("image")
    assert attach_image(root, size_bytes=IMAGE_BYTES)
    yield root / "data"
    detach_image(root)


@pytest.fixture(
    params=[
        "copy",
        pytest.param("reflink", marks=needs_image),
        pytest.param("btrfs", marks=needs_image),
    ]
)
def plane_and_place(
    request: pytest.FixtureRequest, tmp_path: Path
) -> tuple[DataPlane, Path]:
    if request.param == "copy":
        return DirectoryPlane(copy_bytes), tmp_path
    place = request.getfixturevalue("btrfs") / tmp_path.name
    place.mkdir()
    plane: DataPlane = SubvolumePlane()
    if request.param == "reflink":
        plane = DirectoryPlane(reflink)
    assert plane.method == request.param
    return plane, place


def test_a_copy_has_everything_and_is_independent(
    plane_and_place: tuple[DataPlane, Path],
) -> None:
    plane, place = plane_and_place
    plane.create(place / "a")
    fill(place / "a")
    before = shape(place / "a")
    plane.copy(place / "a", target=place / "image", read_only=True)
    (place / "a" / "secret").write_text("changed")
    plane.copy(place / "image", target=place / "b", read_only=False)
    assert shape(place / "image") == shape(place / "b") == before
    (place / "b" / "secret").write_text("changed as well")
    assert (place / "image" / "secret").read_text() == "x"
    for name in ("a", "image", "b"):
        plane.remove(place / name)
        plane.remove(place / name)
    assert list(place.iterdir()) == []


def test_removal_copes_with_directories_that_nobody_may_enter(
    plane_and_place: tuple[DataPlane, Path],
) -> None:
    plane, place = plane_and_place
    plane.create(place / "a")
    (place / "a" / "shut" / "in").mkdir(parents=True)
    (place / "a" / "shut").chmod(0)
    plane.remove(place / "a")
    assert not (place / "a").exists()


@needs_image
def test_removal_copes_with_a_subvolume_inside(btrfs: Path) -> None:
    plane = choose_plane(btrfs)
    assert plane.method == "btrfs"
    plane.create(btrfs / "outer")
    plane.create(btrfs / "outer" / "inner")
    plane.remove(btrfs / "outer")
    assert not (btrfs / "outer").exists()


def test_a_deep_chain_is_no_problem(tmp_path: Path) -> None:
    here = tmp_path / "chain"
    here.mkdir()
    deepest = here
    for _ in range(300):
        deepest = deepest / "d"
        deepest.mkdir()
    DirectoryPlane(copy_bytes).copy(here, target=tmp_path / "other", read_only=False)
    _bytes, inodes = measure_tree(here, stopped=threading.Event())
    assert inodes == 301
    remove_tree(here)
    remove_tree(tmp_path / "other")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_owning_follows_no_symlink_and_keeps_modes(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("x")
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "link").symlink_to(outside)
    (tree / "program").write_text("x")
    (tree / "program").chmod(0o6755)
    own_tree(tree, uid=1001, gid=1002)
    assert outside.stat().st_uid == 0
    assert (tree / "link").lstat().st_uid == 1001
    assert (tree / "program").stat().st_mode & 0o7777 == 0o6755


# --- a whole lab on a btrfs image


@pytest.fixture(scope="module")
def btrfs_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OntapLab]:
    root = tmp_path_factory.mktemp("btrfs-lab")
    config = OntapConfig(root, password="secret", btrfs_bytes=IMAGE_BYTES)
    with OntapLab(config) as lab:
        yield lab
    assert mounts_below(root) == []
    forget(root)
    assert not root.exists()


@needs_image
def test_clones_share_their_blocks(btrfs_lab: OntapLab) -> None:
    assert btrfs_lab.copy_method == "btrfs"
    rest = rest_to(btrfs_lab)
    template = rest.volume("t", nas={"path": "/t"})
    content = os.urandom(BLOCKS_BYTES)
    with (btrfs_lab.mount_root / "t" / "file").open("wb") as file:
        file.write(content)
        os.fsync(file.fileno())
    free = free_bytes(btrfs_lab)
    rest.snapshot(template, "s")
    rest.clone("c", "t", clone={"parent_snapshot": {"name": "s"}}, nas={"path": "/c"})
    assert (btrfs_lab.mount_root / "c" / "file").read_bytes() == content
    used = free - free_bytes(btrfs_lab)
    assert used < BLOCKS_BYTES / 4
    rest.session.close()


def free_bytes(lab: OntapLab) -> int:
    status = os.statvfs(lab.mount_root)
    return status.f_bavail * status.f_frsize


@needs_image
def test_a_snapshot_of_the_lab_is_read_only(btrfs_lab: OntapLab) -> None:
    rest = rest_to(btrfs_lab)
    uuid = rest.volume("v", nas={"path": "/v"})
    (btrfs_lab.mount_root / "v" / "file").write_text("then")
    snapshot = rest.snapshot(uuid, "s")
    image = btrfs_lab.array.root / "data" / "snapshots" / snapshot
    with pytest.raises(OSError, match="Read-only"):
        (image / "file").write_text("x")
    (btrfs_lab.mount_root / "v" / "file").write_text("now")
    query = {"restore_to.snapshot.name": "s"}
    assert rest.done("PATCH", f"{VOLUMES}/{uuid}", {}, **query)["state"] == "success"
    assert (btrfs_lab.mount_root / "v" / "file").read_text() == "then"
    rest.session.close()


def test_many_clones_at_once(rest: Rest, lab: OntapLab) -> None:
    rest.volume("t", nas={"path": "/t"})
    (lab.mount_root / "t" / "file").write_text("x")
    template = rest.get(VOLUMES, name="t")["records"][0]["uuid"]
    rest.snapshot(template, "s")
    failures: list[str] = []

    def make(name: str) -> None:
        client = rest_to(lab)
        clone = {"parent_volume": {"name": "t"}, "parent_snapshot": {"name": "s"}}
        body = {"name": name, "svm.name": "svm_dev", "clone": clone}
        response = client("POST", VOLUMES, body | {"nas.path": f"/{name}"})
        if client.job(response.json()["job"]["uuid"])["state"] != "success":
            failures.append(name)
        client.session.close()

    threads = [threading.Thread(target=make, args=(f"c{n}",)) for n in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert all((lab.mount_root / f"c{n}" / "file").exists() for n in range(30))


def test_a_junction_inside_is_an_empty_directory_in_a_clone(
    rest: Rest, lab: OntapLab
) -> None:
    rest.volume("outer", nas={"path": "/outer"})
    rest.volume("inner", nas={"path": "/outer/inner"})
    (lab.mount_root / "outer" / "inner" / "secret").write_text("x")
    rest.clone("c", "outer", nas={"path": "/c"})
    inside = lab.mount_root / "c" / "inner"
    assert inside.is_dir()
    assert not inside.is_symlink()
    assert list(inside.iterdir()) == []
