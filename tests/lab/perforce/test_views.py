"""The lab's views, held against the client library's own mapping class."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st
from P4 import Map

from provisioner.lab.perforce.views import (
    View,
    ViewLine,
    format_view_line,
    is_well_formed,
    parse_view_line,
)
from tests.lab.perforce.properties import patient

_names = st.sampled_from(["a", "b", "ab", "x y", "é", "a%40b"])
_tails = st.sampled_from(["...", "*", "%%1", "a*", "*.c", "a", ".../a", "*/%%1"])
_flags = st.sampled_from(["", "", "", "-", "+"])


@st.composite
def _side(draw: st.DrawFn, top: str, tail: str) -> str:
    parts = draw(st.lists(_names, max_size=2))
    return "/".join([top, *parts, tail])


@st.composite
def _line(draw: st.DrawFn) -> ViewLine:
    tail = draw(_tails)
    left, right = draw(_side("//d", tail)), draw(_side("//c", tail))
    return ViewLine(flag=draw(_flags), left=left, right=right)


_paths = st.lists(
    st.sampled_from(["a", "b", "ab", "x y", "é", "a%40b", "aa.c"]),
    min_size=1,
    max_size=4,
).map("/".join)


def _oracle(lines: list[ViewLine]) -> Map:
    mapping = Map()
    for line in lines:
        mapping.insert(format_view_line(line))
    return mapping


@settings(patient, max_examples=250)
@given(lines=st.lists(_line(), min_size=1, max_size=5), path=_paths)
@example(
    lines=[
        ViewLine(flag="", left="//d/a/...", right="//c/x/..."),
        ViewLine(flag="", left="//d/b/...", right="//c/x/..."),
    ],
    path="a/f",
)
def test_a_view_maps_as_the_client_library_does(
    lines: list[ViewLine], path: str
) -> None:
    view, oracle = View(lines), _oracle(lines)
    assert view.to_client(f"//d/{path}") == oracle.translate(f"//d/{path}")
    assert view.to_depot(f"//c/{path}") == oracle.translate(f"//c/{path}", False)


@patient
@given(line=_line())
def test_a_view_line_survives_its_form(line: ViewLine) -> None:
    assert parse_view_line(format_view_line(line)) == line


@patient
@given(lines=st.lists(_line(), min_size=1, max_size=4), path=_paths)
def test_the_depot_prefixes_of_a_client_pattern_hold_all_its_files(
    lines: list[ViewLine], path: str
) -> None:
    view = View(lines)
    place = view.to_client(f"//d/{path}")
    if place is None:
        return
    directory = place.rpartition("/")[0]
    for pattern in (place, f"{directory}/...", "//c/..."):
        prefixes = view.depot_prefixes(pattern)
        assert any(f"//d/{path}".startswith(prefix) for prefix in prefixes)


def test_an_ampersand_line_gives_a_file_a_second_place() -> None:
    view = View(
        [
            ViewLine(flag="", left="//d/...", right="//c/..."),
            ViewLine(flag="&", left="//d/a/...", right="//c/again/..."),
        ]
    )
    assert view.to_client("//d/a/f") == "//c/a/f"
    assert set(view.all_to_client("//d/a/f")) == {"//c/a/f", "//c/again/f"}
    assert view.to_depot("//c/again/f") == "//d/a/f"


def test_both_sides_of_a_line_need_the_same_wildcards() -> None:
    assert is_well_formed(ViewLine(flag="", left="//d/%%1/*", right="//c/*/%%1"))
    assert not is_well_formed(ViewLine(flag="", left="//d/...", right="//c/*"))
