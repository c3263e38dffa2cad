"""Windows of time that begin by cron."""

from __future__ import annotations

import datetime as dt

import pytest

from provisioner.lib.cron_windows import check_windows, window_end


def at(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(f"2026-11-{text}+00:00")


# The 29th is a Sunday.
LINES = "0 2 * * sun  90\r\n\r\n30 2 * * *\t30"


@pytest.mark.parametrize(
    ("now", "end"),
    [
        ("29T01:59", None),
        ("29T02:00", "29T03:30"),
        ("29T02:45", "29T03:30"),  # the later end of two
        ("29T03:30", None),
        ("27T02:30", "27T03:00"),
        ("27T02:00", None),
    ],
)
def test_a_window_lasts_from_its_time_for_its_minutes(
    now: str, end: str | None
) -> None:
    check_windows(LINES)

    assert window_end(LINES, now=at(now)) == (at(end) if end else None)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("0 2 * * sun", "five fields as in cron"),
        ("0 2 * * sun ninety", "five fields as in cron"),
        ("0 3 30 2 * 90", "five fields as in cron"),
        ("0 2 * * sun 0", "must last"),
        ("0 2 * * sun 99999", "must last"),
        ("0 2 * * sun 90\nnightly", "“nightly”"),
    ],
)
def test_lines_that_are_no_windows_are_refused(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        check_windows(text)
