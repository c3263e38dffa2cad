"""Storage efficiency: settings, refusals, and a scanner that finds duplicates."""

from __future__ import annotations

import hashlib
import os
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from provisioner.lab.ontap.dataplane.duplicates import BLOCK_BYTES, Scan, scan
from provisioner.lab.ontap.dataplane.loop import attach_image, detach_image
from provisioner.lab.ontap.server import OntapConfig, OntapLab
from tests.support.ontap_rest import SECONDS, Rest, rest_to
from tests.support.ontap_volumes import IMAGE_BYTES, needs_image

VOLUMES = "/api/storage/volumes"
KB = 1 << 10
MB = 1 << 20
PATIENCE_SECONDS = 60


@pytest.fixture(params=["as it is", pytest.param("btrfs", marks=needs_image)])
def any_rest(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rest]:
    """A lab on the filesystem that there is, and one on btrfs."""
    size = IMAGE_BYTES if request.param == "btrfs" else None
    config = OntapConfig(tmp_path / "lab", password="secret", btrfs_bytes=size)
    with OntapLab(config) as lab:
        rest = rest_to(lab)
        yield rest
        rest.session.close()


def efficiency(rest: Rest, uuid: str) -> dict[str, Any]:
    row = rest.get(f"{VOLUMES}/{uuid}", fields="efficiency")
    found: dict[str, Any] = row["efficiency"]
    return found


def patch(rest: Rest, uuid: str, **fields: Any) -> None:
    body = {f"efficiency.{name}": value for name, value in fields.items()}
    body = {name.replace("__", "."): value for name, value in body.items()}
    job = rest.done("PATCH", f"{VOLUMES}/{uuid}", body)
    assert job["state"] == "success", job


def scanned(rest: Rest, uuid: str) -> dict[str, Any]:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        found = efficiency(rest, uuid)
        if found["op_state"] == "idle":
            return found
        time.sleep(0.05)
    raise AssertionError("the scan has no end")


def test_the_scanner_finds_duplicate_files(any_rest: Rest) -> None:
    rest = any_rest
    uuid = rest.volume("t", nas={"path": "/t"})
    root = rest.lab.mount_root / "t"
    (root / "sub").mkdir()
    same, other = os.urandom(MB), os.urandom(MB)
    for name, data in (("a", same), ("sub/b", same), ("c", same), ("d", other)):
        (root / name).write_bytes(data)
    (root / "link").hardlink_to(root / "d")
    (root / "soft").symlink_to("a")
    assert efficiency(rest, uuid)["state"] == "disabled"
    patch(rest, uuid, dedupe="background", scanner__state="active")
    found = scanned(rest, uuid)
    assert found["state"] == "enabled"
    assert found["last_op_state"] == "success"
    assert found["last_op_size"] == 4 * MB
    assert found["has_savings"] is True
    savings = found["space_savings"]
    assert (savings["dedupe"], savings["dedupe_percent"]) == (2 * MB, 50)
    assert found["ratio"] == 2.0
    shares = rest.lab.copy_method != "copy"
    assert savings["dedupe_sharing"] == (2 * MB if shares else 0)
    assert (root / "sub" / "b").read_bytes() == same
    # A clone has the settings and no results of its own yet, but what it inherits.
    clone = rest.clone("c", "t")
    assert efficiency(rest, clone)["dedupe"] == "background"
    assert efficiency(rest, clone)["has_savings"] is False
    row = rest.get(f"{VOLUMES}/{clone}", fields="clone")
    assert row["clone"]["inherited_savings"] == 2 * MB
    (snapshot,) = rest.get(f"{VOLUMES}/{uuid}/snapshots", fields="*")["records"]
    assert snapshot["dedup_savings"] == 2 * MB
    assert snapshot["logical_size"] - snapshot["size"] == 2 * MB


