"""Tables as CSV, line by line: they may be long."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence

# A spreadsheet would take what begins so for a formula.
FORMULAS = ("=", "+", "-", "@", "\t", "\r")


class _Echo:
    """A file that hands each line back instead of writing it."""

    def write(self, line: str) -> str:
        return line


def csv_lines(
    columns: Sequence[str], rows: Iterable[Iterable[str | int | float]]
) -> Iterator[str]:
    """Yield the columns' names, then a line for each row."""
    writer = csv.writer(_Echo())
    yield writer.writerow(columns)
    for row in rows:
        yield writer.writerow([_cell(value) for value in row])


def _cell(value: str | int | float) -> str | int | float:
    """Return a value that no spreadsheet takes for a formula."""
    if isinstance(value, str) and value.startswith(FORMULAS):
        return f"'{value}"
    return value
