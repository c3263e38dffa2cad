"""Volumes that a file names: there from the first start on, as full as it says."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest

from provisioner.lab.ontap.server import OntapConfig, OntapLab
from tests.support.ontap_rest import rest_to

VOLUMES = "/api/storage/volumes"
TIB = 1 << 40
TREE, CLONE, BASE = (f"{n}0000000-0000-4000-8000-000000000000" for n in (1, 2, 3))
CREATED = "2026-06-01T08:00:00+00:00"


def volume(uuid: str, **fields: Any) -> dict[str, Any]:
    return {
        "uuid": uuid,
        "size_bytes": 2 * TIB,
        "create_time": CREATED,
        "export_policy": "studio",
        **fields,
    }


@pytest.fixture
def config(tmp_path: Path) -> OntapConfig:
    tree = volume(
        TREE,
        name="tree",
        said_bytes=TIB,
        said_own_bytes=TIB,
        said_files=400,
        snapshots=[{"uuid": BASE, "name": "base", "create_time": CREATED}],
    )
    clone = volume(
        CLONE,
        name="clone",
        comment="cloneyard:v1:workspace=x",
        junction_path="/w-clone",
        parent_uuid=TREE,
        parent_snapshot_uuid=BASE,
        said_bytes=TIB,
        said_own_bytes=TIB // 8,
    )
    named = {"svm_dev": {"aggregate_bytes": 9 * TIB, "volumes": [tree, clone]}}
    path = tmp_path / "volumes.json"
    path.write_text(json.dumps(named))
    return OntapConfig(tmp_path / "lab", password="secret", volumes=path)


def test_named_volumes_are_there_and_as_full_as_they_are_said_to_be(
    config: OntapConfig,
) -> None:
    with OntapLab(config) as lab:
        rest = rest_to(lab)
        [clone] = rest.get(VOLUMES, name="clone", fields="**")["records"]
        assert clone["uuid"] == CLONE
        assert clone["nas"]["path"] == "/w-clone"
        assert clone["nas"]["export_policy"]["name"] == "studio"
        assert clone["clone"]["parent_volume"]["name"] == "tree"
        assert clone["clone"]["parent_snapshot"]["name"] == "base"
        assert clone["space"]["used"] >= TIB
        root = (lab.mount_root / "w-clone").stat()
        assert dt.datetime.fromtimestamp(root.st_mtime, dt.UTC).isoformat() == CREATED
        [aggregate] = rest.get("/api/storage/aggregates", fields="space", name="aggr1")[
            "records"
        ]
        space = aggregate["space"]["block_storage"]
        assert space["size"] == 9 * TIB
        used = TIB + TIB // 8
        assert used <= space["used"] < used + TIB // 100
        rest.session.close()


def test_a_clone_of_one_shares_what_is_said_of_it(config: OntapConfig) -> None:
    with OntapLab(config) as lab:
        rest = rest_to(lab)
        rest.clone("another", "tree", clone={"parent_snapshot": {"name": "base"}})
        [another] = rest.get(VOLUMES, name="another", fields="**")["records"]
        assert another["space"]["used"] >= TIB
        [aggregate] = rest.get("/api/storage/aggregates", fields="space", name="aggr1")[
            "records"
        ]
        assert aggregate["space"]["block_storage"]["used"] < TIB + TIB // 4
        rest.session.close()


def test_what_was_deleted_does_not_come_again(config: OntapConfig) -> None:
    with OntapLab(config) as lab:
        rest = rest_to(lab)
        assert rest.done("DELETE", f"{VOLUMES}/{CLONE}")["state"] == "success"
        rest.session.close()
    with OntapLab(config) as lab:
        rest = rest_to(lab)
        found = rest.get(VOLUMES, fields="name")["records"]
        assert {each["name"] for each in found} == {"svm_dev_root", "tree"}
        rest.session.close()
