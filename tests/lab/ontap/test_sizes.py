"""Volumes are held to sizes, inodes and quotas: programs meet it at their writes."""

from __future__ import annotations

import errno
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from provisioner.gateways.hosts.room import OVER_QUOTA, log_says
from provisioner.lab.ontap.dataplane.quotas import find_counters, subvolume_id
from provisioner.lab.ontap.records import LIVE, Volume
from provisioner.lab.ontap.server import OntapConfig, OntapLab
from tests.support.ontap_rest import Rest, rest_to
from tests.support.ontap_volumes import IMAGE_BYTES, VOLUMES, needs_image

pytestmark = needs_image

MB = 1 << 20
RULES, REPORTS = "/api/storage/quota/rules", "/api/storage/quota/reports"
RULE = {
    "svm": {"name": "svm_dev"},
    "type": "user",
    "users": [{"id": "20000"}],
    "space": {"hard_limit": 10 * MB},
}
# What a write meets may be a little before the last byte: metadata counts, too.
NEARLY = 256 << 10
# Room comes back with a commit of the filesystem.
PATIENCE_SECONDS = 60


@pytest.fixture(scope="module")
def holding(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rest]:
    root = tmp_path_factory.mktemp("holding")
    config = OntapConfig(root, password="secret", btrfs_bytes=2 * IMAGE_BYTES)
    with OntapLab(config) as lab:
        if find_counters(root / "data") is None:
            pytest.skip("this kernel has no simple quotas")
        rest = rest_to(lab)
        yield rest
        rest.session.close()


def filled(
    path: Path, *, most: int = 100 * MB, rests_seconds: float = 0.0
) -> tuple[int, int | None]:
    """Write until it is refused; return how much was written, and why no more."""
    written = 0
    try:
        with path.open("ab", buffering=0) as file:
            while written < most:
                written += file.write(os.urandom(64 << 10))
                time.sleep(rests_seconds)
            os.fsync(file.fileno())
    except OSError as error:
        return written, error.errno
    return written, None


def seen(rest: Rest, uuid: str) -> dict[str, Any]:
    return rest.get(f"{VOLUMES}/{uuid}", fields="size,space,files,autosize")


def until(rest: Rest, uuid: str, holds: Callable[[dict[str, Any]], bool]) -> Any:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds(found := seen(rest, uuid)):
        assert time.monotonic() < deadline, found
        time.sleep(0.2)
    return found


def test_a_write_beyond_the_size_is_refused_until_there_is_room(
    holding: Rest,
) -> None:
    rest, root = holding, holding.lab.mount_root / "full"
    uuid = rest.volume("full", size=20 * MB, nas={"path": "/full"})

    written, why = filled(root / "a")

    assert why == errno.EDQUOT
    assert 19 * MB - NEARLY <= written <= 19 * MB  # five percent are the reserve
    found = until(rest, uuid, lambda row: row["space"]["percent_used"] >= 98)
    assert found["space"]["available"] <= NEARLY
    rest.done("PATCH", f"{VOLUMES}/{uuid}", {"size": 30 * MB})
    assert filled(root / "a", most=5 * MB) == (5 * MB, None)
    (root / "a").unlink()
    assert filled(root / "b", most=20 * MB) == (20 * MB, None)


def test_a_check_that_began_before_a_size_grew_leaves_the_room(
    holding: Rest, monkeypatch: pytest.MonkeyPatch
) -> None:
    rest, root = holding, holding.lab.mount_root / "grown"
    uuid = rest.volume("grown", size=20 * MB, nas={"path": "/grown"})
    filled(root / "a")
    array = rest.lab.array
    before = array.store.select(Volume, phase=LIVE)

    rest.done("PATCH", f"{VOLUMES}/{uuid}", {"size": 30 * MB})
    with monkeypatch.context() as patched:
        patched.setattr(array.store, "select", lambda *_args, **_equals: before)
        array.sizes.check()

    assert filled(root / "b", most=5 * MB) == (5 * MB, None)


def test_the_product_finds_it_in_the_log_of_a_build(
    holding: Rest, tmp_path: Path
) -> None:
    holding.volume("built", size=20 * MB, nas={"path": "/built"})
    target, log = holding.lab.mount_root / "built" / "out", tmp_path / "log"
    with log.open("wb") as file:
        ended = subprocess.run(
            ["dd", "if=/dev/zero", f"of={target}", "bs=1M", "count=30"],
            stderr=file,
            env={"LC_ALL": "C", "PATH": os.defpath},
            check=False,
        )
    assert ended.returncode != 0
    assert log_says(log, OVER_QUOTA)


