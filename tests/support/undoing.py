"""Undoing what a part of a test writes, as the end of a test undoes all of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction
from django.db.transaction import Atomic


def around_tests() -> Atomic:
    """Return a transaction that counts as none of the code's own."""
    around = transaction.atomic()
    around._from_testcase = True  # type: ignore[attr-defined]  # not in the stubs
    return around


@contextmanager
def undone() -> Iterator[None]:
    """Let nothing stay of what is written inside."""
    with around_tests():
        yield
        transaction.set_rollback(True)
