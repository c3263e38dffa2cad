"""Rules for names, and how rows are found by name or uuid."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.records import ExportPolicy, Svm, Volume

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

_RESERVED_SNAPSHOT_PREFIX = "snapmirror."


def check_volume_name(name: str) -> None:
    """Refuse an invalid volume name.

    Raises: OntapError 917886, 917887, 917888.
    """
    if len(name) > 203:
        raise OntapError("917886", target="name")
    if not re.match(r"[A-Za-z_]", name):
        raise OntapError("917887", target="name", name=name)
    if not re.fullmatch(r"[A-Za-z0-9_]+", name):
        raise OntapError("917888", target="name", name=name)


def check_snapshot_name(name: str) -> None:
    """Refuse a name that clients cannot give to a snapshot.

    Raises: OntapError 1638518, 1638477.
    """
    if name.startswith(_RESERVED_SNAPSHOT_PREFIX):
        raise OntapError("1638477", target="name", prefix=_RESERVED_SNAPSHOT_PREFIX)
    if not re.fullmatch(r"[A-Za-z0-9_.+:=@ -]{1,255}", name) or name in (".", ".."):
        raise OntapError("1638518", target="name", name=name)


def check_policy_name(name: str) -> None:
    """Refuse an invalid name of an export policy.

    Raises: OntapError 1703952, 1704047.
    """
    if len(name) > 256:
        raise OntapError("1704047", target="name")
    if not name or re.search(r"[\s\x00-\x1f*|!<>\"]", name):
        raise OntapError("1703952", target="name", name=name)


def find_svm(array: Array, fields: Mapping[str, object], *, prefix: str = "svm") -> Svm:
    """Return the SVM that a body names.

    Raises: OntapError 2621707 not given, 2621462 not there, 2621706 they disagree.
    """
    name, key = fields.get(f"{prefix}.name"), fields.get(f"{prefix}.uuid")
    if not name and not key:
        raise OntapError("2621707", target=prefix)
    found = [
        svm
        for svm in array.store.select(Svm)
        if (name and svm.name == name) or (key and svm.uuid == key)
    ]
    if not found:
        raise OntapError("2621462", target=f"{prefix}.name", svm=name or key)
    if (name and found[0].name != name) or (key and found[0].uuid != key):
        raise OntapError("2621706", target=f"{prefix}.uuid")
    return found[0]


def find_export_policy(
    array: Array, fields: Mapping[str, object], *, svm_uuid: str
) -> ExportPolicy:
    """Return the export policy that a volume's body names, or the default one.

    Raises: OntapError 918271.
    """
    name = fields.get("nas.export_policy.name")
    key = fields.get("nas.export_policy.id")
    if name is None and key is None:
        name = "default"
    for policy in array.store.select(ExportPolicy, svm_uuid=svm_uuid):
        if name in (None, policy.name) and key in (None, policy.id):
            return policy
    raise OntapError("918271", target="nas.export_policy.name", policy=name or key)


def find_aggregate(array: Array, fields: Mapping[str, object]) -> str:
    """Return the name of the aggregate that a body names.

    Raises: OntapError 918242 none, 787140 several, 917508 unknown, 787141 disagree.
    """
    given = fields.get("aggregates", [])
    assert isinstance(given, list)
    if not given:
        raise OntapError("918242", target="aggregates")
    if len(given) > 1:
        raise OntapError("787140", target="aggregates")
    name, key = given[0].get("name"), given[0].get("uuid")
    found = aggregate_named(array, name=name, key=key)
    if found is None:
        known = [each for each in (name, key) if each is not None]
        if len(known) > 1 and (
            aggregate_named(array, name=name) or aggregate_named(array, key=key)
        ):
            raise OntapError("787141", target="aggregates.uuid")
        raise OntapError("917508", target="aggregates.name", aggregate=name or key)
    return found


def aggregate_named(
    array: Array, *, name: object = None, key: object = None
) -> str | None:
    """Return the aggregate of that name and uuid; None stands for any."""
    if name is None and key is None:
        return None
    for each in array.aggregates():
        if name in (None, each) and key in (None, array.aggregate_uuid(each)):
            return each
    return None


def svm_name(array: Array, volume: Volume) -> str:
    """Return the name of the volume's SVM."""
    return array.store.get(Svm, volume.svm_uuid).name
