"""Quota rules of users and groups, and what these use of a volume.

A rule counts while quotas are on in its volume, at once. The root user is counted, and
held to nothing. There are no qtrees, so there are no rules of type tree.

Source: /storage/quota/rules and /storage/quota/reports of the ONTAP REST reference;
"Overview of the quota process", "How default user and group quotas create derived
quotas" and "How quotas affect the root user" of the ONTAP documentation. NetApp
documents no codes for what is refused here.
"""

from __future__ import annotations

import grp
import pwd
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from provisioner.lab.ontap.dataplane.trees import usage_by_owner
from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.operations import names
from provisioner.lab.ontap.records import LIVE, QuotaRule, Volume

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

Fields = Mapping[str, Any]

LIMITS = (
    "space.hard_limit",
    "space.soft_limit",
    "files.hard_limit",
    "files.soft_limit",
)
_LEAST_BYTES = 1024
_NOBODY = -1


@dataclass(frozen=True)
class QuotaUse:
    """What the owners that a rule is about use of its volume; a row of a report.

    `ids` are uids or gids; those of a default rule name one owner that it is derived
    for.
    """

    index: int
    volume: Volume
    rule: QuotaRule
    ids: tuple[int, ...]
    used_bytes: int
    used_files: int

    def left_of(self, limit: str) -> int | None:
        """Return what a hard limit leaves, None if it holds nobody."""
        most = self.rule.limits.get(f"{limit}.hard_limit")
        if most is None or 0 in self.ids:
            return None
        used = self.used_bytes if limit == "space" else self.used_files
        return max(0, most - used)


def are_on(volume: Volume) -> bool:
    """Return whether a volume's quotas are on."""
    return bool(volume.remembered.get("quota.enabled", False))


def uses(array: Array, volume: Volume) -> list[QuotaUse]:
    """Return what owners use that rules are about, by a walk through the volume."""
    rules = array.store.select(QuotaRule, volume_uuid=volume.uuid)
    if not rules or not are_on(volume) or volume.state != "online":
        return []
    path = array.volume_path(volume)
    found: list[tuple[QuotaRule, tuple[int, ...], int, int]] = []
    for kind in ("user", "group"):
        by_owner = usage_by_owner(path, kind=kind, stopped=array.stopping)
        of_kind = [rule for rule in rules if rule.type == kind]
        named: set[int] = set()
        for rule in of_kind:
            if not rule.is_default:
                ids = tuple(_number_of(kind, target) for target in rule.targets)
                named |= set(ids)
                used = [by_owner.get(each, (0, 0)) for each in ids]
                size, files = (sum(each) for each in zip(*used, strict=True))
                found.append((rule, ids, size, files))
        for rule in of_kind:
            if rule.is_default:
                found += [
                    (rule, (owner,), *taken)
                    for owner, taken in sorted(by_owner.items())
                    if owner not in named
                ]
    return [
        QuotaUse(index, volume, rule, ids, size, files)
        for index, (rule, ids, size, files) in enumerate(found)
    ]


def create(array: Array, fields: Fields) -> QuotaRule:
    """Store a rule, and the default one of its type if the volume has none.

    Raises: OntapError 1, 2, 262194, 917927, and as `names.find_svm` does.
    """
    with array.store.transaction():
        svm = names.find_svm(array, fields)
        volume = _volume_in(array, fields, svm_uuid=svm.uuid)
        kind = fields.get("type")
        if kind is None:
            raise OntapError("262194", target="type", field="type")
        if kind == "tree" or fields.get("qtree.name"):
            field = "qtree.name"
            raise OntapError("2", target=field, field=field, value=fields.get(field))
        rule = QuotaRule(
            str(uuid.uuid4()),
            svm_uuid=svm.uuid,
            volume_uuid=volume.uuid,
            type=kind,
            targets=_targets(kind, fields),
            limits=_limits(fields),
            user_mapping=fields.get("user_mapping"),
        )
        there = array.store.select(QuotaRule, volume_uuid=volume.uuid)
        same = [each for each in there if each.type == kind]
        if any(each.targets == rule.targets for each in same):
            raise OntapError("1", target="type")
        array.store.save(rule)
        if not rule.is_default and not any(each.is_default for each in same):
            array.store.save(
                replace(rule, uuid=str(uuid.uuid4()), targets=[_DEFAULT], limits={})
            )
    array.sizes.follow(volume.uuid)
    return rule


def change(array: Array, rule: QuotaRule, fields: Fields) -> None:
    """Change the limits of a rule; null removes one."""
    limits = {**rule.limits, **_limits(fields)}
    for name in LIMITS:
        if name in fields and fields[name] is None:
            limits.pop(name, None)
    mapping = fields.get("user_mapping", rule.user_mapping)
    with array.store.transaction():
        array.store.save(replace(rule, limits=limits, user_mapping=mapping))
    array.sizes.follow(rule.volume_uuid)


def delete(array: Array, rule: QuotaRule) -> None:
    """Delete a rule."""
    with array.store.transaction():
        array.store.remove(rule)
    array.sizes.follow(rule.volume_uuid)


def described(kind: str, number: int) -> dict[str, str]:
    """Return the name and the id of a user or a group."""
    try:
        name = (
            pwd.getpwuid(number).pw_name
            if kind == "user"
            else grp.getgrgid(number).gr_name
        )
    except KeyError:
        return {"id": str(number)}
    return {"name": name, "id": str(number)}


_DEFAULT = {"name": ""}


def _volume_in(array: Array, fields: Fields, *, svm_uuid: str) -> Volume:
    name, key = fields.get("volume.name"), fields.get("volume.uuid")
    if not name and not key:
        raise OntapError("262194", target="volume", field="volume")
    for volume in array.store.select(Volume, svm_uuid=svm_uuid, phase=LIVE):
        if name in (None, volume.name) and key in (None, volume.uuid):
            return volume
    raise OntapError("917927", target="volume.name", volume=name or key)


def _targets(kind: str, fields: Fields) -> list[dict[str, str]]:
    """Return who a rule is about. Raises: OntapError 2, 262194."""
    of_group = {
        name: fields[f"group.{name}"]
        for name in ("name", "id")
        if f"group.{name}" in fields
    }
    given: list[dict[str, str]] = (
        fields.get("users", []) if kind == "user" else [of_group] if of_group else []
    )
    field = "users" if kind == "user" else "group"
    if not given:
        raise OntapError("262194", target=field, field=field)
    for target in given:
        if target == _DEFAULT and len(given) == 1:
            continue
        if len(target) != 1 or _number_of(kind, target) == _NOBODY:
            raise OntapError("2", target=field, field=field, value=target)
    return [dict(target) for target in given]


def _number_of(kind: str, target: Mapping[str, str]) -> int:
    """Return the uid or gid of a target, -1 if this host does not know its name."""
    text = target.get("id") or target.get("name", "")
    if text.isdecimal():
        return int(text)
    try:
        return (
            pwd.getpwnam(text).pw_uid if kind == "user" else grp.getgrnam(text).gr_gid
        )
    except KeyError:
        return _NOBODY


def _limits(fields: Fields) -> dict[str, int]:
    return {
        name: max(fields[name], _LEAST_BYTES if name.startswith("space") else 0)
        for name in LIMITS
        if fields.get(name) is not None
    }