def test_a_clone_has_the_room_that_its_parents_files_leave(holding: Rest) -> None:
    rest, root = holding, holding.lab.mount_root
    parent = rest.volume("t", size=40 * MB, nas={"path": "/t"})
    assert filled(root / "t" / "file", most=20 * MB)[1] is None
    until(rest, parent, lambda row: row["space"]["used"] >= 20 * MB)
    rest.clone("c", "t", nas={"path": "/c"})

    written, why = filled(root / "c" / "mine")

    assert (why, 18 * MB - NEARLY <= written <= 18 * MB) == (errno.EDQUOT, True)
    (root / "c" / "file").unlink()  # what it inherited
    deadline = time.monotonic() + PATIENCE_SECONDS
    freed = 0
    while freed < 15 * MB:
        assert time.monotonic() < deadline, freed
        freed += filled(root / "c" / "more", most=15 * MB)[0]
        time.sleep(0.2)


def test_snapshots_take_the_reserve_and_then_the_room_of_files(holding: Rest) -> None:
    rest, root = holding, holding.lab.mount_root / "held"
    uuid = rest.volume("held", size=40 * MB, nas={"path": "/held"})
    assert filled(root / "a", most=20 * MB)[1] is None
    snapshot = rest.snapshot(uuid, "s")
    (root / "a").unlink()
    until(rest, uuid, lambda row: row["space"]["snapshot"]["used"] >= 20 * MB - NEARLY)
    os.sync()

    written, why = filled(root / "b")  # 2 MB of 20 are in the reserve

    assert (why, 18 * MB - NEARLY <= written <= 20 * MB + NEARLY) == (
        errno.EDQUOT,
        True,
    )
    rest.done("DELETE", f"{VOLUMES}/{uuid}/snapshots/{snapshot}")
    (root / "b").unlink()
    until(rest, uuid, lambda row: row["space"]["used"] < NEARLY)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while filled(root / "c", most=30 * MB)[1] is not None:
        (root / "c").unlink()
        assert time.monotonic() < deadline
        time.sleep(0.5)


def test_a_snapshot_of_a_clone_counts_for_the_clone(holding: Rest) -> None:
    rest, root = holding, holding.lab.mount_root
    rest.volume("p", size=60 * MB, nas={"path": "/p"})
    assert filled(root / "p" / "file", most=10 * MB)[1] is None
    os.sync()
    clone = rest.clone("q", "p", nas={"path": "/q"})
    assert filled(root / "q" / "mine", most=6 * MB)[1] is None
    assert seen(rest, clone)["space"]["snapshot"]["used"] == 0
    rest.snapshot(clone, "hourly")
    (root / "q" / "mine").unlink()
    (root / "q" / "file").unlink()  # its blocks are its parent's

    found = until(
        rest, clone, lambda row: row["space"]["snapshot"]["used"] > 6 * MB - NEARLY
    )

    assert found["space"]["snapshot"]["used"] < 6 * MB + NEARLY


def test_autosize_grows_to_its_maximum_and_shrinks_again(holding: Rest) -> None:
    rest, root = holding, holding.lab.mount_root / "auto"
    settings = {"mode": "grow_shrink", "maximum": 40 * MB, "minimum": 20 * MB}
    uuid = rest.volume("auto", size=20 * MB, nas={"path": "/auto"}, autosize=settings)

    assert filled(root / "a", most=25 * MB) == (25 * MB, None)

    grown = until(rest, uuid, lambda row: row["space"]["percent_used"] <= 85)
    assert 25 * MB < grown["size"] <= 40 * MB
    written, why = filled(root / "a")
    assert (why, 37 * MB < 25 * MB + written <= 38 * MB) == (errno.EDQUOT, True)
    until(rest, uuid, lambda row: row["size"] == 40 * MB)
    (root / "a").unlink()
    small = until(rest, uuid, lambda row: row["size"] == 20 * MB)
    assert small["autosize"]["maximum"] == 40 * MB


def test_the_pages_of_btrfs_say_what_the_array_says(holding: Rest) -> None:
    rest, root = holding, holding.lab.mount_root
    rest.volume("w", size=80 * MB, nas={"path": "/w"})
    assert filled(root / "w" / "file", most=30 * MB)[1] is None
    os.sync()
    clone = rest.clone("x", "w", nas={"path": "/x"})
    assert filled(root / "x" / "mine", most=20 * MB)[1] is None
    os.sync()
    found = until(
        rest,
        clone,
        lambda row: (
            row["space"]["used"] >= 50 * MB
            and row["space"]["total_footprint"] >= 20 * MB
        ),
    )
    own = found["space"]["total_footprint"]

    data = rest.lab.config.root / "data"
    place = data / "volumes" / clone
    total, exclusive, _shared = _numbers("filesystem", "du", "-s", "--raw", str(place))
    groups = _output("qgroup", "show", "--raw", "--sync", str(data))
    [line] = [
        each.split()
        for each in groups.splitlines()
        if each.startswith(f"0/{subvolume_id(place)} ")
    ]

    assert total == pytest.approx(found["space"]["used"], rel=0.01)
    assert exclusive == pytest.approx(own, rel=0.01)
    assert int(line[2]) == pytest.approx(own, rel=0.01)


