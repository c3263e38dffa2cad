from __future__ import annotations

from pathlib import Path

import pytest

from provisioner.workspaces.logs import PIECE_BYTES, read_log


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.log"


def test_there_may_be_no_log(path: Path) -> None:
    assert read_log(path) is None


def test_a_short_log_is_one_piece(path: Path) -> None:
    path.write_text("a\nb")
    piece = read_log(path)
    assert piece is not None
    assert (piece.text, piece.start, piece.end, piece.size) == ("a\nb", 0, 3, 3)


def test_the_last_piece_begins_with_a_line(path: Path) -> None:
    path.write_text("a line\n" * PIECE_BYTES)
    piece = read_log(path)
    assert piece is not None
    assert piece.text.startswith("a line\n")
    assert piece.end == piece.size
    assert piece.start % 7 == 0


def test_pieces_follow_each_other_without_a_gap(path: Path) -> None:
    text = "größe\n" * PIECE_BYTES
    path.write_text(text)
    read, offset = "", 0
    while piece := read_log(path, offset=offset):
        read += piece.text
        offset = piece.end
        if piece.end == piece.size:
            break
    assert read == text


def test_a_line_longer_than_a_piece_is_read_all_the_same(path: Path) -> None:
    text = "ö" * PIECE_BYTES
    path.write_text(text)
    first = read_log(path, offset=0)
    assert first is not None
    second = read_log(path, offset=first.end)
    assert second is not None
    assert first.text + second.text == text


def test_a_character_half_written_waits_for_its_other_half(path: Path) -> None:
    path.write_bytes(b"a\xc3")
    piece = read_log(path, offset=0)
    assert piece is not None
    assert (piece.text, piece.end) == ("a", 1)
    path.write_bytes(b"a\xc3\xb6")
    rest = read_log(path, offset=1)
    assert rest is not None
    assert rest.text == "ö"


def test_bytes_that_are_no_text_do_not_stop_the_reader(path: Path) -> None:
    path.write_bytes(b"a\xc3")
    piece = read_log(path, offset=1)
    assert piece is not None
    assert (piece.text, piece.end) == ("\ufffd", 2)


def test_an_offset_past_the_end_is_the_end(path: Path) -> None:
    path.write_text("abc")
    piece = read_log(path, offset=99)
    assert piece is not None
    assert (piece.text, piece.start, piece.end) == ("", 3, 3)
