"""SnapMirror: what is copied, the states on the way, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from provisioner.gateways.ontap.polling import wait_until
from provisioner.lab.ontap.records import (
    LIVE,
    MAKING,
    Relationship,
    Snapshot,
    Transfer,
)
from provisioner.lab.ontap.server import OntapConfig, OntapLab, Settings
from tests.support.ontap_mirrors import RELATIONSHIPS, dp, source, transfer, wait_idle
from tests.support.ontap_rest import Rest, rest_to

VOLUMES = "/api/storage/volumes"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OntapLab]:
    """Two clusters: the first has a second SVM, the other one more."""
    root = tmp_path_factory.mktemp("pair")
    there = OntapConfig(root / "b", password="secret", cluster="far", svm="svm_far")
    here = OntapConfig(root / "a", password="secret", more_svms=("svm_dr",), peer=there)
    with OntapLab(here) as lab:
        yield lab


@pytest.fixture
def here(pair: OntapLab) -> Iterator[Rest]:
    yield from fresh(pair)


@pytest.fixture
def far(pair: OntapLab, here: Rest) -> Iterator[Rest]:
    assert pair.peer is not None
    yield from fresh(pair.peer)


def fresh(lab: OntapLab) -> Iterator[Rest]:
    rest = rest_to(lab)
    yield rest
    rest.set(transfer_seconds=0.0, svm_peering=True)
    for row in rest.get(RELATIONSHIPS)["records"]:
        wait_idle(rest, row["uuid"])
        rest.done("DELETE", f"{RELATIONSHIPS}/{row['uuid']}")
    found = rest.get(VOLUMES, fields="clone.is_flexclone,is_svm_root")["records"]
    for row in sorted(found, key=lambda row: not row["clone"]["is_flexclone"]):
        if not row["is_svm_root"]:
            rest.done("DELETE", f"{VOLUMES}/{row['uuid']}", force="true")
    rest.session.close()


def relate(
    rest: Rest, destination: str, *, path: str = "svm_dev:t", **more: Any
) -> str:
    body = {"source": {"path": path}, "destination": {"path": destination}, **more}
    body.setdefault("policy", {"name": "MirrorAllSnapshots"})
    assert rest.done("POST", RELATIONSHIPS, body)["state"] == "success"
    found = rest.get(RELATIONSHIPS, **{"destination.path": destination})
    uuid: str = found["records"][0]["uuid"]
    return uuid


def go(rest: Rest, uuid: str, state: str) -> dict[str, Any]:
    job = rest.done("PATCH", f"{RELATIONSHIPS}/{uuid}", {"state": state})
    assert job["state"] == "success", job
    return wait_idle(rest, uuid)


def names(rest: Rest, volume: str) -> list[str]:
    rows = rest.get(f"{VOLUMES}/{volume}/snapshots")["records"]
    return [row["name"] for row in rows]


def clone_there(rest: Rest, svm: str, snapshot: str) -> str:
    return rest.clone(
        "c",
        "t_dst",
        svm={"name": svm},
        clone={"parent_snapshot": {"name": snapshot}},
        nas={"path": "/c"},
    )


def test_a_transfer_copies_the_files_and_they_can_be_cloned(
    here: Rest, pair: OntapLab
) -> None:
    template = source(here)
    destination = dp(here, "svm_dr")
    uuid = relate(here, "svm_dr:t_dst")
    assert here.get(f"{RELATIONSHIPS}/{uuid}")["state"] == "uninitialized"
    row = go(here, uuid, "snapmirrored")
    assert (row["state"], row["healthy"]) == ("snapmirrored", True), row
    assert row["transfer"]["bytes_transferred"] > 0
    assert row["policy"]["type"] == "async"
    assert row["lag_time"].startswith("PT")
    assert "s1" in names(here, destination)
    assert any(name.startswith("snapmirror.") for name in names(here, destination))
    clone_there(here, "svm_dr", "s1")
    assert (pair.mount_root_of("svm_dr") / "c" / "file").read_text() == "first"

    (pair.mount_root / "t" / "file").write_text("second")
    here.snapshot(template, "s2")
    row = transfer(here, uuid)
    assert row["transfer"]["type"] == "update"
    assert {"s1", "s2"} <= set(names(here, destination))
    own = [n for n in names(here, destination) if n.startswith("snapmirror.")]
    assert own == [row["exported_snapshot"]]
    array = pair.array
    (volume,) = (v for v in here.get(VOLUMES, name="t_dst")["records"])
    assert (array.root / "data" / "volumes" / volume["uuid"] / "file").read_text() == (
        "second"
    )


def test_what_the_source_deletes_goes_unless_a_clone_needs_it(here: Rest) -> None:
    template = source(here)
    destination = dp(here, "svm_dr")
    here.snapshot(template, "s2")
    uuid = relate(here, "svm_dr:t_dst")
    go(here, uuid, "snapmirrored")
    clone_there(here, "svm_dr", "s1")
    for name in ("s1", "s2"):
        path = f"{VOLUMES}/{template}/snapshots"
        snapshot = here.get(path, name=name)["records"][0]["uuid"]
        assert here.done("DELETE", f"{path}/{snapshot}")["state"] == "success"
    transfer(here, uuid)
    assert "s1" in names(here, destination)
    assert "s2" not in names(here, destination)


def test_another_cluster(far: Rest, here: Rest, pair: OntapLab) -> None:
    source(here)
    dp(far, "svm_far")
    uuid = relate(far, "svm_far:t_dst", transfer_schedule={"name": "hourly"})
    row = go(far, uuid, "snapmirrored")
    assert row["source"]["cluster"]["name"] == "lab"
    assert row["transfer_schedule"]["name"] == "hourly"
    assert here.get(RELATIONSHIPS)["num_records"] == 0
    known = here.get(
        RELATIONSHIPS, **{"list_destinations_only": "True", "source.path": "svm_dev:t"}
    )
    assert known["records"][0]["uuid"] == uuid
    clone_there(far, "svm_far", "s1")
    assert pair.peer is not None
    assert (pair.peer.mount_root / "c" / "file").read_text() == "first"
    peer = far.get("/api/svm/peers", **{"svm.name": "svm_far"}, fields="peer")
    assert peer["records"][0]["peer"]["cluster"]["name"] == "lab"
    assert far.get("/api/cluster/peers")["records"][0]["name"] == "lab"


def test_the_destination_can_be_made_with_the_relationship(here: Rest) -> None:
    source(here)
    uuid = relate(
        here,
        "svm_dr:made",
        create_destination={"enabled": True},
        state="snapmirrored",
    )
    assert wait_idle(here, uuid)["state"] == "snapmirrored"
    made = here.get(VOLUMES, name="made", fields="type")["records"][0]
    assert made["type"] == "dp"


def test_one_snapshot_by_name(here: Rest) -> None:
    source(here)
    destination = dp(here, "svm_dr")
    uuid = relate(here, "svm_dr:t_dst")
    transfer(here, uuid, {"source_snapshot": "s1"})
    assert names(here, destination) == ["s1"]
    response = here(
        "POST", f"{RELATIONSHIPS}/{uuid}/transfers", {"source_snapshot": "absent"}
    )
    assert here.code(response) == "13303844"


def test_a_vault_keeps_so_many_of_a_label(here: Rest) -> None:
    policy = {
        "name": "vault",
        "create_snapshot_on_source": False,
        "retention": [{"label": "fc", "count": 2}],
    }
    path = "/api/snapmirror/policies"
    assert here.done("POST", path, policy)["state"] == "success"
    assert here.code(here("POST", path, policy)) == "6621060"
    found = here.get(path, name="vault", fields="retention")["records"][0]
    assert found["retention"] == [{"label": "fc", "count": "2"}]
    template = source(here)
    destination = dp(here, "svm_dr")
    uuid = relate(here, "svm_dr:t_dst", policy={"name": "vault"})
    for name in ("f1", "f2", "f3"):
        body = {"name": name, "snapmirror_label": "fc"}
        here.done("POST", f"{VOLUMES}/{template}/snapshots", body)
        transfer(here, uuid)
    assert names(here, destination) == ["f2", "f3"]
    assert here.code(here("DELETE", f"{path}/{found['uuid']}")) == "8"
    here.done("DELETE", f"{RELATIONSHIPS}/{uuid}")
    assert here.done("DELETE", f"{path}/{found['uuid']}")["state"] == "success"


def test_break_and_resync(here: Rest, pair: OntapLab) -> None:
    source(here)
    destination = dp(here, "svm_dr")
    uuid = relate(here, "svm_dr:t_dst")
    go(here, uuid, "snapmirrored")
    path = f"{VOLUMES}/{destination}"
    response = here("POST", f"{path}/snapshots", {"name": "own"})
    assert here.code(response) == "1638461"
    assert go(here, uuid, "paused")["state"] == "paused"
    refused = here("POST", f"{RELATIONSHIPS}/{uuid}/transfers", {})
    assert here.code(refused) == "13303844"
    assert go(here, uuid, "broken_off")["state"] == "broken_off"
    assert here.get(path)["type"] == "rw"
    here.done("PATCH", path, {"nas": {"path": "/dst"}})
    file = pair.mount_root_of("svm_dr") / "dst" / "file"
    file.write_text("written after the break")
    assert go(here, uuid, "snapmirrored")["state"] == "snapmirrored"
    assert file.read_text() == "first"
    assert here.get(path)["type"] == "dp"


def test_transitions_that_are_not_possible_fail_in_the_job(here: Rest) -> None:
    source(here)
    dp(here, "svm_dr")
    uuid = relate(here, "svm_dr:t_dst")
    path = f"{RELATIONSHIPS}/{uuid}"
    for state in ("paused", "broken_off"):
        assert here.done("PATCH", path, {"state": state})["code"] == 13303818
    go(here, uuid, "snapmirrored")
    assert here.done("PATCH", path, {"state": "snapmirrored"})["code"] == 13303832


def test_a_running_transfer_is_seen_and_aborted(here: Rest) -> None:
    source(here)
    dp(here, "svm_dr")
    uuid = relate(here, "svm_dr:t_dst")
    here.set(transfer_seconds=30.0)
    path = f"{RELATIONSHIPS}/{uuid}"
    assert here("POST", f"{path}/transfers", {}).status_code == 201
    assert here.code(here("POST", f"{path}/transfers", {})) == "6619715"
    assert here.done("PATCH", path, {"state": "broken_off"})["code"] in (
        6619715,
        13303818,
    )
    assert here.done("DELETE", path)["code"] == 6619715
    running = here.get(path)["transfer"]
    assert running["state"] in ("queued", "transferring")
    one = f"{path}/transfers/{running['uuid']}"
    assert here("PATCH", one, {"state": "aborted"}).status_code == 200
    assert here.get(one)["state"] == "aborted"
    assert here.get(path)["state"] == "uninitialized"
    assert here.code(here("PATCH", one, {"state": "aborted"})) == "2"
    assert here.get(f"{path}/transfers")["num_records"] == 1


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"source.path": "svm_dev:t"}, "262194"),
        ({"source.path": "t", "destination.path": "svm_dr:t_dst"}, "13303852"),
        ({"source.path": "x:t", "destination.path": "svm_dr:t_dst"}, "2621462"),
        ({"source.path": "svm_dev:t", "destination.path": "svm_dev:t"}, "6619441"),
        ({"source.path": "svm_dev:t", "destination.path": "svm_dev:rw"}, "6619546"),
        ({"source.path": "svm_dev:t", "destination.path": "svm_dr:no"}, "2"),
        (
            {
                "source.path": "svm_dev:t",
                "destination.path": "svm_dr:t_dst",
                "policy.name": "absent",
            },
            "13303819",
        ),
        (
            {
                "source.path": "svm_dev:t",
                "destination.path": "svm_dr:t_dst",
                "transfer_schedule.name": "absent",
            },
            "6619699",
        ),
        (
            {
                "source.path": "svm_dev:t",
                "destination.path": "svm_dr:t_dst",
                "state": "snapmirrored",
            },
            "13303873",
        ),
    ],
)
def test_refusals(here: Rest, body: dict[str, Any], code: str) -> None:
    source(here)
    here.volume("rw")
    dp(here, "svm_dr")
    assert here.code(here("POST", RELATIONSHIPS, body)) == code


def test_svms_that_are_not_peered(here: Rest) -> None:
    source(here)
    dp(here, "svm_dr")
    here.set(svm_peering=False)
    body = {"source.path": "svm_dev:t", "destination.path": "svm_dr:t_dst"}
    assert here.code(here("POST", RELATIONSHIPS, body)) == "13303939"
    assert here.get("/api/svm/peers")["num_records"] == 0


def test_one_relationship_for_a_destination(here: Rest) -> None:
    source(here)
    dp(here, "svm_dr")
    relate(here, "svm_dr:t_dst")
    body = {"source.path": "svm_dev:t", "destination.path": "svm_dr:t_dst"}
    response = here("POST", RELATIONSHIPS, body)
    assert (response.status_code, here.code(response)) == (409, "6619637")


def test_delete_and_release(here: Rest) -> None:
    template = source(here)
    destination = dp(here, "svm_dr")
    uuid = relate(here, "svm_dr:t_dst")
    go(here, uuid, "snapmirrored")
    for volume in (template, destination):
        job = here.done("DELETE", f"{VOLUMES}/{volume}")
        assert job["code"] == 917536
        assert "You must delete the SnapMirror relationships before" in job["message"]
    path = f"{RELATIONSHIPS}/{uuid}"
    both = here("DELETE", path, source_only="true", destination_only="true")
    assert here.code(both) == "2"
    here.done("DELETE", path, destination_only="true")
    assert here.get(RELATIONSHIPS)["num_records"] == 0
    assert here.get(RELATIONSHIPS, list_destinations_only="true")["num_records"] == 1
    assert len(names(here, template)) == 2
    here.done("DELETE", path, source_info_only="true")
    assert len(names(here, template)) == 2
    assert here("DELETE", path).status_code == 404
    again = relate(here, "svm_dr:t_dst")
    go(here, again, "snapmirrored")
    here.done("DELETE", f"{RELATIONSHIPS}/{again}", source_only="true")
    assert here.get(RELATIONSHIPS)["num_records"] == 1
    own = [n for n in names(here, template) if again in n]
    assert own == []


def test_the_base_of_the_next_transfer_is_held(here: Rest) -> None:
    template = source(here)
    dp(here, "svm_dr")
    uuid = relate(here, "svm_dr:t_dst")
    name = go(here, uuid, "snapmirrored")["exported_snapshot"]
    path = f"{VOLUMES}/{template}/snapshots"
    held = here.get(path, name=name, fields="owners")["records"][0]
    assert held["owners"] == ["snapmirror"]
    assert here.done("DELETE", f"{path}/{held['uuid']}")["code"] == 1638555


def test_the_command_line_changes_policy_and_schedule(here: Rest) -> None:
    source(here)
    dp(here, "svm_dr")
    uuid = relate(here, "svm_dr:t_dst")
    query = {"destination_path": "svm_dr:t_dst", "privilege_level": "admin"}
    body = {"policy": "MirrorLatest", "schedule": "daily"}
    path = "/api/private/cli/snapmirror"
    assert here("PATCH", path, body, **query).status_code == 200
    row = here.get(f"{RELATIONSHIPS}/{uuid}")
    assert row["policy"]["name"] == "MirrorLatest"
    assert row["transfer_schedule"]["name"] == "daily"
    assert here.code(here("PATCH", path, body, destination_path="x:y")) == "4"


def test_an_aborted_transfer_goes_on_where_it_was(here: Rest) -> None:
    """A hard abort discards the checkpoint."""
    source(here)
    dp(here, "svm_dr")
    uuid = relate(here, "svm_dr:t_dst")
    path = f"{RELATIONSHIPS}/{uuid}"
    store = here.lab.array.store

    def begun() -> str:
        assert here("POST", f"{path}/transfers", {}).status_code == 201
        return str(here.get(path)["transfer"]["uuid"])

    def sent(transfer: str) -> int:
        return store.get(Transfer, transfer).sent_steps

    def end(transfer: str, state: str) -> None:
        one = f"{path}/transfers/{transfer}"
        assert here("PATCH", one, {"state": state}).status_code == 200

    here.set(transfer_seconds=2.0)
    first = begun()
    assert wait_until(lambda: sent(first) > 2 or None, limit_seconds=20)
    here.set(transfer_seconds=60.0)
    end(first, "aborted")
    second = begun()
    assert sent(second) >= sent(first) > 2
    end(second, "hard_aborted")
    third = begun()
    assert sent(third) < sent(first)
    end(third, "hard_aborted")


def test_a_throttle_and_a_schedule_of_a_relationship_act(here: Rest) -> None:
    source(here)
    dp(here, "svm_dr")
    uuid = relate(here, "svm_dr:t_dst")
    go(here, uuid, "snapmirrored")
    array, path = here.lab.array, f"{RELATIONSHIPS}/{uuid}"
    volume = array.store.get(Relationship, uuid).source_uuid
    (array.root / "data" / "volumes" / volume / "large").write_bytes(b"x" * (1 << 20))
    here.snapshot(volume, "s2")
    body = {"source_snapshot": "s2", "throttle": 64}
    assert here("POST", f"{path}/transfers", body).status_code == 201
    running = here.get(path)["transfer"]
    assert wait_until(
        lambda: array.store.get(Transfer, running["uuid"]).sent_steps or None,
        limit_seconds=20,
    )
    one = f"{path}/transfers/{running['uuid']}"  # of 16 seconds at the least
    seen = here.get(one)
    assert seen["state"] == "transferring"
    assert 0 < seen["bytes_transferred"] < 1 << 20, "what was sent so far"
    assert here("PATCH", one, {"state": "hard_aborted"}).status_code == 200

    before = here.get(f"{path}/transfers")["num_records"]
    assert here.done("PATCH", path, {"transfer_schedule": {"name": "hourly"}})
    array.clock.run_schedules()
    assert here.get(f"{path}/transfers")["num_records"] == before
    here.set(clock_ahead_seconds=3700)
    array.clock.run_schedules()
    here.set(clock_ahead_seconds=0)
    assert here.get(f"{path}/transfers")["num_records"] == before + 1
    wait_idle(here, uuid)


def test_a_killed_transfer_goes_on(tmp_path: Any) -> None:
    config = OntapConfig(
        tmp_path / "lab",
        password="secret",
        settings=Settings(transfer_seconds=20.0),
        more_svms=("svm_dr",),
    )
    with OntapLab(config) as lab:
        rest = rest_to(lab)
        source(rest)
        dp(rest, "svm_dr")
        uuid = relate(rest, "svm_dr:t_dst")
        assert rest("POST", f"{RELATIONSHIPS}/{uuid}/transfers", {}).status_code == 201
        rest.session.close()
    quick = OntapConfig(tmp_path / "lab", password="secret", more_svms=("svm_dr",))
    with OntapLab(quick) as lab:
        rest = rest_to(lab)
        assert wait_idle(rest, uuid)["state"] == "snapmirrored"
        rest.session.close()


def test_a_base_that_a_killed_transfer_left_half_is_dropped(here: Rest) -> None:
    """The next transfer takes another base, so nothing would look for that one."""
    array = here.lab.array
    source(here)
    destination = dp(here, "svm_dr")
    uuid = relate(here, "svm_dr:t_dst")
    go(here, uuid, "snapmirrored")
    [base] = [
        row
        for row in array.store.select(Snapshot, volume_uuid=destination, phase=LIVE)
        if row.name.startswith("snapmirror.")
    ]
    half = replace(base, uuid=str(uuid4()), version_uuid=str(uuid4()), phase=MAKING)
    array.store.save(half)
    array.snapshot_path(half).mkdir()

    transfer(here, uuid)

    assert not array.store.select(Snapshot, volume_uuid=destination, phase=MAKING)
    assert not array.snapshot_path(half).exists()


def test_a_clone_sends_what_changed_since_a_snapshot_that_both_ends_have(
    here: Rest, pair: OntapLab
) -> None:
    source(here)
    (pair.mount_root / "t" / "large").write_bytes(b"x" * 100_000)
    here.snapshot(here.get(VOLUMES, name="t")["records"][0]["uuid"], "s2")
    dp(here, "svm_dr")
    go(here, relate(here, "svm_dr:t_dst"), "snapmirrored")
    clone = here.clone(
        "w", "t", clone={"parent_snapshot": {"name": "s2"}}, nas={"path": "/w"}
    )
    (pair.mount_root / "w" / "file").write_text("changed")
    there = here.clone(
        "w_dst",
        "t_dst",
        svm={"name": "svm_dr"},
        clone={"parent_snapshot": {"name": "s2"}},
    )
    assert names(here, clone) == names(here, there) == ["s2"]
    uuid = relate(here, "svm_dr:w_dst", path="svm_dev:w")
    assert here.get(f"{RELATIONSHIPS}/{uuid}")["state"] == "broken_off"

    assert go(here, uuid, "snapmirrored")["state"] == "snapmirrored"

    assert here.get(f"{VOLUMES}/{there}")["type"] == "dp"
    row = here.get(f"{RELATIONSHIPS}/{uuid}")
    assert row["transfer"]["bytes_transferred"] == len("changed")
    files = pair.array.root / "data" / "volumes" / there
    assert (files / "file").read_text() == "changed"
    dp(here, "svm_dr", "full")
    whole = go(here, relate(here, "svm_dr:full", path="svm_dev:w"), "snapmirrored")
    assert whole["transfer"]["bytes_transferred"] > 100_000
