"""Which files of a view somebody may not read, one by one."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from provisioner.gateways.perforce.protections import (
    Protection,
    Protections,
    find_unreadable,
)
from provisioner.gateways.perforce.readable import Reading

VIEW = ("//depot/main/... //c/main/...", "-//depot/main/old/... //c/main/old/...")
NAMES = st.lists(st.sampled_from(["a", "b.key", "c"]), min_size=1, max_size=3)
PATHS = NAMES.map(lambda names: "//d/" + "/".join(names))
PATTERNS = st.sampled_from(
    [
        "//...",
        "//d/...",
        "//d/a/...",
        "//.../*.key",
        "//d/*",
        "//d/*/c",
        "//d/a/....key",
    ]
)


def protections(*lines: str, is_case_sensitive: bool = True) -> Protections:
    return Protections(
        lines=tuple(
            Protection(
                level="read" if not line.startswith("-") else "list",
                host="*",
                path=line.removeprefix("-"),
                is_exclusion=line.startswith("-"),
            )
            for line in lines
        ),
        is_case_sensitive=is_case_sensitive,
    )


def test_the_line_that_decides_is_named() -> None:
    reading = Reading(VIEW, protections("//...", "-//.../*.key", "//depot/main/b/..."))

    assert reading.never_granted() is None
    assert reading.forbidding("//depot/main/a.key") == "//.../*.key"
    assert reading.forbidding("//depot/main/b/a.key") is None
    assert reading.forbidding("//depot/main/a.txt") is None


def test_what_is_not_in_the_view_is_nobodys_concern() -> None:
    reading = Reading(VIEW, protections("//...", "-//.../*.key"))

    assert reading.forbidding("//depot/main/old/a.key") is None
    assert reading.forbidding("//elsewhere/a.key") is None


def test_case_counts_where_the_server_says_so() -> None:
    for is_case_sensitive, expected in ((True, None), (False, "//.../*.KEY")):
        reading = Reading(
            VIEW,
            protections("//...", "-//.../*.KEY", is_case_sensitive=is_case_sensitive),
        )
        assert reading.forbidding("//depot/main/a.key") == expected


@given(
    path=PATHS,
    view=st.lists(PATTERNS, min_size=1, max_size=3),
    rights=st.lists(st.tuples(st.booleans(), PATTERNS), max_size=4),
)
def test_every_file_that_may_not_be_read_is_found_by_one_of_the_two_questions(
    path: str, view: list[str], rights: list[tuple[bool, str]]
) -> None:
    """Either nothing grants some of the view, or a crossing has the file."""
    lines = [
        f"-{pattern}" if is_exclusion else pattern for is_exclusion, pattern in rights
    ]
    table = protections(*lines)
    reading = Reading(
        [f"{pattern} //c/{n}/..." for n, pattern in enumerate(view)], table
    )
    if reading.forbidding(path) is None:
        return
    assert (
        find_unreadable([f"{pattern} //c/..." for pattern in view], table) is not None
    )
    assert reading.never_granted() is not None or any(
        matches(crossing, path) for crossing in reading.crossings()
    )


def matches(pattern: str, path: str) -> bool:
    text = re.escape(pattern).replace(r"\.\.\.", ".*").replace(r"\*", "[^/]*")
    return re.fullmatch(text, path) is not None
