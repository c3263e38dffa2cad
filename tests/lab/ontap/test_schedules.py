"""Snapshots that policies take by themselves, as the array's clock goes."""

from __future__ import annotations

import datetime as dt

import pytest

from provisioner.lab.ontap.operations.schedules import _LAST_MOMENT
from tests.support.ontap_rest import Rest
from tests.support.ontap_volumes import VOLUMES

POLICIES = "/api/storage/snapshot-policies"
HOUR = 3600.0
AT = dt.datetime(2026, 11, 27, 4, 40, tzinfo=dt.UTC)  # a Friday


@pytest.mark.parametrize(
    ("schedule", "moment"),
    [
        ("5min", "11-27 04:40"),
        ("hourly", "11-27 04:05"),
        ("8hour", "11-27 02:15"),
        ("daily", "11-27 00:10"),
        ("weekly", "11-22 00:15"),
        ("monthly", "11-01 00:20"),
    ],
)
def test_a_schedule_has_its_moments(schedule: str, moment: str) -> None:
    assert f"{_LAST_MOMENT[schedule](AT):%m-%d %H:%M}" == moment


def names(rest: Rest, uuid: str) -> list[str]:
    rows = rest.get(f"{VOLUMES}/{uuid}/snapshots", order_by="create_time")["records"]
    return [row["name"] for row in rows]


def test_a_policy_takes_and_deletes_snapshots_as_time_goes_by(rest: Rest) -> None:
    copies = [{"schedule": {"name": "hourly"}, "count": 2, "prefix": "ours"}]
    body = {"name": "p", "svm.name": "svm_dev", "copies": copies}
    assert rest("POST", POLICIES, body).ok
    uuid = rest.volume("v", snapshot_policy={"name": "p"})
    other = rest.volume("w", snapshot_policy={"name": "none"})

    rest.set(clock_ahead_seconds=HOUR)
    [first] = names(rest, uuid)
    assert first.startswith("ours.2")
    rest.set(clock_ahead_seconds=HOUR)
    assert names(rest, uuid) == [first]
    rest.set(clock_ahead_seconds=2 * HOUR)
    assert names(rest, uuid)[0] == first
    rest.clone(
        "held",
        "v",
        clone={"parent_snapshot": {"name": first}},
    )
    for hours in (3, 4, 5):
        rest.set(clock_ahead_seconds=hours * HOUR)

    left = names(rest, uuid)
    assert (left[0], len(left)) == (first, 3)  # the newest two, and what a clone holds
    assert names(rest, other) == []
    refused = rest("PATCH", "/lab/settings", {"clock_ahead_seconds": 1e300})
    assert rest.code(refused) == "262197"
