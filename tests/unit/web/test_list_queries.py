"""No page asks the database more often because there is more in it."""

from __future__ import annotations

from collections import Counter

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from benchmarks import pages
from provisioner.accounts.models import User

FEW, MANY = 1, 4


def queries_of_pages(times: int) -> Counter[tuple[str, str]]:
    """Return how many queries each page takes with so many times as many rows."""
    numbers: Counter[tuple[str, str]] = Counter()
    rows = pages.Rows()
    rows.fill(40 * times)
    owner = rows.people[0]
    for who in (rows.admin, owner):
        browser = Client()
        browser.force_login(who)
        for page in pages.addresses(owner):
            if browser.get(page).status_code == 200:
                with CaptureQueriesContext(connection) as queries:
                    browser.get(page)
                numbers[who.username, page] = len(queries)
    return numbers


@pytest.mark.django_db
def test_no_page_takes_more_queries_for_more_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted = []
    for times in (FEW, MANY):
        for name, number in (
            ("TEMPLATES", 4),
            ("TEAMS", 2),
            ("PEOPLE", 4),
            ("GENERATIONS", 3),
            ("TOKENS", 4),
            ("DELIVERIES", 4),
            ("FINDINGS", 4),
        ):
            monkeypatch.setattr(pages, name, number * times)
        with transaction.atomic():
            User.objects.filter(username="admin").delete()
            counted.append(queries_of_pages(times))
            transaction.set_rollback(True)

    few, many = counted
    assert len(few) > 60
    more = {page: (few[page], number) for page, number in many.items()}
    assert not {page: both for page, both in more.items() if both[1] > both[0]}
