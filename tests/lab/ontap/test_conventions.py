"""Filters, fields, bodies and values, without a server."""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioner.lab.ontap.conventions.body import flatten, parse_json, read_fields
from provisioner.lab.ontap.conventions.fields import FieldSet, Wanted, values_of
from provisioner.lab.ontap.conventions.query import is_plain, parse_filter
from provisioner.lab.ontap.conventions.values import boolean, integer, size, text
from provisioner.lab.ontap.errors import OntapError

GB = 1 << 30
PLAIN = st.text(string.ascii_letters + string.digits + "_-/:", min_size=1, max_size=20)


def refusal(function: Any, *args: Any, **kwargs: Any) -> str:
    with pytest.raises(OntapError) as raised:
        function(*args, **kwargs)
    return raised.value.code


# --- query operators


@pytest.mark.parametrize(
    ("query", "value", "matches"),
    [
        ("a", "a", True),
        ("a", "b", False),
        ("a|b", "b", True),
        ("dev_*", "dev_alice", True),
        ("dev_*", "tmpl", False),
        ("*_x", "dev_x", True),
        ("!a", "b", True),
        ("!a", "a", False),
        ("!dev_*", "dev_a", False),
        (">1GB", 2 * GB, True),
        (">1GB", GB, False),
        (">=1GB", GB, True),
        ("<1GB", GB - 1, True),
        ("<=1GB", GB, True),
        ("1GB..2GB", GB, True),
        ("1GB..2GB", 2 * GB, True),
        ("1GB..2GB", 2 * GB + 1, False),
        ("1GB", GB, True),
        ("1024", 1024, True),
        ("x", 1024, False),
        (">x", 1024, False),
        ("true", True, True),
        ("True", True, True),
        ("false", True, False),
        ("null", "a", False),
        ("!null", "a", True),
        ('"a|b"', "a|b", True),
        ('"dev_*"', "dev_a", False),
        ('"dev_*"', "dev_*", True),
        (">2026-01-01T00:00:00", "2026-03-02T10:11:12+00:00", True),
        (">2026-03-02T11:00:00+02:00", "2026-03-02T10:11:12+00:00", True),
        ("<2026-03-02T10:11:13Z", "2026-03-02T10:11:12+00:00", True),
        ("2026-03-02..2026-03-03", "2026-03-02T10:11:12+00:00", True),
        ("<2026-03-02", "2026-03-02T10:11:12+00:00", False),
        (">2026-99-99", "2026-03-02T10:11:12+00:00", False),
    ],
)
def test_an_operator_matches(query: str, value: Any, matches: bool) -> None:
    assert parse_filter(query)([value]) is matches


@pytest.mark.parametrize(("query", "matches"), [("null", True), ("!null", False)])
def test_null_is_about_absent_fields(query: str, matches: bool) -> None:
    assert parse_filter(query)([]) is matches


@pytest.mark.parametrize("query", ["a", "*", "!a", ">1", "1..2", "<=x"])
def test_an_absent_field_matches_nothing_else(query: str) -> None:
    assert parse_filter(query)([]) is False


@given(st.text(max_size=40), st.lists(st.text(max_size=10) | st.integers(), max_size=3))
def test_every_filter_has_an_answer(query: str, values: list[Any]) -> None:
    assert parse_filter(query)(values) in (True, False)


@given(PLAIN)
def test_a_plain_value_matches_itself_alone(value: str) -> None:
    if value.lower() != "null":
        assert is_plain(value)
        assert parse_filter(value)([value])
        assert not parse_filter(value)([value + "x"])


@given(PLAIN, PLAIN)
def test_not_is_the_opposite(a: str, b: str) -> None:
    if a.lower() != "null":
        assert parse_filter(f"!{a}")([b]) is not parse_filter(a)([b])


@given(st.integers(0, 1 << 50), st.integers(0, 1 << 50))
def test_comparisons_agree_with_arithmetic(a: int, b: int) -> None:
    assert parse_filter(f">{a}")([b]) is (b > a)
    assert parse_filter(f"<={a}")([b]) is (b <= a)
    assert parse_filter(f"{a}..{b}")([a]) is (a <= b)


# --- fields

