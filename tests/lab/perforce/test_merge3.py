"""Three-way merges, in the pieces the client is sent."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from provisioner.lab.perforce.merge3 import BASE, RESULT, THEIRS, YOURS, merge, result

TEXT = st.lists(st.sampled_from([b"a", b"b", b"c", b""]), max_size=8).map(b"\n".join)


@given(TEXT, TEXT, TEXT)
def test_the_pieces_of_each_file_make_up_the_file(
    base: bytes, theirs: bytes, yours: bytes
) -> None:
    pieces = list(merge(base, theirs, yours))

    for bit, whole in ((BASE, base), (THEIRS, theirs), (YOURS, yours)):
        assert b"".join(p.data for p in pieces if p.bits & bit) == whole


@given(TEXT, TEXT)
def test_a_side_that_changed_nothing_gets_the_other_one(
    base: bytes, changed: bytes
) -> None:
    assert result(merge(base, changed, base)) == changed
    assert result(merge(base, base, changed)) == changed
    assert result(merge(base, changed, changed)) == changed


def test_changes_apart_are_both_in_the_result() -> None:
    base, theirs, yours = b"1\n2\n3\n4\n", b"one\n2\n3\n4\n", b"1\n2\n3\n4\nfive"

    assert result(merge(base, theirs, yours)) == b"one\n2\n3\n4\nfive"


def test_changes_in_one_place_are_a_conflict() -> None:
    assert result(merge(b"1\n", b"one\n", b"uno\n")) is None


def test_every_change_shows_the_base_before_the_new_lines() -> None:
    """The client counts changes where the kind of piece switches."""
    pieces = list(merge(b"1\n", b"0\n1\n", b"1\n"))

    assert [p.bits for p in pieces[1:3]] == [BASE | YOURS, THEIRS | RESULT]
    assert pieces[0].data == b""
