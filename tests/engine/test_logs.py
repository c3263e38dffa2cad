from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from provisioner.engine.logs import reading
from provisioner.engine.logs.reading import (
    FOLLOWED_BYTES,
    PIECE_BYTES,
    LogPiece,
    read_before,
    read_from,
    read_log,
    read_on,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.log"


def there(piece: LogPiece | None) -> LogPiece:
    assert piece is not None
    return piece


def test_there_may_be_no_log(path: Path) -> None:
    assert read_log(path) is None
    assert read_from(path, offset=0) is None
    assert read_before(path, offset=9) is None
    assert read_on(path, offset=9) is None


def test_a_short_log_is_one_piece_and_the_line_that_has_not_ended(path: Path) -> None:
    path.write_text("a\nb")
    piece = there(read_log(path))
    assert (piece.text, piece.rest) == ("a\n", "b")
    assert (piece.start, piece.end, piece.size, piece.is_last) == (0, 2, 3, True)


def test_the_last_piece_begins_with_a_line(path: Path) -> None:
    path.write_text("a line\n" * PIECE_BYTES)
    piece = there(read_log(path))
    assert piece.text.startswith("a line\n")
    assert piece.end == piece.size
    assert piece.start % 7 == 0


@pytest.mark.parametrize("text", ["größe\n" * PIECE_BYTES, "x" * 63 + "\n"])
def test_pieces_follow_each_other_without_a_gap(path: Path, text: str) -> None:
    path.write_text(text * 2 + "end")
    read, piece = "", there(read_from(path, offset=0))
    while not piece.is_last:
        read += piece.text
        piece = there(read_from(path, offset=piece.end))
    assert read + piece.text + piece.rest == text * 2 + "end"


def test_pieces_lead_back_without_a_gap(path: Path) -> None:
    text = "".join(f"line {number}\n" for number in range(20_000))
    path.write_text(text)
    piece = there(read_log(path))
    read = piece.text
    while piece.start:
        piece = there(read_before(path, offset=piece.start))
        assert piece.text.startswith("line ")
        read = piece.text + read
    assert read == text


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=300), st.integers(1, 40), st.integers(0, 400))
def test_whatever_is_in_it_all_of_it_is_read_once(
    tmp_path: Path, monkeypatch_pieces: None, data: bytes, size: int, offset: int
) -> None:
    reading.PIECE_BYTES = size
    path = tmp_path / "any.log"
    path.write_bytes(data)
    end, piece = 0, there(read_from(path, offset=0))
    while not piece.is_last:
        assert piece.start == end < piece.end
        end, piece = piece.end, there(read_from(path, offset=piece.end))
    assert piece.size == len(data)
    start, piece = len(data), there(read_before(path, offset=len(data)))
    while piece.start:
        assert piece.start < start == piece.end
        start, piece = piece.start, there(read_before(path, offset=piece.start))
    there(read_from(path, offset=offset))
    there(read_log(path))


@pytest.fixture
def monkeypatch_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give pieces back their size afterwards."""
    monkeypatch.setattr(reading, "PIECE_BYTES", PIECE_BYTES)


def test_a_line_longer_than_a_piece_is_read_all_the_same(path: Path) -> None:
    text = "ö" * PIECE_BYTES
    path.write_text(text)
    first = there(read_from(path, offset=0))
    second = there(read_from(path, offset=first.end))
    assert first.text + second.text + second.rest == text


def test_a_character_half_written_waits_for_its_other_half(path: Path) -> None:
    path.write_bytes(b"a\n\xc3")
    assert there(read_from(path, offset=0)).end == 2
    path.write_bytes(b"a\n\xc3\xb6\n")
    assert there(read_from(path, offset=2)).text == "ö\n"


def test_a_log_that_is_shorter_now_has_begun_anew(path: Path) -> None:
    path.write_text("abc\n")
    piece = there(read_from(path, offset=99))
    assert (piece.text, piece.start, piece.end) == ("abc\n", 0, 4)


def test_who_follows_and_is_far_behind_is_taken_to_the_end(path: Path) -> None:
    path.write_bytes(b"a line\n" * (FOLLOWED_BYTES // 7 + 10))
    piece = there(read_on(path, offset=0))
    assert piece.end == piece.size
    assert piece.skipped == piece.start > 0
    near = there(read_on(path, offset=piece.size - 14))
    assert (near.text, near.skipped) == ("a line\na line\n", 0)


def test_hundreds_of_megabytes_are_not_read(path: Path) -> None:
    with path.open("wb") as log:
        log.truncate(2**40)
        log.seek(2**40)
        log.write(b"\nthe end\n")
    assert there(read_log(path)).text.endswith("the end\n")
    assert there(read_before(path, offset=2**39)).end == 2**39
    assert there(read_on(path, offset=0)).skipped > 2**39
