"""Names of builds' users, in which * is any text."""

from __future__ import annotations

import pytest

from provisioner.server_log.origin import Names


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("bot", True),
        ("bots", False),
        ("jenkins", True),
        ("jenkins7", True),
        ("a.jenkins", False),
        ("ci-x-y-linux", True),
        ("ci-linux", False),
        ("ci--linux", True),
        ("aba", False),
        ("ab\nba", True),
        ("", False),
    ],
)
def test_a_star_is_any_text(name: str, is_one: bool) -> None:
    names = Names(" bot \n\njenkins*\nci-*-*linux\nab*ba")
    assert (name in names) is is_one


def test_many_stars_are_no_long_search() -> None:
    assert "a" * 200 + "b" not in Names("*a" * 100 + "*c")
