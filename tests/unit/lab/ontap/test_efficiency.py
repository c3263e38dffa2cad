"""Storage efficiency: settings, refusals, and a scanner that finds duplicates."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from provisioner.lab.ontap.server import OntapConfig, OntapLab
from tests.unit.lab.ontap.conftest import SECONDS, Rest, rest_to
from tests.unit.lab.ontap.test_dataplane import IMAGE_BYTES, needs_image

VOLUMES = "/api/storage/volumes"
MB = 1 << 20


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
    for name, letter in (("a", b"x"), ("sub/b", b"x"), ("c", b"x"), ("d", b"y")):
        (root / name).write_bytes(letter * MB)
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
    assert (root / "sub" / "b").read_bytes() == b"x" * MB
    # A clone has the settings and no results of its own yet.
    clone = rest.clone("c", "t")
    assert efficiency(rest, clone)["dedupe"] == "background"
    assert efficiency(rest, clone)["has_savings"] is False


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
