"""Groups of a person, nested ones too, within bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import structlog

from provisioner.gateways.directory.configuration import Directory
from provisioner.gateways.directory.connection import Entry, Link
from provisioner.gateways.directory.names import (
    comparable,
    first_value,
    in_filter,
    lies_below,
)

# Beyond these nobody becomes a member: a role is rather missing than given by chance.
DEEPEST = 10
MOST_GROUPS = 1000
ASKED_AT_A_TIME = 50
# Source: MS-ADTS 3.1.1.3.4.4.3, LDAP_MATCHING_RULE_TRANSITIVE_EVAL.
IN_CHAIN = "1.2.840.113556.1.4.1941"

log = structlog.get_logger(__name__)

Upwards = Callable[[Sequence[str]], Iterable[Entry]]


def groups_of(link: Link, directory: Directory, person: Entry) -> frozenset[str]:
    """Return the groups of a person below LDAP_GROUP_BASE.

    Each is named twice, by its cn and by its distinguished name in comparable form.

    Raises: GatewayError.
    """
    if directory.groups == "none":
        return frozenset()
    if directory.groups == "chain":
        rule = f"(member:{IN_CHAIN}:={in_filter(person.dn)})"
        found: Iterable[Entry] = link.search(
            directory.group_base, rule, "cn", most=MOST_GROUPS
        )
    elif directory.groups == "memberof":
        start = [_named(dn) for dn in person.texts("memberOf")]
        found = _climbed(start, _parents_named(link), directory=directory)
    else:
        start = link.search(
            directory.group_base,
            f"(|{_has_member([person.dn])}{_has_login(directory, person)})",
            "cn",
            most=MOST_GROUPS,
        )
        found = _climbed(start, _parents_found(link, directory), directory=directory)
    below = [entry for entry in found if lies_below(entry.dn, directory.group_base)]
    names = {name for entry in below for name in entry.texts("cn")}
    return frozenset(names | {comparable(entry.dn) for entry in below})


def _climbed(
    start: Sequence[Entry], upwards: Upwards, *, directory: Directory
) -> Iterator[Entry]:
    """Yield groups, then the groups that these are in, each once."""
    seen: set[str] = set()
    level = list(start)
    for _ in range(DEEPEST):
        new = [entry for entry in level if comparable(entry.dn) not in seen]
        for entry in new:
            if len(seen) >= MOST_GROUPS:
                log.warning("directory_groups_cut", groups=len(seen))
                return
            seen.add(comparable(entry.dn))
            yield entry
        if not new or not directory.follows_nested:
            return
        level = list(upwards([entry.dn for entry in new]))
    log.warning("directory_groups_cut", depth=DEEPEST)


def _parents_found(link: Link, directory: Directory) -> Upwards:
    def parents(dns: Sequence[str]) -> Iterator[Entry]:
        for start in range(0, len(dns), ASKED_AT_A_TIME):
            some = dns[start : start + ASKED_AT_A_TIME]
            yield from link.search(
                directory.group_base, _has_member(some), "cn", most=MOST_GROUPS
            )

    return parents


def _parents_named(link: Link) -> Upwards:
    def parents(dns: Sequence[str]) -> Iterator[Entry]:
        for dn in dns:
            group = link.read(dn, "memberOf")
            for parent in group.texts("memberOf") if group else ():
                yield _named(parent)

    return parents


def _named(dn: str) -> Entry:
    """Return a group of which only the name is known, without asking for it."""
    return Entry(dn=dn, values={"cn": [first_value(dn).encode()]})


def _has_member(dns: Sequence[str]) -> str:
    each = [
        f"({attribute}={in_filter(dn)})"
        for dn in dns
        for attribute in ("member", "uniqueMember")
    ]
    return f"(|{''.join(each)})"


def _has_login(directory: Directory, person: Entry) -> str:
    """Return the condition for groups of RFC 2307, whose members have no entries."""
    names = person.texts(directory.username_attribute)
    return "".join(f"(memberUid={in_filter(name)})" for name in names)
