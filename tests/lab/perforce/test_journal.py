"""Journals and checkpoints read as records."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from provisioner.lab.perforce import keywords
from provisioner.lab.perforce.journal import JournalError, records

TEXT = b"""@nx@ 0 1499683054 @43@ 2 0 0 0 0 @/root@ @journal@ @@ @@ @@
@pv@ 0 @db.desc@ 7 @two lines
and a @@ sign@
@ex@ 15727 1499683054
@rv@ 1 @db.counters@ @change@ @@
"""


@pytest.mark.parametrize("compress", [False, True])
def test_texts_keep_line_ends_and_at_signs(tmp_path: Path, compress: bool) -> None:
    path = tmp_path / "checkpoint"
    path.write_bytes(gzip.compress(TEXT) if compress else TEXT)

    found = list(records(path))

    assert [(r.operation, r.version, r.table, r.values) for r in found] == [
        ("pv", 0, "db.desc", ["7", "two lines\nand a @ sign"]),
        ("rv", 1, "db.counters", ["change", ""]),
    ]


@pytest.mark.parametrize("text", [b"hello\n", b"@pv@ 0 @db.desc@ 7 @open\n"])
def test_what_is_no_journal_is_refused(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "checkpoint"
    path.write_bytes(text)

    with pytest.raises(JournalError):
        list(records(path))


def test_keywords_are_filled_in_as_the_type_asks() -> None:
    def filled(kind: str) -> bytes:
        revision = keywords.Described(
            path="//d/f", number=3, type=kind, change=9, submitted=0, author="bruno"
        )
        return keywords.expanded(b"$Id$ $Author: x $ $No$\n", revision=revision)

    assert filled("text") == b"$Id$ $Author: x $ $No$\n"
    assert filled("text+ko") == b"$Id: //d/f#3 $ $Author: x $ $No$\n"
    assert filled("text+k") == b"$Id: //d/f#3 $ $Author: bruno $ $No$\n"
