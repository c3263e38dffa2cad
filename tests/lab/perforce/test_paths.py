"""Escaping, wildcards and revision specifiers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from P4 import Map

from provisioner.lab.perforce import paths
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.paths import RevisionEnd, RevisionSpec
from provisioner.lab.perforce.views import View, ViewLine
from tests.lab.perforce.properties import patient

_names = st.text(
    st.characters(exclude_characters="\0\n", exclude_categories=["Cs"]), min_size=1
)
_specs = st.sampled_from(
    ["#1", "#head", "#have", "#none", "#0", "@12", "@client-1", "@2026/01/02"]
)


@patient
@given(name=_names)
def test_a_name_survives_escaping(name: str) -> None:
    escaped = paths.escape(name)
    assert paths.unescape(escaped) == name
    assert not set("@#*") & set(escaped)
    assert not paths.has_wildcard(escaped.replace("...", ""))


@patient
@given(name=_names, spec=_specs)
def test_a_revision_is_split_from_an_escaped_name(name: str, spec: str) -> None:
    escaped = paths.escape(name)
    found, revision = paths.split_revision(escaped + spec)
    assert found == escaped
    assert str(revision) == spec


@patient
@given(lower=st.integers(1, 99), upper=st.integers(1, 99))
def test_the_second_end_of_a_range_takes_the_sign_of_the_first(
    lower: int, upper: int
) -> None:
    for sign in "#@":
        _, revision = paths.split_revision(f"f{sign}{lower},{upper}")
        ends = RevisionEnd(sign, str(lower)), RevisionEnd(sign, str(upper))
        expected = RevisionSpec(ends)
        assert revision == expected
        assert paths.split_revision(f"f{revision}") == ("f", expected)


@pytest.mark.parametrize(
    ("text", "number"),
    [("f#x", 6161), ("f#1x", 6161), ("f#", 6246), ("f@", 6246), ("f@a@b", 6246)],
)
def test_nonsense_is_refused_by_its_kind(text: str, number: int) -> None:
    with pytest.raises(CommandError) as caught:
        paths.split_revision(text)
    assert caught.value.message_id == number


_patterns = st.lists(
    st.sampled_from(["a", "b", "/", "/", "*", "...", ".", "é", " "]), max_size=7
).map("".join)
_paths = st.text("ab/.é ", max_size=8)


@patient
@given(pattern=_patterns, path=_paths)
def test_wildcards_match_as_in_the_client_library(pattern: str, path: str) -> None:
    if "...." in pattern or "//" in pattern or "//" in path or "**" in pattern:
        return  # not names that exist
    left = f"//d/x{pattern}y"
    mapping = Map()
    mapping.insert(f'"{left}" "{left.replace("//d/", "//c/")}"')
    matches = paths.pattern_matches(left, f"//d/x{path}y")
    assert matches == mapping.includes(f"//d/x{path}y")


@patient
@given(pattern=_patterns, path=_paths)
def test_every_match_begins_with_the_literal_prefix(pattern: str, path: str) -> None:
    if paths.pattern_matches(pattern, path):
        prefix = paths.literal_prefix(pattern)
        assert path.startswith(prefix)
        assert prefix <= path < prefix + paths.AFTER_ALL


@patient
@given(
    pattern=st.lists(
        st.sampled_from(["a", "b", "/", "...", "*", "%%1"]), max_size=7
    ).map("".join),
    path=st.text("ab/", max_size=10),
)
def test_a_pattern_matches_what_its_captures_say(pattern: str, path: str) -> None:
    captured = paths.pattern_regex(pattern).fullmatch(path)

    assert paths.pattern_matches(pattern, path) == (captured is not None)


def test_no_pattern_takes_long_to_match_nothing() -> None:
    for wildcard in ("...", "*"):
        pattern = f"//depot/{f'{wildcard}a' * 9}{wildcard}b"
        assert not paths.pattern_matches(pattern, "//depot/" + "a" * 2000 + "c")
        view = View([ViewLine(flag="", left=pattern, right=pattern)])
        assert view.to_client("//depot/" + "a" * 2000 + "c") is None
