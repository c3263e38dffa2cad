"""Checkpoints as files: read whole or refused, kept once, compared table by table."""

from __future__ import annotations

import gzip
import hashlib
import tracemalloc
from pathlib import Path

import pytest

from provisioner.gateways.errors import Refused
from provisioner.gateways.hosts import checkpoint_files as files

MIB, MIBS = 1 << 20, 64
ROWS = (
    b"@pv@ 1 @db.counters@ @journal@ @41@ \n"
    b"@pv@ 3 @db.change@ 7 7 @ws@ @anna@ 1700000000 1 @first@ @//depot/...@ \n"
    b"@pv@ 3 @db.change@ 8 8 @ws@ @anna@ 1700000001 5 @second@ @//depot/...@ \n"
    b"@pv@ 3 @db.change@ 9 9 @ws@ @anna@ 1700000002 0 @pending@ @//depot/...@ \n"
    b"@pv@ 1 @db.desc@ 7 @two\n@@pv@@ 9 @@db.rev@@ lines\n@ \n"
    b"@pv@ 7 @db.user@ @anna@ @a@@b@ @@ 0 0 @Anna\n@ @@ @x@ \n"
)


def checkpoint(path: Path, rows: bytes = ROWS) -> Path:
    with gzip.open(path, "wb") as file:
        file.write(b"@nx@ 0 1700000000 @1@ 2 0 0 0 0 @root@ @@ @@ @@ @@ \n" + rows)
    return path


def test_a_checkpoint_is_read_to_its_end(tmp_path: Path) -> None:
    path = checkpoint(tmp_path / "checkpoint.gz")
    plain = gzip.decompress(path.read_bytes())
    md5 = hashlib.md5(plain, usedforsecurity=False).hexdigest().upper()
    path.with_name("checkpoint.md5").write_text(f"MD5 ({'0' * 32}.ckp) = {md5}\n")

    found = files.read_checkpoint(path)

    counts = {name: table.records for name, table in found.tables.items()}
    assert counts == {"db.counters": 1, "db.change": 3, "db.desc": 1, "db.user": 1}
    assert (found.change, found.journal) == (8, 41)
    assert found.is_as_said
    assert found.said_md5 == md5
    assert found.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert found.plain_bytes == len(plain)


@pytest.mark.parametrize("left", [-1, 40, 0])
def test_a_torn_checkpoint_is_refused(tmp_path: Path, left: int) -> None:
    path = checkpoint(tmp_path / "checkpoint.gz")
    path.write_bytes(path.read_bytes()[:left])

    with pytest.raises(Refused, match="in the middle"):
        files.read_checkpoint(path)
    path.write_text("plain")
    with pytest.raises(Refused, match="no compressed checkpoint"):
        files.read_checkpoint(path)


@pytest.mark.parametrize("line", [b"x" * 1023 + b"\n", b"x" * 1024])
def test_what_is_read_of_a_checkpoint_at_once_is_bounded(
    tmp_path: Path, line: bytes
) -> None:
    """One MiB of a packed file is up to 1 GiB of text, in one line or in many."""
    path = tmp_path / "checkpoint.gz"
    with gzip.open(path, "wb", compresslevel=9) as file:
        file.write(b"@pv@ 1 @db.desc@ 7 @")
        for _ in range(MIBS):
            file.write(line * 1024)
        file.write(b"@ \n" + ROWS)
    assert path.stat().st_size < MIB

    tracemalloc.start()
    try:
        found = files.read_checkpoint(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert found.plain_bytes > MIBS * MIB
    assert found.tables["db.desc"].records == 2
    assert (found.change, found.journal) == (8, 41)
    assert peak < MIBS * MIB / 4


@pytest.mark.parametrize("size", [1, 2, 255, 4096])
def test_a_record_has_one_digest_however_it_was_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """Pieces end anywhere: in a line, at its end, and where a packed part does."""
    whole = files.read_checkpoint(checkpoint(tmp_path / "whole.gz"))
    path = tmp_path / "parts.gz"
    plain = gzip.decompress((tmp_path / "whole.gz").read_bytes())
    middle = len(plain) // 2
    path.write_bytes(gzip.compress(plain[:middle]) + gzip.compress(plain[middle:]))
    monkeypatch.setattr(files, "CHUNK", size)

    found = files.read_checkpoint(path)

    assert (found.tables, found.md5) == (whole.tables, whole.md5)
    assert (found.change, found.journal) == (whole.change, whole.journal)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(Refused, match="in the middle"):
        files.read_checkpoint(path)


def test_differences_are_named_by_table_whatever_the_order(tmp_path: Path) -> None:
    before = files.read_checkpoint(checkpoint(tmp_path / "1.gz"))
    records = ROWS.splitlines(keepends=True)
    turned = b"".join([*records[3:], *reversed(records[:3])])
    changed = ROWS.replace(b"lines", b"rows").replace(b"@41@", b"@42@")
    fewer = b"".join(records[:3] + records[4:])

    def compared(rows: bytes) -> list[str]:
        after = files.read_checkpoint(checkpoint(tmp_path / "2.gz", rows))
        return files.differences(before, after, volatile=("db.counters",))

    assert compared(turned) == []
    assert compared(changed) == ["db.desc has 1 records, but not the same."]
    assert compared(fewer) == ["db.change has 2 records of 3."]


def test_one_is_kept_once_and_what_was_not_kept_is_removed(tmp_path: Path) -> None:
    work = files.begin_work(tmp_path, "tag", 1)
    made = checkpoint(work / "checkpoint.gz")

    kept = [files.keep_checkpoint(made, "p.ckp.gz", "AB" * 16) for _ in range(2)]

    assert kept == [tmp_path / "p.ckp.gz"] * 2
    assert "AB" * 16 in (tmp_path / "p.ckp.gz.md5").read_text()
    size = kept[0].stat().st_size
    there, gone = (str(kept[0]), size), (str(tmp_path / "other"), size)
    assert files.not_there([there, gone, (str(kept[0]), 1)]) == [gone[0], there[0]]
    (work / "root").mkdir()
    for _ in range(2):
        files.end_work(tmp_path, "tag")
        files.remove_checkpoint(kept[0])
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(Refused, match="Neither"):
        files.keep_checkpoint(made, "p.ckp.gz", "")


def test_a_directory_without_room_or_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="bytes free"):
        files.begin_work(tmp_path, "tag", 1 << 60)
    (tmp_path / "link").symlink_to(tmp_path)
    for name in ("missing", "link"):
        with pytest.raises(Refused, match="not a directory"):
            files.begin_work(tmp_path / name, "tag", 1)
    assert not list(tmp_path.glob(".cloneyard-*"))
