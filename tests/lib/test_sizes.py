from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioner.lib.sizes import exact_size_text, parse_size, size_text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1536, "1.5 KiB"),
        (100 * 2**30, "100 GiB"),
        (2**60, "1024 PiB"),
    ],
)
def test_sizes_have_their_largest_unit(size_bytes: int, text: str) -> None:
    assert size_text(size_bytes) == text


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("100 GiB", 100 * 2**30),
        ("1.5T", 3 * 2**39),
        (" 20m ", 20 * 2**20),
        ("7", 7),
        ("8 b", 8),
    ],
)
def test_sizes_are_read_as_people_write_them(text: str, size_bytes: int) -> None:
    assert parse_size(text) == size_bytes


@pytest.mark.parametrize("text", ["", "GiB", "1,5 G", "-1", "1 x", "1e9"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        parse_size(text)


@given(st.integers(min_value=0, max_value=2**62))
def test_an_exact_size_is_read_back(size_bytes: int) -> None:
    assert parse_size(exact_size_text(size_bytes)) == size_bytes
