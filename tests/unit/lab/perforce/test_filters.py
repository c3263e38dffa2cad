from __future__ import annotations

import pytest

from provisioner.lab.perforce.filters import parse_filter
from provisioner.lab.perforce.messages import CommandError, NotInLab

RECORD = {"headType": "text+x", "headRev": 12, "depotFile": "//depot/a b/x*y"}


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("headType=text+x", True),
        ("headType = text", False),
        ("headType=text*", True),
        ("headType=*+x", True),
        ("headType=t*t*x", True),
        ("headType=t*z*x", False),
        ("headType=text+x*x", False),
        (r"depotFile=*\*y", True),
        (r"depotFile=*/a\*", False),
        ("headRev>9", True),
        ("headRev>12", False),
        ("headRev>=12", True),
        ("headRev<12", False),
        ("headRev<=100", True),
        ("headType>text", True),
        ("headType<text", False),
        ("^headRev=1", True),
        ("^ ^headRev=1", False),
        ("headRev=12 & headType=binary", False),
        ("headRev=12 headType=binary", False),
        ("headRev=12 | headType=binary", True),
        ("headRev=1 | headRev=12 & ^(headType=binary | headType=apple)", True),
        ("haveRev=1", False),
        ("^haveRev=1", True),
    ],
)
def test_a_filter_lets_pass_what_it_describes(text: str, passes: bool) -> None:
    assert parse_filter(text)(RECORD) is passes


@pytest.mark.parametrize(
    "text",
    ["", "headRev", "headRev=", "(headRev=1", "headRev=1)", "a=1 |", "^", "&a=1"],
)
def test_what_is_no_filter_is_refused(text: str) -> None:
    with pytest.raises(CommandError):
        parse_filter(text)


def test_a_filter_is_not_nested_without_end() -> None:
    with pytest.raises(CommandError):
        parse_filter("^" * 5_000 + "a=1")


def test_expressions_are_not_part_of_the_lab() -> None:
    with pytest.raises(NotInLab):
        parse_filter("headType~=t.*t")
