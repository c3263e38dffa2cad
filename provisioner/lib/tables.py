"""Tables as CSV, piece by piece, as they may be long."""

from __future__ import annotations

import csv
import datetime as dt
import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

Cell = str | int | float | bool | dt.datetime | None

# A spreadsheet would take what begins so for a formula.
FORMULAS = frozenset("=+-@\t\r")
# A web server takes a third of a long download to send each line alone.
LINES_AT_A_TIME = 1000


def csv_lines(columns: Sequence[str], rows: Iterable[Iterable[Cell]]) -> Iterator[str]:
    """Yield the names of the columns, then a line per row, many lines at a time.

    Times are in UTC and ISO 8601; unknown values are empty.
    """
    yield _lines([columns])
    every = iter(rows)
    while some := list(islice(every, LINES_AT_A_TIME)):
        yield _lines([_written(value) for value in row] for row in some)


def _lines(rows: Iterable[Sequence[str | int | float]]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue()


def _written(value: Cell) -> str | int | float:
    """Return a value as text that no spreadsheet takes for a formula."""
    if isinstance(value, str):
        return f"'{value}" if value[:1] in FORMULAS else value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).isoformat(timespec="milliseconds")
    return value
