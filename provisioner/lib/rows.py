"""Search rows by words."""

from __future__ import annotations

from typing import Any, TypeVar

from django.db import connections
from django.db.models import Model, Q, QuerySet

Row = TypeVar("Row", bound=Model)
AnyModel = TypeVar("AnyModel", bound=type[Model])

_few: set[type[Model]] = set()


def few(model: AnyModel) -> AnyModel:
    """Mark a model as having few rows, for searches by their names."""
    _few.add(model)
    return model


def plain_rows(rows: QuerySet[Any, Any]) -> list[tuple[Any, ...]]:
    """Return rows of values as PostgreSQL sends them, thousands in half the time.

    Django converts each value with a call. Sums are numbers of type Decimal.
    """
    with connections[rows.db].cursor() as cursor:
        cursor.execute(*rows.query.sql_with_params())
        found: list[tuple[Any, ...]] = cursor.fetchall()
    return found


def words_of(text: str) -> list[str]:
    """Return the words of a typed text, without what PostgreSQL cannot store."""
    return text.replace("\0", "").split()


def with_words(rows: QuerySet[Row], text: str, *fields: str) -> QuerySet[Row]:
    """Keep rows that have every word of a text in one of their fields."""
    for word in words_of(text):
        has_it = [
            Q(**{f"{field}__icontains": word})
            if field in rows.query.annotations
            else _has_word(rows.model, field, word)
            for field in fields
        ]
        rows = rows.filter(Q(*has_it, _connector=Q.OR))
    return rows


def _has_word(model: type[Model], field: str, word: str) -> Q:
    """Return the condition for a word in a field.

    Models with few rows are searched once, rather than again for each row that refers
    to them.
    """
    relation, _, of_theirs = field.partition("__")
    related = model._meta.get_field(relation).related_model
    if related not in _few:
        return Q(**{f"{field}__icontains": word})
    theirs = related._base_manager.filter(_has_word(related, of_theirs, word))
    return Q(**{f"{relation}__in": theirs.order_by().values("pk")})
