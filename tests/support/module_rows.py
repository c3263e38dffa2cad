"""Rows that all tests of a module begin with: written once, and gone after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest
from django.db import transaction
from pytest_django import DjangoDbBlocker

from tests.support.undoing import around_tests

Rows = TypeVar("Rows")
Write = Callable[[Callable[[], Rows]], Rows]


@pytest.fixture(scope="module")
def written_once(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[Write[Rows]]:
    """Call what writes rows; the tests run inside the transaction that it does so in.

    What a test writes is undone after it, as ever. What it changes in Python stays: it
    gets copies.
    """
    outer = around_tests()

    def write(rows: Callable[[], Rows]) -> Rows:
        with django_db_blocker.unblock():
            return rows()

    with django_db_blocker.unblock():
        outer.__enter__()
    yield write
    with django_db_blocker.unblock():
        transaction.set_rollback(True)
        outer.__exit__(None, None, None)
