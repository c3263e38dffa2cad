from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from provisioner.engine.logs import search
from provisioner.engine.logs.search import Found, search_log


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.log"


def there(found: Found | None) -> Found:
    assert found is not None
    return found


def test_lines_are_found_by_their_numbers(path: Path) -> None:
    path.write_text("fine\nan Error: here\nfine\nERROR\n")
    found = there(search_log(path, text="error"))
    assert [hit.number for hit in found.hits] == [2, 4]
    first = found.hits[0]
    assert (first.before, first.found, first.after) == ("an ", "Error", ": here")
    assert found.is_all


def test_a_search_ignores_colors_and_shows_text_alone(path: Path) -> None:
    path.write_bytes(b"\x1b[1mfa\x1b[31mtal\x1b[0m \x07 <b>\rx \xff\n")
    hit = there(search_log(path, text="Fatal")).hits[0]
    assert (hit.found, hit.after) == ("fatal", " ␇ <b> x \ufffd")


def test_a_long_line_is_shown_around_the_text(path: Path) -> None:
    path.write_text("a" * 5000 + "needle" + "b" * 5000)
    hit = there(search_log(path, text="needle")).hits[0]
    assert hit.before.startswith("…a")
    assert hit.after.endswith("b…")
    assert len(hit.before) + len(hit.after) < 500


def test_many_hits_come_page_by_page(path: Path) -> None:
    path.write_text("".join(f"{number} x\n" for number in range(25)))
    numbers: list[int] = []
    start = 0
    while True:
        found = there(search_log(path, text="x", start=start, hits_at_most=10))
        numbers += [hit.number for hit in found.hits]
        if found.is_all:
            break
        start = found.searched_to
    assert numbers == list(range(1, 26))


def test_a_search_ends_in_time_and_goes_on_from_there(path: Path) -> None:
    lines = search.BLOCK_BYTES // 4
    path.write_text("nothing\n" * lines + "needle\n")
    found = there(search_log(path, text="needle", seconds=-1))
    assert not found.hits
    assert 0 < found.searched_to < found.size
    rest = there(search_log(path, text="needle", start=found.searched_to))
    assert [hit.number for hit in rest.hits] == [lines + 1]


def test_there_may_be_no_log_or_nothing_to_find(path: Path) -> None:
    assert search_log(path, text="x") is None
    path.write_text("")
    found = there(search_log(path, text="x", start=999))
    assert (found.hits, found.is_all) == ((), True)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.text("ab \x1b[0m", max_size=12), max_size=40),
    st.integers(1, 50),
)
def test_blocks_do_not_change_what_is_found(
    tmp_path: Path, restored_blocks: None, lines: list[str], size: int
) -> None:
    path = tmp_path / "any.log"
    path.write_text("\n".join(["a" * 10, *lines]))
    search.BLOCK_BYTES = 2**20
    whole = there(search_log(path, text="ab"))
    search.BLOCK_BYTES = max(size, 13)  # a line longer than a block is cut
    assert there(search_log(path, text="ab")).hits == whole.hits


@pytest.fixture
def restored_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give blocks back their size afterwards."""
    monkeypatch.setattr(search, "BLOCK_BYTES", search.BLOCK_BYTES)
