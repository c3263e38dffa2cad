"""Name rules of volumes, snapshots, policies and junctions."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.operations.export_rules import (
    check_clients,
    lets_in,
    rule_from,
    with_rule_moved,
)
from provisioner.lab.ontap.operations.junctions import check_junction_path
from provisioner.lab.ontap.operations.names import (
    check_policy_name,
    check_snapshot_name,
    check_volume_name,
)


def code_of(check: Callable[[str], None], name: str) -> str | None:
    try:
        check(name)
    except OntapError as error:
        return error.code
    return None


@given(st.text(max_size=210))
def test_volume_names_follow_the_rule(name: str) -> None:
    is_good = bool(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,202}", name))
    assert (code_of(check_volume_name, name) is None) is is_good


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("a" * 203, None),
        ("a" * 204, "917886"),
        ("1a", "917887"),
        ("", "917887"),
        ("a-b", "917888"),
        ("a.b", "917888"),
        ("aé", "917888"),
        ("a\n", "917888"),
    ],
)
def test_a_volume_name_is_refused_with_its_code(name: str, code: str | None) -> None:
    assert code_of(check_volume_name, name) == code


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("cl_81234", None),
        ("daily.2026-01-01_0010", None),
        ("x" * 255, None),
        ("x" * 256, "1638518"),
        ("", "1638518"),
        ("..", "1638518"),
        ("a/b", "1638518"),
        ("a*", "1638518"),
        ("snapmirror.x", "1638477"),
    ],
)
def test_snapshot_names(name: str, code: str | None) -> None:
    assert code_of(check_snapshot_name, name) == code


@pytest.mark.parametrize(
    ("name", "code"),
    [("fc_dev", None), ("a b", "1703952"), ("", "1703952"), ("x" * 257, "1704047")],
)
def test_policy_names(name: str, code: str | None) -> None:
    assert code_of(check_policy_name, name) == code


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "a",
        "/a/",
        "//a",
        "/a//b",
        "/a/../b",
        "/./a",
        "/a*",
        "/a#",
        '/a"',
        "/a<b",
        "/a>b",
        "/a|b",
        "/a?",
        "/a\\b",
        "/" + "a" * 255,
        "/a\x00",
        "/.snapshot",
    ],
)
def test_a_bad_junction_path_is_refused(path: str) -> None:
    assert code_of(check_junction_path, path) == "918252"


@pytest.mark.parametrize("path", ["/a", "/a/b", "/ws/dev alice", "/" + "a" * 254])
def test_a_good_junction_path_is_taken(path: str) -> None:
    assert code_of(check_junction_path, path) is None


@given(st.text(max_size=300))
def test_every_junction_path_is_taken_or_refused(path: str) -> None:
    assert code_of(check_junction_path, path) in (None, "918252")


@pytest.mark.parametrize(
    "match",
    [
        "10.0.0.1",
        "10.0.0.0/24",
        "10.0.0.0/255.255.255.0",
        "::1",
        "2001:db8::/32",
        "host.example.com",
        "@netgroup",
        ".example.com",
        "10.0.0.1,10.0.0.2",
    ],
)
def test_a_client_match_is_taken(match: str) -> None:
    check_clients([{"match": match}])


@pytest.mark.parametrize("match", ["", "10.0.0.300", "10.0.0.0/40", "a b", "x/y"])
def test_a_bad_client_match_is_refused(match: str) -> None:
    with pytest.raises(OntapError) as raised:
        check_clients([{"match": match}])
    assert raised.value.code == "1704036"


def test_the_first_rule_that_matches_decides() -> None:
    never = rule_from(
        {"clients": [{"match": "10.0.0.5"}], "ro_rule": ["never"], "rw_rule": ["never"]}
    )
    net = rule_from(
        {"clients": [{"match": "10.0.0.0/24"}], "ro_rule": ["sys"], "rw_rule": ["sys"]}
    )
    rules = with_rule_moved(with_rule_moved([], net, index=None), never, index=1)
    assert [rule["index"] for rule in rules] == [1, 2]
    assert not lets_in(rules, "10.0.0.5")
    assert lets_in(rules, "10.0.0.6")
    assert not lets_in(rules, "10.0.1.6")
    assert not lets_in([], "10.0.0.6")
