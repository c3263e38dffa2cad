"""Which sentence is true of a failed write: full, out of inodes, or over a quota."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from provisioner.catalog.steps import room
from provisioner.catalog.steps.room import Room
from provisioner.gateways.errors import Unreachable
from provisioner.gateways.hosts.room import NO_SPACE, OVER_QUOTA, Lack
from provisioner.gateways.ontap.types import Aggregate, Volume
from provisioner.lib.refusals import StepRefused

HALF_FULL = Volume(
    uuid="1",
    name="vol",
    state="online",
    comment="",
    size_bytes=1000,
    junction_path="",
    export_policy="",
    snapshot_policy="none",
    clone_parent=None,
    uid=None,
    gid=None,
    root_mode="",
    guarantee="none",
    snapshot_reserve_percent=0,
    used_bytes=500,
    used_inodes=500,
    max_inodes=1000,
    aggregate="aggr1",
    created_at=None,
)


AGGREGATE = Aggregate(
    name="aggr1", uuid="2", size_bytes=10_000, available_bytes=5_000, efficiency=None
)


@pytest.fixture(autouse=True)
def the_host_sees_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "lack_at", lambda root: None)


def room_of(volume: Volume, tmp_path: Path) -> Room:
    return Room(
        volume_name="vol",
        root=lambda: tmp_path,
        volume=lambda: volume,
        aggregate=lambda name: AGGREGATE,
        advice={Lack.BYTES: "Larger.", Lack.INODES: "More."},
    )


@pytest.mark.parametrize(
    ("told", "seen", "code"),
    [
        (OVER_QUOTA, {}, "volume_over_quota"),
        (OVER_QUOTA, {"used_bytes": 950}, "volume_over_quota"),
        (OVER_QUOTA, {"used_bytes": 990}, "volume_full"),
        (OVER_QUOTA, {"used_inodes": 1001}, "volume_out_of_inodes"),
        (OVER_QUOTA, {"used_bytes": None}, "volume_over_quota"),
        (NO_SPACE, {"used_bytes": 950}, "volume_full"),
        (NO_SPACE, {"used_inodes": 950}, "volume_out_of_inodes"),
        (NO_SPACE, {"used_inodes": 950, "used_bytes": 960}, "volume_full"),
    ],
)
def test_what_ontap_reports_decides(
    told: str, seen: dict[str, Any], code: str, tmp_path: Path
) -> None:
    its = room_of(replace(HALF_FULL, **seen), tmp_path)

    with pytest.raises(StepRefused) as refused:
        its.require(after=f"cc: x.o: {told}")

    assert refused.value.code == code


def test_what_was_full_elsewhere_is_no_lack(tmp_path: Path) -> None:
    its = room_of(HALF_FULL, tmp_path)
    its.require(after=f"cc: /tmp/x.s: {NO_SPACE}")
    # The snapshot reserve is not for files: 90 of 500 bytes are left.
    reserved = replace(HALF_FULL, snapshot_reserve_percent=50, used_bytes=410)
    room_of(reserved, tmp_path).require(after=f"cc: /tmp/x.s: {NO_SPACE}")
    its.require(after="cc: x.c: syntax error")


def test_a_full_aggregate_is_no_full_volume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = replace(AGGREGATE, available_bytes=90)
    its = replace(room_of(HALF_FULL, tmp_path), aggregate=lambda name: full)
    # statvfs over NFS says what can be written, whatever is in the way.
    monkeypatch.setattr(room, "lack_at", lambda root: Lack.BYTES)

    with pytest.raises(StepRefused) as refused:
        its.require(after=f"cc: x.o: {NO_SPACE}")

    assert refused.value.code == "aggregate_full"
    assert "A larger volume would not help." in refused.value.sentence
    with pytest.raises(StepRefused) as refused:
        room_of(HALF_FULL, tmp_path).require(after=f"cc: x.o: {NO_SPACE}")
    assert refused.value.code == "volume_full"
    thick = replace(its, volume=lambda: replace(HALF_FULL, guarantee="volume"))
    with pytest.raises(StepRefused) as refused:
        thick.require(after=f"cc: x.o: {NO_SPACE}")
    assert refused.value.code == "volume_full"


def test_a_quota_is_named_while_ontap_does_not_answer(tmp_path: Path) -> None:
    def volume() -> Volume:
        raise Unreachable("No answer.", system="ontap", operation="GET")

    its = replace(room_of(HALF_FULL, tmp_path), volume=volume)
    (tmp_path / "log").write_text(f"dd: out: {OVER_QUOTA}\n")

    assert its.lack_told_in(tmp_path / "log") is Lack.QUOTA
