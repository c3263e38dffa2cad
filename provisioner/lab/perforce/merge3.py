"""Three-way merges of texts, in pieces as the client wants them.

Each piece says to which of base, theirs, yours and result its lines belong. Every
change is an old piece (what the base has) and then new ones, either possibly empty: the
client counts changes by where the kind of piece switches.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

BASE, THEIRS, YOURS, RESULT, CONFLICT = 1, 2, 4, 8, 16
ALL = BASE | THEIRS | YOURS | RESULT


class Piece(NamedTuple):
    """Lines and the files they belong to."""

    bits: int
    data: bytes


def lines_of(data: bytes) -> list[bytes]:
    """Split at line feeds only; the last line may lack one."""
    lines = data.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


def merge(base: bytes, theirs: bytes, yours: bytes) -> Iterator[Piece]:
    """Yield the pieces of a three-way merge, in the order of the files."""
    old, new, mine = lines_of(base), lines_of(theirs), lines_of(yours)
    done = new_done = mine_done = 0
    # Also when a change comes first: without it the client counts that one not at all.
    yield Piece(ALL, b"")
    for start, new_start, mine_start, size in _common(old, new, mine):
        yield from _change(
            old[done:start], new[new_done:new_start], mine[mine_done:mine_start]
        )
        # Also when empty: it ends a conflict at the end of the file.
        yield Piece(ALL, b"".join(old[start : start + size]))
        done, new_done = start + size, new_start + size
        mine_done = mine_start + size


def result(pieces: Iterator[Piece]) -> bytes | None:
    """Return the merged text; None if there is a conflict."""
    parts = []
    for piece in pieces:
        if piece.bits & CONFLICT:
            return None
        if piece.bits & RESULT:
            parts.append(piece.data)
    return b"".join(parts)


def _common(
    old: Sequence[bytes], new: Sequence[bytes], mine: Sequence[bytes]
) -> Iterator[tuple[int, int, int, int]]:
    """Yield what all three share: a start in each and a size; the last one is empty."""
    theirs = difflib.SequenceMatcher(None, old, new, autojunk=False)
    yours = difflib.SequenceMatcher(None, old, mine, autojunk=False)
    left, right = theirs.get_matching_blocks(), yours.get_matching_blocks()
    i = j = 0
    while i < len(left) and j < len(right):
        a, b = left[i], right[j]
        start = max(a.a, b.a)
        stop = min(a.a + a.size, b.a + b.size)
        if start < stop:
            yield start, a.b + start - a.a, b.b + start - b.a, stop - start
        if a.a + a.size < b.a + b.size:
            i += 1
        else:
            j += 1
    yield len(old), len(new), len(mine), 0


def _change(old: list[bytes], new: list[bytes], mine: list[bytes]) -> Iterator[Piece]:
    base, theirs, yours = b"".join(old), b"".join(new), b"".join(mine)
    if base == theirs == yours:
        return
    if theirs == yours:
        yield Piece(BASE, base)
        yield Piece(THEIRS | YOURS | RESULT, theirs)
    elif base == yours:
        yield Piece(BASE | YOURS, base)
        yield Piece(THEIRS | RESULT, theirs)
    elif base == theirs:
        yield Piece(BASE | THEIRS, base)
        yield Piece(YOURS | RESULT, yours)
    else:
        yield Piece(BASE | CONFLICT, base)
        yield Piece(THEIRS | RESULT | CONFLICT, theirs)
        yield Piece(YOURS | RESULT | CONFLICT, yours)