def test_the_scanner_finds_duplicate_blocks(any_rest: Rest) -> None:
    rest = any_rest
    uuid = rest.volume("t", nas={"path": "/t"})
    root = rest.lab.mount_root / "t"
    shared = os.urandom(MB)
    files = {
        "first": shared + os.urandom(MB),
        "second": os.urandom(MB) + shared,  # in another place
        "third": shared[: 4 * KB] + os.urandom(4 * KB) + shared[8 * KB : 12 * KB],
    }
    for name, data in files.items():
        (root / name).write_bytes(data)
    patch(rest, uuid, dedupe="background", scanner__state="active")
    found = scanned(rest, uuid)
    expected = MB + 8 * KB
    assert found["space_savings"]["dedupe"] == expected
    shares = rest.lab.copy_method != "copy"
    assert found["space_savings"]["dedupe_sharing"] == (expected if shares else 0)
    for name, data in files.items():
        assert (root / name).read_bytes() == data


@needs_image
def test_what_is_shared_takes_no_space_any_more(tmp_path: Path) -> None:
    config = OntapConfig(tmp_path / "lab", password="secret", btrfs_bytes=IMAGE_BYTES)
    with OntapLab(config) as lab:
        rest = rest_to(lab)
        uuid = rest.volume("t", size=40 * MB, nas={"path": "/t"})
        data = os.urandom(8 * MB)
        for name in ("a", "b", "c"):
            (lab.mount_root / "t" / name).write_bytes(data)
        before = footprint(rest, uuid, expected=24 * MB)
        patch(rest, uuid, dedupe="background", scanner__state="active")
        assert scanned(rest, uuid)["space_savings"]["dedupe_sharing"] == 16 * MB
        after = footprint(rest, uuid, expected=8 * MB)
        assert abs(before["used"] - after["used"]) < MB  # it is before the savings
        assert abs(before["physical_used"] - after["physical_used"] - 16 * MB) < MB
        rest.session.close()


@needs_image
def test_savings_are_those_of_hashed_blocks(tmp_path: Path) -> None:
    """Three copies that differ here and there, as three syncs of one tree do."""
    config = OntapConfig(tmp_path / "lab", password="secret", btrfs_bytes=IMAGE_BYTES)
    with OntapLab(config) as lab:
        rest = rest_to(lab)
        uuid = rest.volume("t", size=60 * MB, nas={"path": "/t"})
        root, files = lab.mount_root / "t", 40
        contents = [bytearray(os.urandom(100 * KB)) for _ in range(files)]
        for copy in range(3):
            (root / str(copy)).mkdir()
            for number, content in enumerate(contents):
                changed = bytearray(content)
                if (number + copy) % 5 == 0:
                    changed[20_000:20_100] = os.urandom(100)
                (root / str(copy) / str(number)).write_bytes(changed)
        os.sync()
        seen: set[bytes] = set()
        again = 0
        for path in root.glob("[0-9]/*"):
            data = path.read_bytes()
            for at in range(0, len(data), 4 * KB):
                digest = hashlib.sha256(data[at : at + 4 * KB]).digest()
                again += 4 * KB if digest in seen else 0
                seen.add(digest)

        patch(rest, uuid, dedupe="background", scanner__state="active")

        savings = scanned(rest, uuid)["space_savings"]
        assert savings["dedupe"] == pytest.approx(again, rel=0.01)
        assert savings["dedupe_sharing"] == pytest.approx(again, rel=0.01)
        rest.session.close()


def footprint(rest: Rest, uuid: str, *, expected: int) -> dict[str, Any]:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        space: dict[str, Any] = rest.get(f"{VOLUMES}/{uuid}", fields="space")["space"]
        if abs(space["footprint"] - expected) < MB:
            return space
        assert time.monotonic() < deadline, space
        time.sleep(0.2)


# --- the scan itself


def look(root: Path) -> Scan:
    return scan(root, share=False, go_on=lambda _: True)


