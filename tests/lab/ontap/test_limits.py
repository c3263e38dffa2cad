"""files.* and autosize.* of volumes, over HTTPS."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest

from provisioner.lab.ontap.server import OntapLab
from tests.support.ontap_rest import SECONDS, Rest
from tests.support.ontap_volumes import VOLUMES

MB = 1 << 20


def files_of(rest: Rest, uuid: str) -> dict[str, int]:
    files: dict[str, int] = rest.get(f"{VOLUMES}/{uuid}", fields="files")["files"]
    return files


def test_a_volume_has_an_inode_for_each_32_kb_unless_told(
    rest: Rest, lab: OntapLab
) -> None:
    uuid = rest.volume("v", size=64 * MB, nas={"path": "/v"})
    assert files_of(rest, uuid)["maximum"] == 2048
    rest.done("PATCH", f"{VOLUMES}/{uuid}", {"size": 128 * MB})
    assert files_of(rest, uuid)["maximum"] == 4096

    assert "files" not in rest.get(f"{VOLUMES}/{uuid}", fields="*")
    told = rest.volume("w", size=64 * MB, files={"maximum": 10_000})
    assert files_of(rest, told)["maximum"] == 10_000
    job = rest.done("PATCH", f"{VOLUMES}/{told}", {"files.maximum": 16_384})
    assert job["state"] == "success"
    assert files_of(rest, told)["maximum"] == 16_384


def test_a_volume_is_not_shrunk_below_what_it_holds(rest: Rest, lab: OntapLab) -> None:
    uuid = rest.volume("v", size=64 * MB, nas={"path": "/v"})
    (lab.mount_root / "v" / "large").write_bytes(os.urandom(30 * MB))
    os.sync()  # usage is what its blocks take
    deadline = time.monotonic() + SECONDS
    address = f"{VOLUMES}/{uuid}"
    while rest.get(address, fields="space.used")["space"]["used"] < 30 * MB:
        assert time.monotonic() < deadline
        time.sleep(0.1)

    refused = rest("PATCH", address, {"size": 25 * MB})

    assert refused.json()["error"]["code"] == "917536"
    assert "too small to hold the current volume data" in refused.text
    assert rest.done("PATCH", address, {"size": 48 * MB})["state"] == "success"
    assert rest.get(address, fields="size")["size"] == 48 * MB


def test_a_fractional_reserve_is_all_or_nothing_and_inherited(rest: Rest) -> None:
    def reserve_of(uuid: str) -> int:
        fields = "space.fractional_reserve"
        found: int = rest.get(f"{VOLUMES}/{uuid}", fields=fields)["space"][
            "fractional_reserve"
        ]
        return found

    thin = rest.volume("v", size=64 * MB, guarantee={"type": "none"})
    thick = rest.volume("w", size=64 * MB, guarantee={"type": "volume"})
    assert (reserve_of(thin), reserve_of(thick)) == (0, 100)
    half = {"space": {"fractional_reserve": 50}}
    assert rest("PATCH", f"{VOLUMES}/{thin}", half).json()["error"]["code"] == "2"
    rest.done("PATCH", f"{VOLUMES}/{thin}", {"space": {"fractional_reserve": 100}})
    assert reserve_of(thin) == reserve_of(rest.clone("c", "v")) == 100


def test_files_that_are_used_are_counted_and_a_clone_begins_with_them(
    rest: Rest, lab: OntapLab
) -> None:
    uuid = rest.volume("v", size=64 * MB, nas={"path": "/v"}, files={"maximum": 9000})
    root = lab.mount_root / "v"
    (root / "src").mkdir()
    for number in range(10):
        (root / "src" / str(number)).write_text("x")
    (root / "src" / "again").hardlink_to(root / "src" / "1")
    deadline = time.monotonic() + SECONDS
    while files_of(rest, uuid)["used"] < 12 and time.monotonic() < deadline:
        time.sleep(0.1)
    clone = rest.clone("c", "v")

    for volume in (uuid, clone):
        files = files_of(rest, volume)
        assert (files["used"], files["maximum"]) == (12, 9000)
        assert files["used"] <= files["inodefile_capacity"] <= files["maximum"]


@pytest.mark.parametrize("wanted", [16_385, 2_040_109_452, 0, "many"], ids=str)
def test_limits_that_its_size_does_not_allow_are_refused(
    rest: Rest, wanted: Any
) -> None:
    uuid = rest.volume("v", size=64 * MB)
    response = rest("PATCH", f"{VOLUMES}/{uuid}", {"files": {"maximum": wanted}})

    assert response.status_code == 400, response.text
    assert files_of(rest, uuid)["maximum"] == 2048


def test_an_offline_volume_says_what_it_may_have_and_not_what_it_has(
    rest: Rest,
) -> None:
    uuid = rest.volume("v", size=64 * MB)
    rest.done("PATCH", f"{VOLUMES}/{uuid}", {"state": "offline"})

    assert files_of(rest, uuid) == {"maximum": 2048}
    assert "autosize" not in rest.get(f"{VOLUMES}/{uuid}", fields="autosize")


def test_autosize_has_the_defaults_and_the_limits_of_ontap(rest: Rest) -> None:
    uuid = rest.volume("v", size=100 * MB)
    path = f"{VOLUMES}/{uuid}"
    assert rest.get(path, fields="autosize")["autosize"] == {
        "mode": "off",
        "grow_threshold": 85,
        "shrink_threshold": 50,
        "maximum": 120 * MB,
        "minimum": 100 * MB,
    }
    for change, code in (
        ({"mode": "shrink"}, None),
        ({"grow_threshold": 40}, "917829"),
        ({"maximum": "20MB"}, "917831"),
        ({"maximum": "301TB"}, "918521"),
        ({"mode": "grow", "maximum": (300 << 40) + 1}, "918521"),
    ):
        response = rest("PATCH", path, {"autosize": change})
        assert response.status_code == 400, change
        assert code in (None, rest.code(response))
    change = {"mode": "grow", "maximum": "1GB"}
    assert rest.done("PATCH", path, {"autosize": change})["state"] == "success"
    autosize = rest.get(path, fields="autosize")["autosize"]
    assert (autosize["mode"], autosize["maximum"]) == ("grow", 1 << 30)


def test_no_volume_grows_beyond_the_largest_that_there_is(rest: Rest) -> None:
    rest.set(max_volume_bytes=220 * MB)
    uuid = rest.volume("v", size=100 * MB, autosize={"maximum": 150 * MB})

    def maximum() -> int:
        found = rest.get(f"{VOLUMES}/{uuid}", fields="autosize.maximum")
        return int(found["autosize"]["maximum"])

    assert maximum() == 150 * MB
    for size, most in ((160 * MB, 192 * MB), (200 * MB, 220 * MB)):
        job = rest.done("PATCH", f"{VOLUMES}/{uuid}", {"size": size})
        assert (job["state"], maximum()) == ("success", most), job
    place = {"name": "w", "svm.name": "svm_dev", "aggregates.name": ["aggr1"]}
    sizes = {"size": 100 * MB, "autosize.maximum": 221 * MB}
    assert rest.code(rest("POST", VOLUMES, {**place, **sizes})) == "918521"
