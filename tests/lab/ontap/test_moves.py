"""Moves of volumes to another aggregate."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.ontap_rest import Rest
from tests.support.ontap_volumes import VOLUMES
from tests.support.volume_moves import TO, movement, until


def aggregate(rest: Rest, uuid: str) -> str:
    [found] = rest.get(f"{VOLUMES}/{uuid}", fields="aggregates")["aggregates"]
    name: str = found["name"]
    return name


def test_a_moved_volume_keeps_itself_and_its_clones_another_parent(rest: Rest) -> None:
    rest("PATCH", "/lab/settings", {"move_seconds": 0.1})
    uuid = rest.volume("v")
    rest.snapshot(uuid, "s")
    clone = rest.clone("c", "v", clone={"parent_snapshot": {"name": "s"}})
    assert movement(rest, uuid) == {}

    rest.done("PATCH", f"{VOLUMES}/{uuid}", TO)

    assert until(rest, uuid, "success")["percent_complete"] == 100
    assert (aggregate(rest, uuid), aggregate(rest, clone)) == ("aggr2", "aggr1")
    seen = rest.get(f"{VOLUMES}/{clone}", fields="clone")["clone"]
    assert seen["is_flexclone"] is True
    assert seen["parent_snapshot"]["name"] == "s"
    left = seen["parent_volume"]["uuid"]
    assert rest("GET", f"{VOLUMES}/{left}").status_code == 404
    newer = rest.clone("d", "v", clone={"parent_snapshot": {"name": "s"}})
    assert aggregate(rest, newer) == "aggr2"
    rest.done("PATCH", f"{VOLUMES}/{clone}", TO)
    until(rest, clone, "success")
    seen = rest.get(f"{VOLUMES}/{clone}", fields="clone")["clone"]
    assert seen["is_flexclone"] is False


def test_a_move_is_paused_resumed_and_aborted(rest: Rest) -> None:
    rest("PATCH", "/lab/settings", {"move_seconds": 30.0})
    uuid = rest.volume("v")
    path = f"{VOLUMES}/{uuid}"
    rest.done("PATCH", path, TO)
    assert rest.code(rest("PATCH", path, TO)) == "917536"
    for state in ("paused", "replicating", "aborted"):
        rest.done("PATCH", path, {"movement": {"state": state}})
        assert movement(rest, uuid)["state"] == state
    refused = rest("PATCH", path, {"movement": {"state": "paused"}})
    assert rest.code(refused) == "918786"
    assert aggregate(rest, uuid) == "aggr1"


def test_a_move_fails_or_waits_for_its_cutover(rest: Rest) -> None:
    uuid = rest.volume("v")
    settings = {"move_seconds": 0.1, "move_ends": "failed"}
    rest("PATCH", "/lab/settings", settings)
    rest.done("PATCH", f"{VOLUMES}/{uuid}", TO)
    until(rest, uuid, "failed")
    rest("PATCH", "/lab/settings", {"move_ends": "cutover_wait"})
    rest.done("PATCH", f"{VOLUMES}/{uuid}", TO)
    until(rest, uuid, "cutover_wait")
    rest.done("PATCH", f"{VOLUMES}/{uuid}", {"movement": {"state": "cutover"}})
    until(rest, uuid, "success")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"destination_aggregate": {"name": "aggr1"}}, "918265"),
        ({"destination_aggregate": {"name": "aggr9"}}, "918267"),
        ({**TO["movement"], "state": "paused"}, "918266"),
        ({"state": "aborted"}, "918786"),
    ],
)
def test_what_cannot_be_moved_is_refused(
    rest: Rest, change: dict[str, Any], code: str
) -> None:
    uuid = rest.volume("v")
    refused = rest("PATCH", f"{VOLUMES}/{uuid}", {"movement": change})
    assert rest.code(refused) == code


def test_a_full_aggregate_takes_none_not_even_for_validation(rest: Rest) -> None:
    uuid = rest.volume("v")
    rest("PATCH", "/lab/settings", {"aggregate_is_full": True})
    path = f"{VOLUMES}/{uuid}"
    assert rest.code(rest("PATCH", path, TO, validate_only="true")) == "917536"
