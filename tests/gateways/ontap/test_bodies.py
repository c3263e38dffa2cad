"""What we ask of ONTAP, in its own words."""

from __future__ import annotations

import pytest

from provisioner.gateways.errors import Refused
from provisioner.gateways.ontap import bodies
from provisioner.gateways.ontap.types import CloneSpec, ExportRule, VolumeSpec


def clone_spec(*, uid: int | None, gid: int | None) -> CloneSpec:
    return CloneSpec(
        name="ws_alice",
        parent_volume="tmpl",
        parent_snapshot="cl_7",
        comment="tag",
        uid=uid,
        gid=gid,
    )


def test_a_volume_is_thin_unmounted_and_without_schedules() -> None:
    spec = VolumeSpec(
        name="tmpl",
        aggregate="aggr1",
        size_bytes=1 << 30,
        comment="tag",
        export_policy="developers",
        uid=1001,
        gid=1002,
        unix_permissions="0750",
    )
    assert bodies.volume(spec, svm="svm1") == {
        "name": "tmpl",
        "svm": {"name": "svm1"},
        "comment": "tag",
        "aggregates": [{"name": "aggr1"}],
        "size": 1 << 30,
        "guarantee": {"type": "none"},
        "snapshot_policy": {"name": "none"},
        "space": {"snapshot": {"reserve_percent": 0}},
        "nas": {
            "security_style": "unix",
            "unix_permissions": 750,
            "uid": 1001,
            "gid": 1002,
            "export_policy": {"name": "developers"},
        },
    }


def test_a_clone_names_its_owner_and_nothing_that_a_clone_does_not_take() -> None:
    body = bodies.clone(clone_spec(uid=1001, gid=1002), svm="svm1")
    assert body == {
        "name": "ws_alice",
        "svm": {"name": "svm1"},
        "comment": "tag",
        "clone": {
            "is_flexclone": True,
            "parent_volume": {"name": "tmpl"},
            "parent_snapshot": {"name": "cl_7"},
        },
        "nas": {"uid": 1001, "gid": 1002},
    }


def test_a_clone_without_an_owner_keeps_its_parents() -> None:
    body = bodies.clone(clone_spec(uid=None, gid=None), svm="svm1")
    assert "nas" not in body


@pytest.mark.parametrize(("uid", "gid"), [(0, 1001), (1001, 0), (0, 0)])
def test_a_clone_for_root_is_refused_before_ontap_is_asked(uid: int, gid: int) -> None:
    with pytest.raises(Refused) as refused:
        bodies.clone(clone_spec(uid=uid, gid=gid), svm="svm1")
    assert refused.value.remote_code == "13565983"


@pytest.mark.parametrize(("uid", "gid"), [(1001, None), (None, 1001)])
def test_half_an_owner_is_a_mistake_of_ours(uid: int | None, gid: int | None) -> None:
    with pytest.raises(ValueError):
        bodies.clone(clone_spec(uid=uid, gid=gid), svm="svm1")


def test_an_export_rule() -> None:
    assert bodies.export_rule(ExportRule(clients=("10.0.0.0/24",))) == {
        "clients": [{"match": "10.0.0.0/24"}],
        "protocols": ["nfs"],
        "ro_rule": ["sys"],
        "rw_rule": ["sys"],
        "superuser": ["sys"],
        "allow_suid": False,
        "allow_device_creation": False,
    }