def test_holes_are_no_blocks(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with (tmp_path / name).open("wb") as file:
            file.truncate(64 * MB)
            file.seek(32 * MB)
            file.write(os.urandom(4 * KB))
    found = look(tmp_path)
    assert (found.scanned_bytes, found.duplicate_bytes) == (8 * KB, 0)


def test_a_file_may_repeat_itself(tmp_path: Path) -> None:
    (tmp_path / "zeros").write_bytes(bytes(MB))
    (tmp_path / "more").write_bytes(bytes(MB))
    found = look(tmp_path)
    assert found.duplicate_bytes == 2 * MB - 4 * KB


def test_the_end_of_a_file_is_a_block_of_its_own(tmp_path: Path) -> None:
    data = os.urandom(4 * KB + 100)
    (tmp_path / "a").write_bytes(data)
    (tmp_path / "b").write_bytes(data)
    (tmp_path / "c").write_bytes(data[-100:] + bytes(KB))
    assert look(tmp_path).duplicate_bytes == 4 * KB + 100


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.integers(0, 3), max_size=8), max_size=5))
def test_as_many_blocks_are_saved_as_are_there_again(files: list[list[int]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        for number, blocks in enumerate(files):
            data = b"".join(bytes([65 + block]) * BLOCK_BYTES for block in blocks)
            Path(directory, str(number)).write_bytes(data)
        found = look(Path(directory))
    written = [block for blocks in files for block in blocks]
    assert found.scanned_bytes == len(written) * BLOCK_BYTES
    again = len(written) - len(set(written))
    assert found.duplicate_bytes == again * BLOCK_BYTES


@needs_image
def test_sharing_changes_no_byte(tmp_path: Path) -> None:
    """Single blocks, runs, repetitions and odd ends, in an order made by chance."""
    attach_image(tmp_path, size_bytes=IMAGE_BYTES)
    try:
        root = tmp_path / "data" / "tree"
        root.mkdir()
        chance = random.Random(7)
        pieces = [chance.randbytes(BLOCK_BYTES) for _ in range(9)] + [b"end"]
        files = {
            str(number): b"".join(chance.choices(pieces[:-1], k=chance.randrange(40)))
            + chance.choice((b"", pieces[-1]))
            for number in range(30)
        }
        files["zeros"] = bytes(MB)
        for name, data in files.items():
            (root / name).write_bytes(data)
        os.sync()
        found = scan(root, share=True, go_on=lambda _: True)
        # Ends are too short to be shared: they are kept inside the metadata.
        assert found.shared_bytes <= found.duplicate_bytes
        assert found.duplicate_bytes - found.shared_bytes <= 30 * len(pieces[-1])
        for name, data in files.items():
            assert (root / name).read_bytes() == data
    finally:
        detach_image(tmp_path)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"efficiency.scanner.state": "active"}, "6881332"),
        ({"efficiency.state": "enabled"}, "6881640"),
        ({"efficiency.dedupe": "inline"}, "6881612"),
        ({"efficiency.dedupe": "mixed"}, "262197"),
        (
            {
                "efficiency.dedupe": "background",
                "efficiency.policy.name": "inline-only",
                "efficiency.scanner.state": "active",
            },
            "6881661",
        ),
    ],
)
def test_refusals(rest: Rest, fields: dict[str, Any], code: str) -> None:
    uuid = rest.volume("t")
    rest.set(all_flash=False)
    assert rest.code(rest("PATCH", f"{VOLUMES}/{uuid}", fields)) == code


def test_the_scanner_can_be_stopped(rest: Rest) -> None:
    uuid = rest.volume("t")
    patch(rest, uuid, dedupe="both", compression="inline", compaction="inline")
    patch(rest, uuid, scanner__state="active", scanner__scan_old_data="true")
    patch(rest, uuid, scanner__state="idle")
    found = efficiency(rest, uuid)
    assert found["op_state"] == "idle"
    assert (found["dedupe"], found["compaction"]) == ("both", "inline")
    assert rest.get(VOLUMES, **{"efficiency.volume_path": "/vol/t"})["num_records"] == 1


