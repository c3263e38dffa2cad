"""Queries that are put together once, and those that PostgreSQL plans once."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from django.db import connection
from django.db.backends.postgresql import base
from django.db.backends.utils import CursorWrapper
from django.db.models import BooleanField, F, Func, QuerySet
from django.db.models.expressions import RawSQL

Row = TypeVar("Row")
ServerBindingCursor: Any = vars(base)["ServerBindingCursor"]  # the stubs lack it


class Prepared(Generic[Row]):
    """A query for rows by an id, or by several values.

    Django puts a query together anew each time, which takes longer than PostgreSQL
    takes to answer (benchmarks/queued_requests.py, benchmarks/own_parts.py). `build`
    gets a placeholder for each value, and uses it as a value of a condition: an id, not
    a row. It is called before the first answer, so models may be imported later.

    With `keeps_plan` PostgreSQL plans it once for each connection, for whatever values:
    for what finds its rows by a key, and is asked all the time.
    """

    def __init__(
        self,
        build: Callable[..., QuerySet[Any, Row]],
        *,
        values: int = 1,
        keeps_plan: bool = False,
    ) -> None:
        self._build = build
        self._values = values
        self._connection: Any = _PLANNING_ONCE if keeps_plan else connection
        self._known: tuple[QuerySet[Any, Row], Any, str, tuple[Any, ...]] | None = None

    def rows(self, *values: object) -> list[Row]:
        """Return the rows for these values, in the query's order."""
        known = self._known or self._put_together()
        queryset, compiler, sql, params = known
        asked = tuple(
            values[param.number] if isinstance(param, _Place) else param
            for param in params
        )
        # Shared by threads, so each answer has a compiler of its own.
        compiler = copy.copy(compiler)
        compiler.connection = self._connection
        compiler.as_sql = lambda *_, **__: (sql, asked)
        answer: Any = queryset.all()
        answer.query.get_compiler = lambda *_, **__: compiler
        return list(answer)

    def first(self, *values: object) -> Row | None:
        """Return the first row for these values, if any."""
        return next(iter(self.rows(*values)), None)

    def _put_together(self) -> tuple[QuerySet[Any, Row], Any, str, tuple[Any, ...]]:
        places = (RawSQL("%s", (_Place(number),)) for number in range(self._values))
        queryset = self._build(*places)
        compiler = queryset.query.get_compiler(connection=connection)
        sql, params = compiler.as_sql()
        self._known = (queryset, compiler, sql, tuple(params))
        return self._known


def planned_cursor() -> CursorWrapper:
    """Return a cursor for statements that a worker asks all the time, by a key.

    From their second time on a connection PostgreSQL neither reads nor plans them again
    (`prepare_threshold` and plan_cache_mode in the settings). Django's own cursor
    writes values into the statement, so that each is a new one.
    """
    here: Any = connection
    here.close_if_health_check_failed()
    here.ensure_connection()
    with here.wrap_database_errors:
        cursor = ServerBindingCursor(here.connection)
    wrapped: CursorWrapper = here._prepare_cursor(cursor)
    return wrapped


class _PlanningOnce:
    """The connection of this thread, with planned cursors."""

    def cursor(self) -> CursorWrapper:
        return planned_cursor()

    def __getattr__(self, name: str) -> Any:
        return getattr(connection, name)


_PLANNING_ONCE = _PlanningOnce()


class _Place:
    """Stands for a value while a query is put together."""

    def __init__(self, number: int) -> None:
        self.number = number


def among(column: str, values: RawSQL) -> Func:
    """Return the condition that a column has one of the values, given as a list."""
    return Func(
        *(F(column), values),
        template="%(expressions)s",
        arg_joiner=" = ANY ",
        output_field=BooleanField(),
    )