def with_quota_of_10_mb(rest: Rest, name: str, *, files: int = 0) -> tuple[str, Path]:
    """Return a volume's uuid and the file of a user who may fill 9 MB more."""
    uuid = rest.volume(name, size=100 * MB, nas={"path": f"/{name}"})
    mine = rest.lab.mount_root / name / "mine"
    mine.touch()
    for number in range(files):
        (mine.parent / f"f{number}").touch()
    os.chown(mine, 20_000, 20_000)
    made = rest.done("POST", RULES, {**RULE, "volume": {"uuid": uuid}})
    assert made["state"] == "success"
    assert filled(mine, most=MB) == (MB, None)  # quotas are off
    rest.done("PATCH", f"{VOLUMES}/{uuid}", {"quota": {"enabled": True}})
    return uuid, mine


def test_a_quota_holds_its_user_while_the_volume_has_room(holding: Rest) -> None:
    rest, of = holding, {"volume.name": "shared"}
    uuid, mine = with_quota_of_10_mb(rest, "shared")
    found = rest.get(f"{VOLUMES}/{uuid}", fields="quota.state")
    assert found["quota"]["state"] == "on"

    written, why = filled(mine)

    assert (why, 9 * MB - NEARLY <= written <= 9 * MB) == (errno.EDQUOT, True)
    assert seen(rest, uuid)["space"]["percent_used"] < 20
    rows = rest.get(REPORTS, fields="*", **of)["records"]
    [row] = [row for row in rows if row["users"][0]["id"] == "20000"]
    assert row["space"]["used"]["hard_limit_percent"] >= 97
    assert row["files"]["used"]["total"] == 1
    rules = rest.get(RULES, fields="*", **of)["records"]
    assert [{"name": ""}] in [each["users"] for each in rules]  # the default rule
    [made] = [each["uuid"] for each in rules if each["users"] == RULE["users"]]
    rest.done("PATCH", f"{RULES}/{made}", {"space": {"hard_limit": 20 * MB}})
    assert filled(mine, most=5 * MB) == (5 * MB, None)
    rest.done("DELETE", f"{RULES}/{made}")
    assert filled(mine, most=30 * MB) == (30 * MB, None)
    volume = {"volume": {"uuid": uuid}}
    for wrong, code in (
        ({"type": "tree", "qtree": {"name": ""}}, "2"),
        ({"users": [{"name": "nobody-of-that-name"}]}, "2"),
        ({"users": [{"name": ""}]}, "1"),
        ({"volume": {"name": "absent"}}, "917927"),
    ):
        assert rest.code(rest("POST", RULES, {**RULE, **volume, **wrong})) == code
    rest.done("DELETE", f"{VOLUMES}/{uuid}")
    assert rest.get(RULES, **of)["num_records"] == 0


def test_a_quota_is_all_its_users_though_it_is_measured_while_they_write(
    holding: Rest,
) -> None:
    """A walk of many files sees a part of what is written during it."""
    _, mine = with_quota_of_10_mb(holding, "measured", files=2_500)

    written, why = filled(mine, rests_seconds=0.01)

    assert (why, 9 * MB - NEARLY <= written <= 9 * MB) == (errno.EDQUOT, True)


def test_a_volume_without_inodes_takes_no_file_until_it_has_more(holding: Rest) -> None:
    rest, root = holding, holding.lab.mount_root / "small"
    uuid = rest.volume("small", size=20 * MB, nas={"path": "/small"})
    for number in range(650):
        (root / f"f{number}").touch()

    deadline = time.monotonic() + PATIENCE_SECONDS
    refused = None
    while refused is None:
        assert time.monotonic() < deadline
        time.sleep(0.2)
        try:
            (root / f"more-{time.monotonic()}").touch()
        except OSError as error:
            refused = error.errno

    found = seen(rest, uuid)
    assert refused == errno.EDQUOT  # of ONTAP it would be ENOSPC
    assert found["files"]["used"] >= found["files"]["maximum"] == 640
    assert found["space"]["percent_used"] < 50
    (root / "f0").unlink()
    rest.done("PATCH", f"{VOLUMES}/{uuid}", {"files": {"maximum": 5000}})
    (root / "again").touch()


def _output(*words: str) -> str:
    done = subprocess.run(["btrfs", *words], capture_output=True, text=True, check=True)
    return done.stdout


def _numbers(*words: str) -> list[int]:
    return [int(each) for each in _output(*words).splitlines()[-1].split()[:3]]