FIELDS = FieldSet(
    keys=("uuid", "name"),
    standard=("size", "clone.is_flexclone"),
    expensive=("clone.parent", "nas.path", "nas.uid"),
    trees=("qos",),
)
RECORD: dict[str, Any] = {
    "uuid": "u",
    "name": "n",
    "size": 7,
    "clone.is_flexclone": True,
    "clone.parent": {"name": "p"},
    "nas.path": None,
    "nas.uid": lambda: 5,
}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (None, {"uuid": "u", "name": "n"}),
        ("size", {"uuid": "u", "name": "n", "size": 7}),
        ("size,,", {"uuid": "u", "name": "n", "size": 7}),
        (
            "*",
            {"uuid": "u", "name": "n", "size": 7, "clone": {"is_flexclone": True}},
        ),
        (
            "clone",
            {
                "uuid": "u",
                "name": "n",
                "clone": {"is_flexclone": True, "parent": {"name": "p"}},
            },
        ),
        ("nas.path", {"uuid": "u", "name": "n"}),
        ("nas", {"uuid": "u", "name": "n", "nas": {"uid": 5}}),
        ("qos.policy.name", {"uuid": "u", "name": "n"}),
        (
            "**",
            {
                "uuid": "u",
                "name": "n",
                "size": 7,
                "clone": {"is_flexclone": True, "parent": {"name": "p"}},
                "nas": {"uid": 5},
            },
        ),
    ],
)
def test_fields_select(fields: str | None, expected: dict[str, Any]) -> None:
    assert Wanted.parse(fields, fields=FIELDS).select(RECORD) == expected


def test_an_instance_without_fields_has_the_standard_ones() -> None:
    whole = Wanted.parse(None, fields=FIELDS, whole=True)
    assert whole.select(RECORD) == Wanted.parse("*", fields=FIELDS).select(RECORD)


def test_an_unknown_field_is_refused() -> None:
    assert refusal(Wanted.parse, "size,color", fields=FIELDS) == "262197"


def test_what_nobody_asked_for_is_not_computed() -> None:
    def explode() -> int:
        raise AssertionError("computed")

    record = {**RECORD, "nas.uid": explode}
    assert Wanted.parse("*", fields=FIELDS).select(record)["name"] == "n"


def test_filters_look_into_lists_and_objects() -> None:
    record = {"aggregates": [{"name": "a"}, {"name": "b"}], "parent": {"name": "p"}}
    assert values_of(record, "aggregates.name") == ["a", "b"]
    assert values_of(record, "parent.name") == ["p"]
    assert values_of(record, "parent.uuid") == []


# --- bodies


def test_dotted_and_nested_keys_mean_the_same() -> None:
    nested = flatten({"nas": {"path": "/a", "export_policy": {"name": "x"}}})
    assert flatten({"nas.path": "/a", "nas.export_policy": {"name": "x"}}) == nested


@pytest.mark.parametrize(
    "document",
    [b'{"a": 1, "a": 2}', b'{"a.b": 1, "a": {"b": 2}}'],
)
def test_a_field_given_twice_is_refused(document: bytes) -> None:
    assert refusal(lambda: flatten(parse_json(document))) == "262188"


@pytest.mark.parametrize("document", [b"{", b"[]", b"1", b'{"a": NaN}', b"\xff\xfe"])
def test_what_is_no_json_object_is_refused(document: bytes) -> None:
    assert refusal(parse_json, document) == "262180"


def test_deep_nesting_is_refused() -> None:
    document = b'{"a":' * 100 + b"1" + b"}" * 100
    assert refusal(lambda: flatten(parse_json(document))) == "262180"
    assert refusal(parse_json, b'{"a":' * 100_000) == "262180"


def test_bodies_are_checked_against_the_schema() -> None:
    schema = {"size": size, "is_on": boolean, "name": text}
    flat = {"size": "1GB", "is_on": "True", "name": 5}
    assert read_fields(flat, schema=schema) == {"size": GB, "is_on": True, "name": "5"}
    assert refusal(read_fields, {"x": 1}, schema=schema) == "262179"
    assert read_fields({"x": 1}, schema=schema, strict=False) == {}
    assert refusal(read_fields, {"size": "big"}, schema=schema) == "262197"
    assert refusal(read_fields, {"u": 1}, schema=schema, read_only=["u"]) == "262196"


@given(st.integers(-(1 << 62), 1 << 62))
def test_numbers_may_be_strings(number: int) -> None:
    assert integer(str(number)) == integer(number) == number


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=10,
    )
)
def test_every_value_is_taken_or_refused(value: Any) -> None:
    for kind in (text, integer, size, boolean):
        try:
            kind(value)
        except (ValueError, OverflowError):
            continue
