"""Whether an account may read everything in a view, compared with P4.Map."""

from __future__ import annotations

import itertools
import re

import P4
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from provisioner.gateways.perforce import protections
from provisioner.gateways.perforce.protections import (
    Protection,
    Protections,
    TooIntricate,
    Unreadable,
    find_unreadable,
)

NAMES = ["".join(n) for k in (1, 2) for n in itertools.product("ab", repeat=k)]
PATHS = [
    "//" + "/".join(parts)
    for depth in (2, 3)
    for parts in itertools.product(NAMES, repeat=depth)
]
ALL = ("//depot/... //c/...",)


def table(*lines: str, **facts: bool) -> Protections:
    """Return protections from lines such as "read * //depot/..."."""
    parsed = []
    for text in lines:
        level, host, path = text.split()
        parsed.append(
            Protection(
                level=level,
                host=host,
                path=path.removeprefix("-"),
                is_exclusion=path.startswith("-"),
            )
        )
    return Protections(lines=tuple(parsed), **{"is_case_sensitive": True, **facts})


def unreadable(view: tuple[str, ...], *lines: str, **facts: bool) -> str | None:
    found = find_unreadable(view, table(*lines, **facts))
    return found.path if found else None


# --- by example


def test_a_grant_of_everything_is_enough() -> None:
    assert unreadable(ALL, "write * //...") is None


def test_without_any_line_nothing_may_be_read() -> None:
    found = find_unreadable(ALL, table())
    assert found == Unreadable(path="//depot/...", example="//depot/x")


@pytest.mark.parametrize("level", ["read", "=read", "open", "write", "admin", "super"])
def test_levels_that_let_read(level: str) -> None:
    assert unreadable(ALL, f"{level} * //depot/...") is None


@pytest.mark.parametrize("level", ["list", "review", "=open", "owner", "=branch"])
def test_levels_that_do_not_let_read(level: str) -> None:
    assert unreadable(ALL, f"{level} * //depot/...") == "//depot/..."


def test_an_exclusion_inside_the_view_is_named() -> None:
    lines = ("write * //...", "list * -//depot/secret/...")
    assert unreadable(ALL, *lines) == "//depot/secret/..."


def test_an_exclusion_outside_the_view_does_not_matter() -> None:
    lines = ("write * //...", "list * -//other/...", "list * -//depot2/...")
    assert unreadable(ALL, *lines) is None


def test_what_the_view_leaves_out_need_not_be_readable() -> None:
    view = (*ALL, "-//depot/secret/... //c/secret/...")
    assert unreadable(view, "write * //...", "list * -//depot/secret/...") is None


def test_a_view_that_leaves_out_too_little() -> None:
    view = (*ALL, "-//depot/secret/keys/... //c/secret/keys/...")
    lines = ("write * //...", "list * -//depot/secret/...")
    assert unreadable(view, *lines) == "//depot/secret/..."


def test_a_view_that_takes_back_what_it_left_out() -> None:
    view = (
        *ALL,
        "-//depot/secret/... //c/secret/...",
        "+//depot/secret/a //c/secret/a",
    )
    lines = ("write * //...", "list * -//depot/secret/...")
    assert unreadable(view, *lines) == "//depot/secret/..."


def test_later_lines_win() -> None:
    secret = "list * -//depot/secret/..."
    assert unreadable(ALL, "write * //...", secret, "read * //depot/...") is None
    assert unreadable(ALL, secret, "read * //depot/...") is None
    assert unreadable(ALL, "read * //depot/...", secret) == "//depot/secret/..."


def test_a_later_lower_level_takes_nothing_away() -> None:
    assert unreadable(ALL, "write * //...", "list * //...") is None


def test_grants_add_up() -> None:
    view = ("//depot/a/... //c/a/...", "//depot/b/... //c/b/...")
    assert unreadable(view, "read * //depot/a/...", "read * //depot/b/...") is None
    assert unreadable(view, "read * //depot/a/...") == "//depot/b/..."


def test_files_and_directories_together_are_everything() -> None:
    assert unreadable(ALL, "read * //depot/*", "read * //depot/*/...") is None


