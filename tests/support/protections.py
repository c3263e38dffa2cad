"""Lines of the protection table that last as long as a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.support.lab import Lab

Protect = Callable[..., None]


@pytest.fixture
def protect(lab: Lab) -> Iterator[Protect]:
    """Return a function that adds lines to the table; they go with the test."""
    p4 = lab.as_admin()
    form = p4.fetch_protect()
    before = form["Protections"]

    def add(*lines: str, after: bool = True) -> None:
        form["Protections"] = [*before, *lines] if after else [*lines, before[-1]]
        p4.save_protect(form)

    yield add
    form["Protections"] = before
    p4.save_protect(form)
    p4.disconnect()
