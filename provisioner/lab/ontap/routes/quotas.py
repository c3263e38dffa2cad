"""Quotas: ``/api/storage/quota/rules`` and ``/api/storage/quota/reports``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.lab.ontap.conventions.collection import Resource, collection, instance
from provisioner.lab.ontap.conventions.fields import FieldSet, Flat, Wanted
from provisioner.lab.ontap.conventions.values import (
    Kind,
    boolean,
    choice,
    integer,
    list_of,
    record,
    size,
    text,
)
from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.http import Call, Reply, Route, answer_done
from provisioner.lab.ontap.operations import quota_rules
from provisioner.lab.ontap.operations.quota_rules import LIMITS, QuotaUse
from provisioner.lab.ontap.records import LIVE, QuotaRule, Volume

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

_RULES, _REPORTS = "/api/storage/quota/rules", "/api/storage/quota/reports"


def _limit(kind: Kind) -> Kind:
    """Accept a limit; null is none."""

    def limit(value: object) -> object:
        if value is None:
            return None
        number = kind(value)
        if not isinstance(number, int) or number < 0:
            raise ValueError(value)
        return number

    return limit


_CHANGE: dict[str, Kind] = {
    "space.hard_limit": _limit(size),
    "space.soft_limit": _limit(size),
    "files.hard_limit": _limit(integer),
    "files.soft_limit": _limit(integer),
    "user_mapping": boolean,
}
_CREATE: dict[str, Kind] = {
    **_CHANGE,
    "svm.name": text,
    "svm.uuid": text,
    "volume.name": text,
    "volume.uuid": text,
    "type": choice("user", "group", "tree"),
    "users": list_of(record({"name": text, "id": text})),
    "group.name": text,
    "group.id": text,
    "qtree.name": text,
}


def _place(array: Array, volume: Volume) -> Flat:
    svm = array.svm(volume.svm_uuid)
    return {
        "svm.name": svm.name,
        "svm.uuid": svm.uuid,
        "volume.name": volume.name,
        "volume.uuid": volume.uuid,
    }


def _rule(array: Array, rule: QuotaRule) -> Flat:
    group = {f"group.{name}": value for name, value in rule.targets[0].items()}
    return {
        "uuid": rule.uuid,
        **_place(array, array.store.get(Volume, rule.volume_uuid)),
        "type": rule.type,
        **({"users": rule.targets} if rule.type == "user" else group),
        "user_mapping": rule.user_mapping,
        **rule.limits,
    }


def _report(array: Array, use: QuotaUse) -> Flat:
    kind = use.rule.type
    who = [quota_rules.described(kind, number) for number in use.ids]
    view: dict[str, object] = {
        "index": use.index,
        **_place(array, use.volume),
        "type": kind,
        **use.rule.limits,
        "space.used.total": use.used_bytes,
        "files.used.total": use.used_files,
    }
    view |= (
        {"users": who}
        if kind == "user"
        else {f"group.{name}": value for name, value in who[0].items()}
    )
    for name, used in (("space", use.used_bytes), ("files", use.used_files)):
        for limit in ("hard_limit", "soft_limit"):
            if most := use.rule.limits.get(f"{name}.{limit}"):
                view[f"{name}.used.{limit}_percent"] = 100 * used // most
    return view


RULES: Resource[QuotaRule] = Resource(
    FieldSet(
        keys=("uuid", "svm.name", "svm.uuid", "volume.name", "volume.uuid"),
        standard=("type", "users", "group.name", "group.id", "user_mapping", *LIMITS),
        trees=("svm", "volume", "group", "qtree", "space", "files"),
    ),
    view=_rule,
    href=lambda array, rule: f"{_RULES}/{rule.uuid}",
    order=("volume.name", "type", "uuid"),
)
REPORTS: Resource[QuotaUse] = Resource(
    FieldSet(
        keys=("index", "svm.name", "svm.uuid", "volume.name", "volume.uuid"),
        standard=(
            *("type", "users", "group.name", "group.id", *LIMITS),
            *("space.used.total", "files.used.total"),
            *("space.used.hard_limit_percent", "space.used.soft_limit_percent"),
            *("files.used.hard_limit_percent", "files.used.soft_limit_percent"),
        ),
        trees=("svm", "volume", "group", "qtree", "space", "files"),
    ),
    view=_report,
    href=lambda array, use: f"{_REPORTS}/{use.volume.uuid}/{use.index}",
    order=("volume.name", "index"),
)


def list_rules(call: Call) -> Reply:
    """List the quota rules."""
    return collection(call, RULES, call.array.store.select(QuotaRule))


def get_rule(call: Call, uuid: str) -> Reply:
    """Return one rule."""
    return instance(call, RULES, call.row(QuotaRule, uuid))


def create_rule(call: Call) -> Reply:
    """Create a rule of a volume."""
    call.refuse_query(allowed=())
    rule = quota_rules.create(call.array, call.body(_CREATE, read_only=("uuid",)))

    def created() -> dict[str, object] | None:
        return RULES.record(call, rule, wanted=Wanted(RULES.fields, ()))

    location = f"{_RULES}/{rule.uuid}"
    return answer_done(
        call,
        f"POST {location}",
        svm_uuid=rule.svm_uuid,
        created=created,
        location=location,
    )


def change_rule(call: Call, uuid: str) -> Reply:
    """Change the limits of a rule."""
    rule = call.row(QuotaRule, uuid)
    call.refuse_query(allowed=())
    fields = call.body(_CHANGE, read_only=("uuid", "svm", "volume", "type", "users"))
    quota_rules.change(call.array, rule, fields)
    return answer_done(call, f"PATCH {_RULES}/{uuid}", svm_uuid=rule.svm_uuid)


def delete_rule(call: Call, uuid: str) -> Reply:
    """Delete a rule."""
    rule = call.row(QuotaRule, uuid)
    call.refuse_query(allowed=())
    quota_rules.delete(call.array, rule)
    return answer_done(call, f"DELETE {_RULES}/{uuid}", svm_uuid=rule.svm_uuid)


def list_reports(call: Call) -> Reply:
    """List what owners use, of all volumes whose quotas are on."""
    volumes = call.array.store.select(Volume, phase=LIVE)
    rows = [use for each in volumes for use in quota_rules.uses(call.array, each)]
    return collection(call, REPORTS, rows)


def get_report(call: Call, volume_uuid: str, index: str) -> Reply:
    """Return one row of a volume's report."""
    for use in quota_rules.uses(call.array, call.row(Volume, volume_uuid)):
        if str(use.index) == index:
            return instance(call, REPORTS, use)
    raise OntapError("4", target="index")


ROUTES = (
    Route("GET", _RULES, list_rules, fields=RULES.fields),
    Route("POST", _RULES, create_rule, body=_CREATE),
    Route("GET", f"{_RULES}/<uuid>", get_rule, fields=RULES.fields),
    Route("PATCH", f"{_RULES}/<uuid>", change_rule, body=_CHANGE),
    Route("DELETE", f"{_RULES}/<uuid>", delete_rule),
    Route("GET", _REPORTS, list_reports, fields=REPORTS.fields),
    Route(
        "GET", f"{_REPORTS}/<volume_uuid>/<index>", get_report, fields=REPORTS.fields
    ),
)
