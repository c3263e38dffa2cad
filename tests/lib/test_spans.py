from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioner.lib.spans import parse_span, span_text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30 d", 30 * 86400),
        ("1d 12h", 36 * 3600),
        ("1d12h", 36 * 3600),
        ("90 min", 5400),
        (" 0 s ", 0),
        ("30 days", 30 * 86400),
        ("2 Weeks 1 day", 15 * 86400),
        ("1 hour 5 minutes", 3900),
    ],
)
def test_spans_are_read(text: str, seconds: int) -> None:
    assert parse_span(text) == seconds


@pytest.mark.parametrize("text", ["", "d", "30", "30 dayz", "-1 d", "1.5 d", "1 d,"])
def test_what_is_no_span_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_span(text)


@given(st.integers(0, 10**9))
def test_what_is_written_is_read_back(seconds: int) -> None:
    assert parse_span(span_text(seconds)) == seconds
