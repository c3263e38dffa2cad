"""Space is real: what a clone shares, what it has of its own, and that it adds up."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from provisioner.lab.ontap.dataplane.extents import Ranges, ranges_of, shared_bytes
from provisioner.lab.ontap.dataplane.loop import attach_image, detach_image
from provisioner.lab.ontap.dataplane.plane import DirectoryPlane
from provisioner.lab.ontap.dataplane.quotas import bytes_by_subvolume, enable_quotas
from provisioner.lab.ontap.dataplane.trash import Trash
from provisioner.lab.ontap.dataplane.trees import copy_bytes, copy_tree, reflink
from provisioner.lab.ontap.server import OntapConfig, OntapLab
from tests.support.ontap_rest import SECONDS, Rest, rest_to
from tests.support.ontap_volumes import IMAGE_BYTES, needs_image

VOLUMES = "/api/storage/volumes"
MB = 1 << 20
SLACK = 256 << 10
SPACE = "space,clone"
# What was deleted comes back with a commit of the filesystem.
PATIENCE_SECONDS = 60


@pytest.fixture(scope="module")
def counting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rest]:
    root = tmp_path_factory.mktemp("counting")
    config = OntapConfig(root, password="secret", btrfs_bytes=IMAGE_BYTES)
    with OntapLab(config) as lab:
        if not enable_quotas(root / "data"):
            pytest.skip("this kernel has no simple quotas")
        rest = rest_to(lab)
        yield rest
        rest.session.close()


def settled(
    rest: Rest, uuid: str, expected: int, *, field: str = "total_footprint"
) -> dict[str, Any]:
    """Read a volume until its space is as expected, or the time is up."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        row = rest.get(f"{VOLUMES}/{uuid}", fields=SPACE)
        near = abs(row["space"][field] - expected) < SLACK
        if near or time.monotonic() > deadline:
            return row
        time.sleep(0.2)


def write(path: Path, size: int) -> None:
    path.write_bytes(os.urandom(size))


@needs_image
def test_a_clone_takes_what_it_has_written(counting: Rest) -> None:
    rest, root = counting, counting.lab.mount_root
    template = rest.volume("t", size=40 * MB, nas={"path": "/t"})
    write(root / "t" / "file", 20 * MB)
    clone = rest.clone("c", "t", nas={"path": "/c"})
    write(root / "c" / "mine", 5 * MB)
    row = settled(rest, clone, 5 * MB)
    assert abs(row["space"]["total_footprint"] - 5 * MB) < SLACK, row
    assert abs(row["space"]["used"] - 25 * MB) < SLACK
    assert abs(row["clone"]["inherited_physical_used"] - 20 * MB) < SLACK
    inherited = row["clone"]["inherited_physical_used"]
    own = row["space"]["physical_used"] - inherited
    assert own == row["space"]["total_footprint"]
    assert row["clone"]["split_estimate"] == inherited
    parent = settled(rest, template, 20 * MB)
    assert abs(parent["space"]["total_footprint"] - 20 * MB) < SLACK

    rest.set(aggregate_bytes={"aggr1": 100 * MB})
    found = rest.get(
        "/api/storage/aggregates",
        fields="space.block_storage,space.efficiency,"
        "space.efficiency_without_snapshots,"
        "space.efficiency_without_snapshots_flexclones",
    )["records"][0]["space"]
    block = found["block_storage"]
    assert block["used"] + block["available"] == block["size"] == 100 * MB
    assert abs(block["used"] - 25 * MB) < 2 * SLACK
    # The clone's base snapshot shares everything, and the clone all but its own file.
    for kind, megabytes in (("", 40), ("_without_snapshots", 20)):
        assert abs(found[f"efficiency{kind}"]["savings"] - megabytes * MB) < 2 * SLACK
    alone = found["efficiency_without_snapshots_flexclones"]
    assert (alone["savings"], alone["ratio"]) == (0, 1.0)


@pytest.mark.integration
@needs_image
def test_what_a_snapshot_holds_stays_with_its_volume(counting: Rest) -> None:
    rest, root = counting, counting.lab.mount_root
    volume = rest.volume("held", nas={"path": "/held"})
    write(root / "held" / "file", 8 * MB)
    snapshot = rest.snapshot(volume, "s")
    (root / "held" / "file").unlink()
    row = settled(rest, volume, 0, field="used_by_afs")
    assert row["space"]["used_by_afs"] < SLACK
    row = settled(rest, volume, 8 * MB)
    beyond = 8 * MB - row["space"]["snapshot"]["reserve_size"]
    assert abs(row["space"]["used"] - beyond) < SLACK
    assert abs(row["space"]["total_footprint"] - 8 * MB) < SLACK, row
    assert abs(row["space"]["snapshot"]["used"] - 8 * MB) < SLACK
    shown = rest.get(f"{VOLUMES}/{volume}/snapshots/{snapshot}")
    assert abs(shown["size"] - 8 * MB) < SLACK
    rest.done("DELETE", f"{VOLUMES}/{volume}/snapshots/{snapshot}")
    row = settled(rest, volume, 0)
    assert row["space"]["total_footprint"] < SLACK


@needs_image
def test_footprints_add_up_to_what_the_aggregate_has(counting: Rest) -> None:
    rest, root = counting, counting.lab.mount_root
    template = rest.volume("sum", nas={"path": "/sum"})
    write(root / "sum" / "file", 6 * MB)
    clone = rest.clone("sum_c", "sum", nas={"path": "/sum_c"})
    write(root / "sum_c" / "file", 6 * MB)  # over what it shared
    for uuid in (template, clone):
        settled(rest, uuid, 6 * MB)
    rest.set(aggregate_bytes={"aggr1": 100 * MB})
    rows = rest.get(VOLUMES, fields="space.total_footprint")["records"]
    total = sum(row["space"]["total_footprint"] for row in rows)
    aggregate, _ = rest.get("/api/storage/aggregates", fields="space")["records"]
    assert abs(aggregate["space"]["block_storage"]["used"] - total) < 2 * SLACK


