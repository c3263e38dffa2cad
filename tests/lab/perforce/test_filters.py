from __future__ import annotations

import pytest

from provisioner.lab.perforce.filters import parse_filter, parse_jobview
from provisioner.lab.perforce.messages import CommandError, NotInLab

RECORD: dict[str, str | bytes | int] = {
    "headType": "text+x",
    "headRev": 12,
    "depotFile": "//depot/a b/x*y",
    "desc": "Mend the gui bug",
    "fileSize": 1048576,
}


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
        # What `p4 help fstat` has as an example, and numbers that are no words.
        ("fileSize > 1000000 & headType=text+x", True),
        ("fileSize > 999999 headType=text+x", True),
        ("fileSize>9000000", False),
        # A space binds least: (12 or 1) and binary.
        ("headRev=12 | headRev=1 headType=binary", False),
        ("headType=binary headRev=1 | headRev=12", False),
        ("headRev=12 | headRev=1 & headType=binary", True),
        ("(headRev=1 | headRev=12) headType=text*", True),
        ("^headAction=delete ^headAction=move/delete", True),
        ("^headAction=delete & ^headRev=12", False),
        # Any word of a field, and the whole of it; case counts.
        ("desc=gui", True),
        ("desc=g*i", True),
        ("desc=Gui", False),
        ("desc<an", True),
        (r"desc=Mend\ the\ gui\ bug", True),
        (r"depotFile>//depot/a\ b/x\*", True),
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


@pytest.mark.parametrize("text", ["a=1 | ^b=1", "^b=1 | a=1", "c=1 (^a=1 | b=1)"])
def test_what_is_not_so_is_no_choice(text: str) -> None:
    with pytest.raises(CommandError) as refusal:
        parse_filter(text)
    assert refusal.value.message_id == 6258


def test_a_filter_is_not_nested_without_end() -> None:
    with pytest.raises(CommandError):
        parse_filter("^" * 5_000 + "a=1")


def test_expressions_are_not_part_of_the_lab() -> None:
    with pytest.raises(NotInLab, match="fstat -F with ~="):
        parse_filter("headType~=t.*t")
    with pytest.raises(NotInLab, match="streams -F with ~="):
        parse_filter("Name~=t.*t", command="streams")
    with pytest.raises(NotInLab, match="jobs -e with ~="):
        parse_jobview("status~=o.*n")


@pytest.mark.parametrize(
    ("text", "passes"),
    [("gui", True), (r"g\ui", True), (r"g\*i", False), (r"//depot/a\ b/x\*y", True)],
)
def test_a_backslash_takes_the_meaning_from_signs_in_words(
    text: str, passes: bool
) -> None:
    assert parse_jobview(text)(RECORD) is passes


def test_what_is_no_jobview_is_refused_as_one() -> None:
    with pytest.raises(CommandError) as refusal:
        parse_jobview("(open")
    assert "jobs -e: cannot read" in str(refusal.value.variables)
