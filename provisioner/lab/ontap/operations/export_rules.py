"""Export rules: their defaults, checks and order, and which hosts they admit."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from typing import Any

from provisioner.lab.ontap.errors import OntapError

RuleFields = dict[str, object]

_DEFAULTS: RuleFields = {
    "protocols": ["any"],
    "superuser": ["any"],
    "anonymous_user": "65534",
    "allow_suid": True,
    "allow_device_creation": True,
    "allow_nfs_tls_only": False,
    "chown_mode": "restricted",
    "ntfs_unix_security": "fail",
}
FLAVORS = ("any", "none", "never", "krb5", "krb5i", "krb5p", "ntlm", "sys")
_HOST = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,253}[A-Za-z0-9_])?")


def rule_from(fields: Mapping[str, Any]) -> RuleFields:
    """Return a new rule with its defaults.

    Raises: OntapError 262194 a field is missing, 1704036 and others a bad client.
    """
    for name in ("clients", "ro_rule", "rw_rule"):
        if not fields.get(name):
            raise OntapError("262194", target=name, field=name)
    check_clients(fields["clients"])
    return {**_DEFAULTS, **{k: v for k, v in fields.items() if k != "index"}}


def check_clients(clients: Sequence[Mapping[str, str]]) -> None:
    """Refuse an invalid client match. Raises: OntapError 1704036, 1704050."""
    seen: set[str] = set()
    for client in clients:
        for match in client.get("match", "").split(","):
            if not _is_match(match):
                raise OntapError("1704036", target="clients.match", match=match)
            if match in seen:
                raise OntapError("1704050", target="clients.match", match=match)
            seen.add(match)


def _is_match(match: str) -> bool:
    if "/" in match or ":" in match or re.fullmatch(r"[0-9.]+", match):
        try:
            ipaddress.ip_network(match, strict=False)
        except ValueError:
            return False
        return True
    return bool(_HOST.fullmatch(match.lstrip("@.")))


def with_rule_moved(
    rules: Sequence[RuleFields],
    rule: RuleFields,
    *,
    index: int | None,
    equal: str = "1704070",
) -> list[RuleFields]:
    """Return the rules with one more at the index (1 is first; None is last).

    Raises: OntapError 3277162 for index 0, `equal` if a rule has all its values.
    """
    if index is not None and index < 1:
        raise OntapError("3277162", target="index")
    if any(_values(row) == _values(rule) for row in rules):
        raise OntapError(equal, target="clients.match")
    ordered = list(rules)
    ordered.insert(len(ordered) if index is None else index - 1, rule)
    return [{**row, "index": number} for number, row in enumerate(ordered, start=1)]


def _values(rule: RuleFields) -> RuleFields:
    """Return the values that two equal rules share: all but the position."""
    return {name: value for name, value in rule.items() if name != "index"}


def lets_in(rules: Sequence[RuleFields], address: str) -> bool:
    """Return whether a host may read over NFS: the first matching rule decides."""
    for rule in rules:
        if _matches(rule, address) and _speaks_nfs(rule):
            return "never" not in rule["ro_rule"]  # type: ignore[operator]  # a list
    return False


def _speaks_nfs(rule: RuleFields) -> bool:
    protocols = rule["protocols"]
    assert isinstance(protocols, list)
    return any(name == "any" or name.startswith("nfs") for name in protocols)


def _matches(rule: RuleFields, address: str) -> bool:
    clients = rule["clients"]
    assert isinstance(clients, list)
    host = ipaddress.ip_address(address)
    for client in clients:
        for match in client["match"].split(","):
            try:
                if host in ipaddress.ip_network(match, strict=False):
                    return True
            except ValueError:
                continue  # a host name: the lab has no name service
    return False