@pytest.fixture
def uncounted(tmp_path: Path) -> Iterator[Rest]:
    """A lab on a btrfs whose kernel does not count per subvolume."""
    attach_image(tmp_path, size_bytes=IMAGE_BYTES)
    try:
        subprocess.run(["btrfs", "quota", "disable", tmp_path / "data"], check=True)
        root = tmp_path / "data" / "lab"
        with OntapLab(OntapConfig(root, password="secret")) as lab:
            assert lab.copy_method == "btrfs"
            with pytest.raises(OSError, match="No such file"):
                bytes_by_subvolume(root)
            rest = rest_to(lab)
            yield rest
            rest.session.close()
    finally:
        detach_image(tmp_path)


@needs_image
def test_where_nobody_counts_the_disk_is_looked_at(uncounted: Rest) -> None:
    rest, root = uncounted, uncounted.lab.mount_root
    rest.volume("t", nas={"path": "/t"})
    for name in ("kept", "renamed", "changed", "gone"):
        write(root / "t" / name, 4 * MB)
    clone = rest.clone("c", "t", nas={"path": "/c"})
    inside = root / "c"
    (inside / "renamed").rename(inside / "elsewhere")
    (inside / "gone").unlink()
    with (inside / "changed").open("r+b") as file:
        file.write(os.urandom(MB))  # of the same size as before
    settled(rest, clone, 12 * MB, field="used")
    row = settled(rest, clone, MB)
    assert abs(row["space"]["total_footprint"] - MB) < SLACK, row
    assert abs(row["clone"]["inherited_physical_used"] - 11 * MB) < SLACK
    # A snapshot of the clone shares with the clone, which changes nothing.
    rest.snapshot(clone, "s")
    write(inside / "new", 2 * MB)
    row = settled(rest, clone, 3 * MB)
    assert abs(row["space"]["total_footprint"] - 3 * MB) < SLACK, row


@needs_image
def test_deduplication_shows_where_nobody_counts(uncounted: Rest) -> None:
    rest, root = uncounted, uncounted.lab.mount_root
    uuid = rest.volume("t", nas={"path": "/t"})
    data = os.urandom(4 * MB)
    for name in ("a", "b"):
        (root / "t" / name).write_bytes(data)
    settled(rest, uuid, 8 * MB)
    saving = {"efficiency.dedupe": "background", "efficiency.scanner.state": "active"}
    rest.done("PATCH", f"{VOLUMES}/{uuid}", saving)
    row = settled(rest, uuid, 4 * MB)
    assert abs(row["space"]["physical_used"] - 4 * MB) < SLACK
    assert abs(row["space"]["used"] - 8 * MB) < SLACK


@needs_image
def test_reflinked_trees_share_what_was_not_written(tmp_path: Path) -> None:
    attach_image(tmp_path, size_bytes=IMAGE_BYTES)
    try:
        base, clone = tmp_path / "data" / "base", tmp_path / "data" / "clone"
        (base / "inside").mkdir(parents=True)
        for number in range(20):
            write(base / "inside" / f"f{number}", 100 << 10)
        copy_tree(base, target=clone, copy_file=reflink)
        go_on = threading.Event()
        ranges = ranges_of(base, stopped=go_on)
        assert shared_bytes(clone, ranges, stopped=go_on) == 20 * (100 << 10)
        for number in range(5):
            write(clone / "inside" / f"f{number}", 100 << 10)
        assert shared_bytes(clone, ranges, stopped=go_on) == 15 * (100 << 10)
        copied = tmp_path / "data" / "copied"
        copied.mkdir()
        write(copied / "file", MB)
        assert shared_bytes(copied, ranges, stopped=go_on) == 0
    finally:
        detach_image(tmp_path)


def test_overlaps_are_counted_once() -> None:
    ranges = Ranges(array("Q", [10, 40]), array("Q", [20, 50]))
    places = [(0, 10), (0, 15), (12, 14), (15, 45), (20, 40), (0, 99), (50, 60)]
    assert [ranges.overlap(*place) for place in places] == [0, 5, 2, 10, 0, 20, 0]


def test_a_copied_clone_shares_nothing(rest: Rest, lab: OntapLab) -> None:
    if lab.copy_method != "copy":
        pytest.skip("this filesystem shares blocks")
    rest.volume("t", nas={"path": "/t"})
    write(lab.mount_root / "t" / "file", MB)
    clone = rest.clone("c", "t")
    row = settled(rest, clone, MB)
    assert abs(row["space"]["total_footprint"] - MB) < SLACK
    assert row["clone"]["inherited_physical_used"] == 0


def test_what_is_deleted_leaves_at_once_and_goes_by_and_by(tmp_path: Path) -> None:
    place = tmp_path / "trash"
    place.mkdir()
    tree = tmp_path / "tree"
    (tree / "inside").mkdir(parents=True)
    trash = Trash(DirectoryPlane(copy_bytes), place)
    trash.put(tree)
    trash.put(tmp_path / "absent")
    assert not tree.exists()
    assert len(list(place.iterdir())) == 1
    # The lab ended here; the next one finds it.
    again = Trash(DirectoryPlane(copy_bytes), place)
    again.start()
    deadline = time.monotonic() + SECONDS
    while list(place.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.01)
    again.stop()
    assert list(place.iterdir()) == []
