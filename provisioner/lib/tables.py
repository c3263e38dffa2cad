"""Tables as CSV, line by line, as they may be long."""

from __future__ import annotations

import csv
import datetime as dt
from collections.abc import Iterable, Iterator, Sequence

Cell = str | int | float | bool | dt.datetime | None

# A spreadsheet would take what begins so for a formula.
FORMULAS = ("=", "+", "-", "@", "\t", "\r")


class _Echo:
    """A file that returns each line instead of writing it."""

    def write(self, line: str) -> str:
        return line


def csv_lines(columns: Sequence[str], rows: Iterable[Iterable[Cell]]) -> Iterator[str]:
    """Yield the names of the columns, then a line per row.

    Times are in UTC and ISO 8601; unknown values are empty.
    """
    writer = csv.writer(_Echo())
    yield writer.writerow(columns)
    for row in rows:
        yield writer.writerow([_written(value) for value in row])


def _written(value: Cell) -> str | int | float:
    """Return a value as text that no spreadsheet takes for a formula."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).isoformat(timespec="milliseconds")
    if isinstance(value, str) and value.startswith(FORMULAS):
        return f"'{value}"
    return value