def test_a_grant_for_some_hosts_counts_only_where_the_host_was_asked_about() -> None:
    line = "write 10.0.0.0/8 //..."
    assert unreadable(ALL, line) == "//depot/..."
    assert unreadable(ALL, line, is_for_one_host=True) is None


def test_an_exclusion_for_some_hosts_counts() -> None:
    lines = ("write * //...", "list 10.0.0.5 -//depot/secret/...")
    assert unreadable(ALL, *lines) == "//depot/secret/..."


def test_an_exclusion_of_another_right_leaves_the_right_to_read() -> None:
    assert unreadable(ALL, "write * //...", "=write * -//depot/...") is None
    assert unreadable(ALL, "write * //...", "=read * -//depot/a") == "//depot/a"


def test_case_is_as_the_server_has_it() -> None:
    line = "read * //Depot/..."
    assert unreadable(ALL, line) == "//depot/..."
    assert unreadable(ALL, line, is_case_sensitive=False) is None
    secret = ("write * //...", "list * -//DEPOT/Secret/...")
    assert unreadable(ALL, *secret) is None
    assert unreadable(ALL, *secret, is_case_sensitive=False) == "//DEPOT/Secret/..."


def test_an_empty_table_lets_everybody_do_everything() -> None:
    assert unreadable(ALL, is_unprotected=True) is None


def test_paths_with_spaces_and_numbered_wildcards() -> None:
    view = ('"//depot/my files/%%1.c" "//c/my files/%%1.c"',)
    spaced = Protection(
        level="read", host="*", path="//depot/my files/*", is_exclusion=False
    )
    assert (
        find_unreadable(view, Protections(lines=(spaced,), is_case_sensitive=True))
        is None
    )
    assert unreadable(view, "read * //depot/my%20files/*") == "//depot/my files/%%1.c"


def test_a_large_table_is_judged_in_few_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"read * //depot/project{n}/..." for n in range(1000)]
    assert unreadable(("//depot/project77/src/... //c/...",), *lines) is None
    assert unreadable(ALL, *lines) == "//depot/..."


def test_what_cannot_be_judged_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protections, "LOOKS_ALLOWED", 30)
    lines = ["read * //...", *(f"list * -//other{n}/.../x/..." for n in range(9))]
    with pytest.raises(TooIntricate):
        unreadable(("//o.../z/... //c/...",), *lines, "read * //...z/...")


# --- against the judge

tokens = st.sampled_from(
    ["a", "b", "ab", "*", "...", "%%1", "a*", "*b", "a...", "...b"]
)
patterns = st.lists(tokens, min_size=1, max_size=3).map(
    lambda parts: re.sub(r"(%%1.*)%%1", r"\1%%2", "//" + "/".join(parts))
)
maps = st.lists(st.tuples(st.booleans(), patterns), min_size=1, max_size=5)


def judge(lines: list[tuple[bool, str]]) -> P4.Map:
    """Return Perforce's own map of the lines, each path to itself."""
    judge = P4.Map()
    for is_exclusion, path in lines:
        judge.insert(f"{'-' if is_exclusion else ''}{path}", path)
    return judge


@settings(max_examples=200, deadline=None)
@given(view=maps, rights=maps)
@example(view=[(False, "//...")], rights=[(False, "//*/..."), (False, "//*/*/...")])
@example(
    view=[(False, "//a/..."), (True, "//a/.../b"), (False, "//.../b")],
    rights=[(False, "//..."), (True, "//.../a/*")],
)
def test_perforce_agrees(
    view: list[tuple[bool, str]], rights: list[tuple[bool, str]]
) -> None:
    found = find_unreadable(
        [f"{'-' if no else ''}{path} {path}" for no, path in view],
        table(*(f"read * {'-' if no else ''}{path}" for no, path in rights)),
    )

    mapped, readable = judge(view), judge(rights)
    if found is None:
        hidden = [p for p in PATHS if mapped.includes(p) and not readable.includes(p)]
        assert hidden == []
    else:
        assert mapped.includes(found.example), found
        assert not readable.includes(found.example), found
