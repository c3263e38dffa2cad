"""Request bodies for ONTAP, from our types."""

from __future__ import annotations

from typing import Any

from provisioner.gateways.ontap.errors import refusal
from provisioner.gateways.ontap.types import (
    CloneSpec,
    ExportRule,
    MirrorVolumeSpec,
    QosSpec,
    VolumeSettings,
    VolumeSpec,
)

NO_SNAPSHOT_POLICY = "none"
SNAPDIR = "snapshot_directory_access_enabled"


def volume(spec: VolumeSpec, *, svm: str) -> dict[str, Any]:
    """Return the body that creates the volume, thin and unmounted.

    ONTAP's defaults are guarantee "volume", 5 % snapshot reserve and scheduled
    snapshots; clones would inherit the guarantee.
    """
    shown = {} if spec.shows_snapshots is None else {SNAPDIR: spec.shows_snapshots}
    return {
        **shown,
        **_qos(spec.qos_policy),
        "name": spec.name,
        "svm": {"name": svm},
        "comment": spec.comment,
        "aggregates": [{"name": spec.aggregate}],
        "size": spec.size_bytes,
        "guarantee": {"type": "none"},
        "snapshot_policy": {"name": NO_SNAPSHOT_POLICY},
        "space": {"snapshot": {"reserve_percent": 0}},
        "nas": {
            "security_style": "unix",
            # ONTAP reads the decimal digits of this number as the octal mode.
            "unix_permissions": int(spec.unix_permissions),
            "uid": spec.uid,
            "gid": spec.gid,
            "export_policy": {"name": spec.export_policy},
        },
    }


def mirror_volume(spec: MirrorVolumeSpec, *, svm: str) -> dict[str, Any]:
    """Return the body that creates a thin volume for SnapMirror to fill.

    Owner, mode and files are the source's after the first transfer.
    """
    return {
        "name": spec.name,
        "svm": {"name": svm},
        "comment": spec.comment,
        "aggregates": [{"name": spec.aggregate}],
        "size": spec.size_bytes,
        "type": "dp",
        "guarantee": {"type": "none"},
        "nas": {"export_policy": {"name": spec.export_policy}},
    }


def clone(spec: CloneSpec, *, svm: str) -> dict[str, Any]:
    """Return the body that creates the clone, unmounted.

    Raises: Refused (uid or gid 0), ValueError (only one of uid and gid).
    """
    body: dict[str, Any] = {
        **_qos(spec.qos_policy),
        "name": spec.name,
        "svm": {"name": svm},
        "comment": spec.comment,
        "clone": {
            "is_flexclone": True,
            "parent_volume": {"name": spec.parent_volume},
            "parent_snapshot": {"name": spec.parent_snapshot},
        },
    }
    owner = (spec.uid, spec.gid)
    if owner == (None, None):
        return body
    if None in owner:
        raise ValueError("a clone needs both uid and gid, or neither")
    if 0 in owner:
        raise refusal("clone", code="13565983", message="")
    return {**body, "nas": {"uid": spec.uid, "gid": spec.gid}}


def volume_policies(
    export_policy: str | None,
    *,
    root_mode: str | None,
    shows_snapshots: bool | None = None,
) -> dict[str, Any]:
    """Return the body that sets a volume's policies and the mode of its root."""
    nas: dict[str, Any] = {}
    body: dict[str, Any] = {}
    if shows_snapshots is not None:
        body[SNAPDIR] = shows_snapshots
    if root_mode is not None:
        nas["unix_permissions"] = int(root_mode)
    if export_policy is not None:
        nas["export_policy"] = {"name": export_policy}
        body["snapshot_policy"] = {"name": NO_SNAPSHOT_POLICY}
    return {**body, "nas": nas} if nas else body


def _qos(policy: str) -> dict[str, Any]:
    return {"qos": {"policy": {"name": policy}}} if policy else {}


def qos_limits(spec: QosSpec) -> dict[str, Any]:
    """Return the body with the limits of a QoS policy; 0 is no limit."""
    return {
        "fixed": {
            "max_throughput_iops": spec.max_iops,
            "max_throughput_mbps": spec.max_mbps,
            "capacity_shared": spec.is_shared,
        }
    }


def export_rule(rule: ExportRule) -> dict[str, Any]:
    return {
        "clients": [{"match": match} for match in rule.clients],
        "protocols": list(rule.protocols),
        "ro_rule": list(rule.ro_rule),
        "rw_rule": list(rule.rw_rule),
        "superuser": list(rule.superuser),
        "allow_suid": rule.allow_suid,
        "allow_device_creation": rule.allow_device_creation,
    }


def volume_settings(wanted: VolumeSettings) -> dict[str, Any]:
    """Return the body that changes settings of a volume, and leaves out the rest."""
    told: dict[str, Any] = {
        "autosize": {
            "mode": wanted.autosize_mode,
            "maximum": wanted.autosize_max_bytes,
        },
        "space": {
            "snapshot": {"reserve_percent": wanted.snapshot_reserve_percent},
            "fractional_reserve": wanted.fractional_reserve,
        },
        "guarantee": {"type": wanted.guarantee},
        "nas": {"security_style": wanted.security_style},
        "files": {"maximum": wanted.max_inodes},
    }
    return _without_nothing(told)


def _without_nothing(body: dict[str, Any]) -> dict[str, Any]:
    """Leave out values that are None, and records without others."""
    kept = {
        name: _without_nothing(value) if isinstance(value, dict) else value
        for name, value in body.items()
    }
    return {name: value for name, value in kept.items() if value not in (None, {})}
