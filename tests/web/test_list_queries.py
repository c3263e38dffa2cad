"""No page asks the database more often because there is more in it."""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from benchmarks import pages
from provisioner.accounts.models import Session
from provisioner.bisect.models import Bisection
from provisioner.catalog.models import Template
from provisioner.demo.company.company import Company
from provisioner.demo.company.studio import CompanySize
from provisioner.insight.models import ListedClient, ProgramUse
from provisioner.mirrors.models import Mirror
from provisioner.server_log.models import LogMessage, ServerLog
from tests.support.factories import MirroredSnapshotFactory
from tests.support.undoing import undone

FEW, MANY = 1, 2


def numbers_in(row: str) -> list[int]:
    """Return which cells of a row of a table are numbers."""
    cells = re.findall(r"<t[hd]\b[^>]*>", row)
    return [place for place, cell in enumerate(cells) if 'number"' in cell]


def check_numbers_are_below_their_headings(page: str, content: str) -> None:
    for table in re.findall(r"<table.*?</table>", content, re.DOTALL):
        headings, *rows = re.findall(r"<tr.*?</tr>", table, re.DOTALL)
        for row in rows:
            assert numbers_in(row) == numbers_in(headings), (page, row)


def company_of(times: int) -> Company:
    """Found a company of so many times as many rows."""
    size = CompanySize(
        probe_days=2,
        people=8 * times,
        teams=2 * times,
        templates=4 * times,
        workspaces=24 * times * times,  # more for each person, too
        build_share=0.05 * times,
        deliveries=8 * times,
        findings=10 * times,
    )
    company = Company(size, now=timezone.now())
    company.found()
    for template in Template.objects.all():
        mirrored = MirroredSnapshotFactory.create(mirror__template=template)
    MirroredSnapshotFactory.create_batch(times, mirror=mirrored.mirror)
    # Below ten rows a list has no filters, so it does not ask for their choices.
    programs = (
        ProgramUse(
            server=mirrored.mirror.site.perforce_server,
            program=f"tool-{number}",
            user="alice",
            first_seen_at=timezone.now(),
            last_seen_at=timezone.now(),
        )
        for number in range(10 * times)
    )
    ProgramUse.objects.bulk_create(programs)
    ListedClient.objects.bulk_create(
        ListedClient(
            server=mirrored.mirror.site.perforce_server,
            name=f"all-{number}",
            maps_whole_depot=True,
            whole_lines=["//depot/... //all/..."],
        )
        for number in range(10 * times)
    )
    # When a server said something is chance, too.
    LogMessage.objects.bulk_create(
        LogMessage(log=ServerLog.objects.latest("pk"), at=timezone.now(), kind="other")
        for _ in range(10 * times)
    )
    # Whose they are is chance, and depends on the day.
    some = Bisection.objects.values("pk")[:times]
    Bisection.objects.filter(pk__in=some).update(owner=company.people.alice)
    return company


def queries_of_pages(company: Company, who: str) -> Counter[str]:
    """Return how many queries each page takes.

    What a list is exported as is a page, too.
    """
    numbers: Counter[str] = Counter()
    owner = company.people.alice
    browser = Client()
    browser.force_login(company.people.admin if who == "admin" else owner)
    browser.get("/")  # what is read once for all, such as kinds of content
    # That a session is in use is written once a minute, whichever page that is.
    Session.objects.update(last_used_at=timezone.now() + dt.timedelta(hours=1))
    addresses = [
        *pages.addresses(owner),
        reverse("mirror-detail", args=[Mirror.objects.latest("pk").pk]),
    ]
    for page in addresses:
        with CaptureQueriesContext(connection) as queries:
            answer = browser.get(page)
            content = answer.getvalue()
        if answer.status_code == 200:
            numbers[re.sub(r"/\d+/", "/N/", page)] = len(queries)
            check_numbers_are_below_their_headings(page, content.decode())
            if "?" not in page and b"?as=csv" in content:
                addresses.append(f"{page}?as=csv")
    return numbers


@pytest.mark.django_db
def test_no_page_takes_more_queries_for_more_rows() -> None:
    pages_at_least = {"admin": 68, "owner": 29}
    counted = []
    for times in (FEW, MANY):
        with undone():
            company = company_of(times)
            counted.append(
                {who: queries_of_pages(company, who) for who in pages_at_least}
            )

    few, many = counted
    for who, at_least in pages_at_least.items():
        assert len(few[who]) >= at_least
        more = {page: (few[who][page], n) for page, n in many[who].items()}
        assert not {page: both for page, both in more.items() if both[1] > both[0]}