def test_policies_are_kept_by_svm_and_assigned_by_name(rest: Rest) -> None:
    policies = "/api/storage/volume-efficiency-policies"
    named = {"name": "nightly", "svm": {"name": "svm_dev"}}
    window = {"schedule": {"name": "daily"}, "duration": 4, "qos_policy": "background"}
    assert rest.code(rest("POST", policies, {"name": "nightly"})) == "2621707"
    asked = {**named, "schedule": {"name": "at-tea"}}
    assert rest.code(rest("POST", policies, asked)) == "6881341"
    assert rest("POST", policies, {**named, **window}).status_code == 201
    assert rest.code(rest("POST", policies, {**named, **window})) == "1"
    found = {row["name"]: row for row in rest.get(policies, fields="*")["records"]}
    assert set(found) == {"auto", "default", "inline-only", "nightly"}
    policy = found["nightly"]
    assert (policy["schedule"], policy["duration"]) == ({"name": "daily"}, 4)
    path = f"{policies}/{policy['uuid']}"

    uuid = rest.volume("t")
    patch(rest, uuid, dedupe="background", policy__name="nightly")
    assert efficiency(rest, uuid)["schedule"] == "daily"
    assert rest.code(rest("DELETE", path)) == "6881346"
    by_threshold = {"type": "threshold", "start_threshold_percent": 30}
    assert rest("PATCH", path, by_threshold).ok
    assert "schedule" not in rest.get(path)
    patch(rest, uuid, policy__name="none")
    assert rest("DELETE", path).ok
    automatic = f"{policies}/{found['auto']['uuid']}"
    assert rest.code(rest("PATCH", automatic, {"duration": 1})) == "6881438"
    assert rest.code(rest("DELETE", automatic)) == "6881431"
    body = {"efficiency.policy.name": "nightly"}
    assert rest.code(rest("PATCH", f"{VOLUMES}/{uuid}", body)) == "2"


def test_each_aggregate_says_what_its_own_volumes_save(rest: Rest) -> None:
    there = rest.volume("far", nas={"path": "/far"}, aggregates=[{"name": "aggr2"}])
    data = os.urandom(MB)
    for name in "ab":
        (rest.lab.mount_root / "far" / name).write_bytes(data)
    patch(rest, there, dedupe="background", scanner__state="active")
    scanned(rest, there)

    rows = rest.get("/api/storage/aggregates", fields="space")["records"]

    alone = {
        row["name"]: row["space"]["efficiency_without_snapshots_flexclones"]
        for row in rows
    }
    assert abs(alone["aggr2"]["savings"] - MB) <= 64 * KB
    assert abs(alone["aggr2"]["logical_used"] - 2 * MB) <= 64 * KB
    assert alone["aggr1"]["savings"] == 0
    saved = {row["name"]: row["space"]["block_storage"] for row in rows}
    assert saved["aggr1"]["volume_deduplication_space_saved"] == 0
    assert saved["aggr2"]["volume_deduplication_space_saved"] == MB


def test_the_aggregate_says_what_each_part_saves(rest: Rest) -> None:
    """Three equal files and a clone of them: as Harvest computes it, in parts."""
    uuid = rest.volume("t", nas={"path": "/t"})
    data = os.urandom(MB)
    for name in "abc":
        (rest.lab.mount_root / "t" / name).write_bytes(data)
    patch(rest, uuid, dedupe="background", scanner__state="active")
    scanned(rest, uuid)
    first = {"name": "aggr1", "fields": "space"}
    (row,) = rest.get("/api/storage/aggregates", **first)["records"]
    alone = row["space"]["efficiency_without_snapshots_flexclones"]
    assert abs(alone["savings"] - 2 * MB) <= 64 * KB
    assert abs(alone["logical_used"] - alone["savings"] - MB) <= 64 * KB
    block = row["space"]["block_storage"]
    assert block["volume_deduplication_space_saved"] == 2 * MB
