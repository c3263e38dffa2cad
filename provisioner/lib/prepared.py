"""Queries that are put together once."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from django.db import connection
from django.db.models import QuerySet

Row = TypeVar("Row")

# Stands for the id while a query is put together. No row has it.
_PLACE = -6_917_529_027


class Prepared(Generic[Row]):
    """A query for rows by an id.

    Django puts a query together anew each time, which takes longer than PostgreSQL
    takes to answer (benchmarks/queued_requests.py). `build` gets the id, and has to
    return the same query for each. It is called before the first answer, so models may
    be imported later.
    """

    def __init__(self, build: Callable[[int], QuerySet[Any, Row]]) -> None:
        self._build = build
        self._known: tuple[QuerySet[Any, Row], Any, str, tuple[Any, ...]] | None = None

    def rows(self, pk: int) -> list[Row]:
        """Return the rows for this id, in the query's order."""
        known = self._known or self._put_together()
        queryset, compiler, sql, params = known
        asked = tuple(pk if param == _PLACE else param for param in params)
        # Shared by threads, so each answer has a compiler of its own.
        compiler = copy.copy(compiler)
        compiler.connection = connection
        compiler.as_sql = lambda *_, **__: (sql, asked)
        answer: Any = queryset.all()
        answer.query.get_compiler = lambda *_, **__: compiler
        return list(answer)

    def first(self, pk: int) -> Row | None:
        """Return the first row for this id, if any."""
        return next(iter(self.rows(pk)), None)

    def _put_together(self) -> tuple[QuerySet[Any, Row], Any, str, tuple[Any, ...]]:
        queryset = self._build(_PLACE)
        compiler = queryset.query.get_compiler(connection=connection)
        sql, params = compiler.as_sql()
        self._known = (queryset, compiler, sql, tuple(params))
        return self._known
