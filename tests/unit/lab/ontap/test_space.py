"""Space is real: what a clone shares, what it has of its own, and that it adds up."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from provisioner.lab.ontap.dataplane.plane import DirectoryPlane
from provisioner.lab.ontap.dataplane.quotas import enable_quotas
from provisioner.lab.ontap.dataplane.trash import Trash
from provisioner.lab.ontap.dataplane.trees import copy_bytes
from provisioner.lab.ontap.server import OntapConfig, OntapLab
from tests.unit.lab.ontap.conftest import SECONDS, Rest, rest_to
from tests.unit.lab.ontap.test_dataplane import IMAGE_BYTES, needs_image

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
    template = rest.volume("t", nas={"path": "/t"})
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

    rest.set(aggregate_bytes=100 * MB)
    found = rest.get(
        "/api/storage/aggregates", fields="space.block_storage,space.efficiency"
    )["records"][0]["space"]
    block = found["block_storage"]
    assert block["used"] + block["available"] == block["size"] == 100 * MB
    assert abs(block["used"] - 25 * MB) < 2 * SLACK
    assert abs(found["efficiency"]["savings"] - 20 * MB) < 2 * SLACK


@needs_image
def test_what_a_snapshot_holds_stays_with_its_volume(counting: Rest) -> None:
    rest, root = counting, counting.lab.mount_root
    volume = rest.volume("held", nas={"path": "/held"})
    write(root / "held" / "file", 8 * MB)
    snapshot = rest.snapshot(volume, "s")
    (root / "held" / "file").unlink()
    row = settled(rest, volume, 0, field="used")
    assert row["space"]["used"] < SLACK
    row = settled(rest, volume, 8 * MB)
    assert abs(row["space"]["total_footprint"] - 8 * MB) < SLACK, row
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
    rest.set(aggregate_bytes=100 * MB)
    rows = rest.get(VOLUMES, fields="space.total_footprint")["records"]
    total = sum(row["space"]["total_footprint"] for row in rows)
    (aggregate,) = rest.get("/api/storage/aggregates", fields="space")["records"]
    assert abs(aggregate["space"]["block_storage"]["used"] - total) < 2 * SLACK


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
