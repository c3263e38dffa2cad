"""Export policies and their rules: ``/api/protocols/nfs/export-policies``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from provisioner.lab.ontap.conventions.collection import Resource, collection, instance
from provisioner.lab.ontap.conventions.fields import FieldSet, Flat, Wanted
from provisioner.lab.ontap.conventions.values import (
    Kind,
    boolean,
    choice,
    integer,
    list_of,
    record,
    text,
)
from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.http import Call, Reply, Route, answer_created
from provisioner.lab.ontap.operations import names
from provisioner.lab.ontap.operations.export_rules import (
    FLAVORS,
    RuleFields,
    check_clients,
    rule_from,
    with_rule_moved,
)
from provisioner.lab.ontap.records import ExportPolicy, Svm, Volume

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

_BASE = "/api/protocols/nfs/export-policies"

_FLAVORS = list_of(choice(*FLAVORS))
_RULE: dict[str, Kind] = {
    "clients": list_of(record({"match": text})),
    "protocols": list_of(choice("any", "nfs", "nfs3", "nfs4", "cifs", "flexcache")),
    "ro_rule": _FLAVORS,
    "rw_rule": _FLAVORS,
    "superuser": _FLAVORS,
    "anonymous_user": text,
    "allow_suid": boolean,
    "allow_device_creation": boolean,
    "allow_nfs_tls_only": boolean,
    "chown_mode": choice("restricted", "unrestricted"),
    "ntfs_unix_security": choice("fail", "ignore"),
    "index": integer,
}
_CREATE: dict[str, Kind] = {
    "name": text,
    "svm": text,
    "svm.name": text,
    "svm.uuid": text,
    "rules": list_of(record(_RULE)),
}
_CHANGE: dict[str, Kind] = {"name": text, "rules": list_of(record(_RULE))}


def _view(array: Array, policy: ExportPolicy) -> Flat:
    svm = array.store.get(Svm, policy.svm_uuid)
    return {
        "id": policy.id,
        "name": policy.name,
        "svm.uuid": svm.uuid,
        "svm.name": svm.name,
        "rules": policy.rules,
    }


POLICIES: Resource[ExportPolicy] = Resource(
    FieldSet(keys=("id", "name", "svm.uuid", "svm.name"), standard=("rules",)),
    view=_view,
    href=lambda array, policy: f"{_BASE}/{policy.id}",
    order=("svm.name", "name", "id"),
)


@dataclass(frozen=True)
class _Rule:
    """A rule together with its policy."""

    policy: ExportPolicy
    fields: RuleFields


RULES: Resource[_Rule] = Resource(
    FieldSet(
        keys=("index", "policy.id", "policy.name", "svm.name", "svm.uuid"),
        standard=tuple(name for name in _RULE if name != "index"),
    ),
    view=lambda array, row: {
        **row.fields,
        "policy.id": row.policy.id,
        "policy.name": row.policy.name,
        "svm.uuid": row.policy.svm_uuid,
        "svm.name": array.store.get(Svm, row.policy.svm_uuid).name,
    },
    href=lambda array, row: f"{_BASE}/{row.policy.id}/rules/{row.fields['index']}",
    order=("index",),
)


def list_policies(call: Call) -> Reply:
    """List the export policies."""
    return collection(call, POLICIES, call.array.store.select(ExportPolicy))


def _find(call: Call, id_text: str, *, missing: str = "4") -> ExportPolicy:
    number = int(id_text) if id_text.isascii() and id_text.isdigit() else None
    if number is None or number >= 1 << 63:
        raise OntapError(missing, target="id")
    policy = call.array.store.find(ExportPolicy, number)
    if policy is None:
        raise OntapError(missing, target="id")
    return policy


def get_policy(call: Call, id: str) -> Reply:
    """Return one export policy."""
    return instance(call, POLICIES, _find(call, id))


def create_policy(call: Call) -> Reply:
    """Create an export policy, with or without rules."""
    call.refuse_query(allowed=())
    fields = call.body(_CREATE, read_only=("id",))
    if "svm" in fields:
        fields["svm.name"] = fields.pop("svm")
    store = call.array.store
    with store.transaction():
        svm = names.find_svm(call.array, fields)
        name = fields.get("name")
        if name is None:
            raise OntapError("262194", target="name", field="name")
        names.check_policy_name(name)
        if store.count(ExportPolicy, svm_uuid=svm.uuid, name=name):
            raise OntapError("1", target="name")
        policy = ExportPolicy(
            store.next_number("export_policy", start=1),
            svm_uuid=svm.uuid,
            name=name,
            rules=_rules_of(fields.get("rules", [])),
        )
        store.save(policy)
    return answer_created(
        call,
        POLICIES.record(call, policy, wanted=Wanted(POLICIES.fields, ())),
        location=f"{_BASE}/{policy.id}",
    )


def _rules_of(bodies: list[dict[str, Any]]) -> list[RuleFields]:
    rules: list[RuleFields] = []
    for body in bodies:
        rules = with_rule_moved(
            rules, rule_from(body), index=body.get("index"), equal="1704071"
        )
    return rules


def change_policy(call: Call, id: str) -> Reply:
    """Rename an export policy or replace its rules."""
    call.refuse_query(allowed=())
    fields = call.body(_CHANGE, read_only=("id", "svm"))
    store = call.array.store
    with store.transaction():
        policy = _find(call, id)
        name = fields.get("name", policy.name)
        if name != policy.name:
            names.check_policy_name(name)
            if store.count(ExportPolicy, svm_uuid=policy.svm_uuid, name=name):
                raise OntapError("1", target="name")
        rules = policy.rules
        if "rules" in fields:
            rules = _rules_of(fields["rules"])
        store.save(replace(policy, name=name, rules=rules))
    return Reply()


def delete_policy(call: Call, id: str) -> Reply:
    """Delete an export policy that no volume uses."""
    call.refuse_query(allowed=())
    store = call.array.store
    with store.transaction():
        policy = _find(call, id)
        if policy.name == "default":
            raise OntapError("1703947")
        volumes = store.select(Volume, svm_uuid=policy.svm_uuid)
        if any(row.export_policy_id == policy.id for row in volumes):
            raise OntapError("1703945", name=policy.name)
        store.remove(policy)
    return Reply()


# --- rules


def list_rules(call: Call, id: str) -> Reply:
    """List the rules of a policy."""
    policy = _find(call, id)
    return collection(call, RULES, [_Rule(policy, rule) for rule in policy.rules])


def _find_rule(policy: ExportPolicy, index_text: str) -> RuleFields:
    for rule in policy.rules:
        if str(rule["index"]) == index_text:
            return rule
    raise OntapError("4", target="index")


def get_rule(call: Call, id: str, index: str) -> Reply:
    """Return one rule."""
    policy = _find(call, id)
    return instance(call, RULES, _Rule(policy, _find_rule(policy, index)))


def create_rule(call: Call, id: str) -> Reply:
    """Add a rule, at its index or at the end."""
    call.refuse_query(allowed=())
    fields = call.body(_RULE, read_only=("policy", "svm"))
    with call.array.store.transaction():
        policy = _find(call, id, missing="1703954")
        rule = rule_from(fields)
        rules = with_rule_moved(policy.rules, rule, index=fields.get("index"))
        changed = replace(policy, rules=rules)
        call.array.store.save(changed)
    added = next(row for row in rules if row.items() >= rule.items())
    record = RULES.record(
        call, _Rule(changed, added), wanted=Wanted(RULES.fields, ("*",))
    )
    location = f"{_BASE}/{policy.id}/rules/{added['index']}"
    return answer_created(call, record, location=location)


def change_rule(call: Call, id: str, index: str) -> Reply:
    """Change a rule, or move it with ``new_index``."""
    call.refuse_query(allowed=("new_index",))
    fields = call.body(_RULE, read_only=("policy", "svm"))
    with call.array.store.transaction():
        policy = _find(call, id)
        rule = _find_rule(policy, index)
        others = [row for row in policy.rules if row is not rule]
        if "clients" in fields:
            check_clients(fields["clients"])
        place = call.number("new_index", default=int(index), low=0, high=1 << 31)
        changed = {**rule, **fields}
        rules = with_rule_moved(others, changed, index=place)
        call.array.store.save(replace(policy, rules=rules))
    return Reply()


def delete_rule(call: Call, id: str, index: str) -> Reply:
    """Delete a rule; the others keep their order."""
    call.refuse_query(allowed=())
    with call.array.store.transaction():
        policy = _find(call, id)
        rule = _find_rule(policy, index)
        rules = [row for row in policy.rules if row is not rule]
        call.array.store.save(replace(policy, rules=rules))
    return Reply()


ROUTES = (
    Route("GET", _BASE, list_policies, fields=POLICIES.fields),
    Route("POST", _BASE, create_policy, body=_CREATE),
    Route("GET", f"{_BASE}/<id>", get_policy, fields=POLICIES.fields),
    Route("PATCH", f"{_BASE}/<id>", change_policy, body=_CHANGE),
    Route("DELETE", f"{_BASE}/<id>", delete_policy),
    Route("GET", f"{_BASE}/<id>/rules", list_rules, fields=RULES.fields),
    Route("POST", f"{_BASE}/<id>/rules", create_rule, body=_RULE),
    Route("GET", f"{_BASE}/<id>/rules/<index>", get_rule, fields=RULES.fields),
    Route(
        "PATCH",
        f"{_BASE}/<id>/rules/<index>",
        change_rule,
        body=_RULE,
        query={"new_index": integer},
    ),
    Route("DELETE", f"{_BASE}/<id>/rules/<index>", delete_rule),
)
