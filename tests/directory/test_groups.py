"""Groups by each way to find them, nested ones too, and never more than there are."""

from __future__ import annotations

import pytest
from django.utils import timezone

from provisioner.gateways.directory.configuration import Directory
from provisioner.gateways.directory.gateway import DirectoryGateway
from provisioner.gateways.directory.names import (
    comparable,
    filter_for,
    first_value,
    lies_below,
)
from tests.support.slapd import GROUPS, PASSWORD, PEOPLE, SUFFIX, Slapd

BOTH = pytest.mark.parametrize("how", ["memberof", "search"])


def names(directory: Directory, name: str = "erin") -> set[str]:
    found = DirectoryGateway(directory).sign_in(name, PASSWORD, now=timezone.now())
    assert found is not None
    return {group for group in found.groups if "=" not in group}


@BOTH
def test_direct_and_nested_ones(how: str, slapd: Slapd) -> None:
    erin = slapd.person("erin")
    inner = slapd.group("inner", erin)
    middle = slapd.group("middle", inner)
    slapd.group("outer", middle)
    slapd.group("others", PEOPLE)
    assert names(slapd.directory(groups=how)) == {"inner", "middle", "outer"}
    assert names(slapd.directory(groups=how, follows_nested=False)) == {"inner"}


@BOTH
def test_groups_in_a_circle_end(how: str, slapd: Slapd) -> None:
    erin = slapd.person("erin")
    one = slapd.group("one", erin)
    two = slapd.group("two", one)
    slapd.join(one, two)
    assert names(slapd.directory(groups=how)) == {"one", "two"}


@BOTH
def test_a_long_chain_ends(how: str, slapd: Slapd) -> None:
    above = slapd.person("erin")
    for number in range(12):
        above = slapd.group(f"level-{number}", above)
    found = names(slapd.directory(groups=how))
    assert found == {f"level-{number}" for number in range(10)}


@BOTH
def test_only_those_below_the_base_count(how: str, slapd: Slapd) -> None:
    erin = slapd.person("erin")
    elsewhere = slapd.add(
        f"ou=elsewhere,{SUFFIX}", "organizationalUnit", ou="elsewhere"
    )
    slapd.group("outside", erin, under=elsewhere)
    slapd.group("inside", erin)
    assert names(slapd.directory(groups=how)) == {"inside"}


@BOTH
def test_names_with_signs_of_filters_and_of_names(how: str, slapd: Slapd) -> None:
    erin = slapd.person(
        "erin",
        under=slapd.add(
            f"ou=a(*)\\\\\\, b,{PEOPLE}", "organizationalUnit", ou="a(*)\\, b"
        ),
    )
    slapd.add(
        f"cn=Rendering\\, lighting,{GROUPS}",
        "groupOfNames",
        cn="Rendering, lighting",
        member=[erin],
    )
    assert names(slapd.directory(groups=how)) == {"Rendering, lighting"}


def test_groups_of_names_without_entries(slapd: Slapd) -> None:
    slapd.person("erin")
    slapd.add(
        f"cn=unix,{GROUPS}", "posixGroup", cn="unix", gidNumber="5000", memberUid="erin"
    )
    slapd.add(
        f"cn=er,{GROUPS}", "posixGroup", cn="er", gidNumber="5001", memberUid="er*"
    )
    assert names(slapd.directory()) == {"unix"}


def test_without_groups_there_are_none(slapd: Slapd) -> None:
    slapd.group("inner", slapd.person("erin"))
    assert names(slapd.directory(groups="none")) == set()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("CN=A, OU=b,dc=C", "cn=a,ou=B,DC=c"),
        ("cn=a\\2Cb,dc=c", "cn=a\\,b,dc=c"),
        ("cn=a  b,dc=c", "cn=A b,dc=c"),
    ],
)
def test_equal_names_are_equal(one: str, other: str) -> None:
    assert comparable(one) == comparable(other) != ""


@pytest.mark.parametrize(
    ("one", "other"),
    [("cn=a,ou=b,dc=c", "cn=a\\,ou=b,dc=c"), ("cn=a,dc=c", "cn=b,dc=c"), ("", "")],
)
def test_others_are_not(one: str, other: str) -> None:
    assert comparable(one) != comparable(other) or comparable(one) == ""


@pytest.mark.parametrize(
    ("dn", "base", "does"),
    [
        ("cn=a,ou=b,dc=c", "ou=b,dc=c", True),
        ("cn=a,ou=bb,dc=c", "b,dc=c", False),
        ("cn=a\\,ou=b,dc=c", "ou=b,dc=c", False),
        ("nonsense", "ou=b,dc=c", False),
    ],
)
def test_below_is_below(dn: str, base: str, does: bool) -> None:
    assert lies_below(dn, base) == does


def test_what_somebody_typed_means_nothing_in_a_filter() -> None:
    assert filter_for("(uid={name})", "*)(a=\\b\0") == r"(uid=\2a\29\28a=\5cb\00)"


@pytest.mark.parametrize(
    ("dn", "value"),
    [("cn=a\\, b,dc=c", "a, b"), ("cn=\\C3\\A4,dc=c", "ä"), ("", ""), ("x", "")],
)
def test_the_first_value_is_read(dn: str, value: str) -> None:
    assert first_value(dn) == value
