from __future__ import annotations

import csv
import datetime as dt
import html
import io
import re
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client, RequestFactory
from pytest_django import DjangoAssertNumQueries

from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.audit_log.lists import AUDIT_LOG
from provisioner.audit_log.models import Event
from provisioner.catalog.actions.templates import template_update
from provisioner.catalog.models import Template
from provisioner.leases.actions.leases import end_moved
from provisioner.web.lists.listing import Look
from provisioner.web.lists.pages import BoundedPaginator
from provisioner.workspaces.models import Workspace
from tests.support.browsers import downloaded

ADDRESS = "/audit-log/"
DOWNLOAD = "/audit-log/?as=csv"


@pytest.fixture
def told(template: Template, alice: User) -> Template:
    record_event(
        template,
        kind="template_told",
        message="Was <b>told</b>.",
        reason="On a whim.",
        actor=alice,
    )
    return template


def test_shows_who_what_why_and_about_what(as_admin: Client, told: Template) -> None:
    page = as_admin.get(ADDRESS).text
    for text in ("Was &lt;b&gt;told", "On a whim.", ">alice<", "template_told"):
        assert text in page
    assert f'href="/templates/{told.pk}/"' in page


def test_shows_values_before_and_after_and_no_secret(
    as_admin: Client, template: Template, admin: User
) -> None:
    template_update(
        by=admin,
        template=template,
        build_command="make <all>",
        build_environment={"TOKEN": "hunter2"},
        description="",
    )
    admin.max_workspaces = 5
    admin.save()
    ends_at = dt.datetime(2026, 12, 25, 16, 6, tzinfo=dt.UTC)
    record_event(template, kind="told", message="M", data=end_moved(None, ends_at))

    page = as_admin.get(ADDRESS).text

    assert "build command <del>none</del> → <ins>make &lt;all&gt;</ins>" in page
    assert "max workspaces <del>none</del> → <ins>5</ins>" in page
    assert 'build environment <span class="aside">changed (value hidden)</span>' in page
    assert "hunter2" not in page
    assert "description <del>" not in page
    moved = "lease ends at <del>none</del> → <ins>Fri 25 Dec 2026, 16:06 UTC</ins>"
    assert moved in page
    assert re.search(r">\w{3} \d\d \w{3} \d{4}, \d\d:\d\d:\d\d UTC<", page)


@pytest.mark.parametrize(
    ("query", "is_shown"),
    [
        ("q=whim", True),
        ("q=WAS+told", True),
        ("q=hunter", False),
        ("actor=alice", True),
        ("actor=carol", False),
        ("kind=template_", True),
        ("kind=workspace_", False),
        ("subject=main", True),
        ("subject=other", False),
        ("since=2020-01-01T00:00", True),
        ("since=2999-01-01T00:00", False),
        ("until=2020-01-01T00:00", False),
        ("since=nonsense&page=nonsense&until=&q=%00", True),
    ],
)
def test_the_address_filters(
    as_admin: Client, told: Template, query: str, is_shown: bool
) -> None:
    page = as_admin.get(f"{ADDRESS}?{query}").text
    assert ("template_told" in page) is is_shown
    rows = downloaded(as_admin.get(f"{DOWNLOAD}&{query}")).decode()
    assert ("template_told" in rows) is is_shown


def test_pages_keep_the_filters(
    as_admin: Client,
    template: Template,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    for number in range(AUDIT_LOG.page_size + 1):
        record_event(template, kind="told", message=f"Event no {number}.")
    # the session, its user, open findings, saved views; how many there are, one page
    # of them, and what they are about
    with django_assert_num_queries(8):
        page = as_admin.get(f"{ADDRESS}?kind=told").text
    assert "Page 1 of 2" in page
    assert "?kind=told&amp;page=2" in page
    assert "Event no 0." not in page
    assert "Event no 0." in as_admin.get(f"{ADDRESS}?kind=told&page=2").text


def test_the_table_has_every_page_and_no_formulas(
    as_admin: Client, template: Template, alice: User
) -> None:
    for number in range(AUDIT_LOG.page_size + 1):
        record_event(template, kind="told", message=f'=HYPERLINK("{number}")')

    answer = as_admin.get(f"{DOWNLOAD}&kind=told")

    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert answer["Content-Disposition"].startswith("attachment;")
    text = downloaded(answer).decode()
    header, *rows = csv.reader(io.StringIO(text))
    assert header[:4] == ["at", "kind", "subject", "message"]
    assert len(rows) == AUDIT_LOG.page_size + 1
    assert all(row[3].startswith("'=HYPERLINK") for row in rows)


def test_the_table_is_the_same_as_one_made_of_objects(
    admin: User, told: Template, rf: RequestFactory
) -> None:
    record_event(None, kind="=told", message="-1", reason='two\nlines, "x"')
    request: Any = rf.get(DOWNLOAD)
    request.user = admin
    of_objects = replace(AUDIT_LOG, dress=lambda user, some: some)

    tables = [
        "".join(Look(listing, request).as_csv()) for listing in (AUDIT_LOG, of_objects)
    ]

    assert tables[0] == tables[1]
    assert ",'=told,,'-1," in tables[0]


@pytest.mark.parametrize("address", [ADDRESS, DOWNLOAD])
def test_it_is_for_administrators(
    address: str,
    as_admin: Client,
    as_alice: Client,
    as_carol: Client,
    as_nobody: Client,
    ready: Workspace,
) -> None:
    assert as_admin.get(address).status_code == 200
    assert as_admin.post(address).status_code == 405
    assert as_alice.get(address).status_code == 403
    assert as_carol.get(address).status_code == 403
    assert as_nobody.get(address)["Location"].startswith("/login/")


def test_nothing_of_it_is_changed_at_the_admin_site(
    as_admin: Client, told: Template
) -> None:
    event = Event.objects.get(kind="template_told")
    address = f"/admin/audit_log/event/{event.pk}"
    assert as_admin.get(f"{address}/change/").status_code == 200
    assert as_admin.post(f"{address}/change/", {"message": "x"}).status_code == 403
    assert as_admin.post(f"{address}/delete/", {"post": "yes"}).status_code == 403


def test_words_are_searched_in_the_newest_events_and_the_page_says_so(
    as_admin: Client, told: Template, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_of_it = as_admin.get(f"{ADDRESS}?q=whim").text
    for number in range(3):
        record_event(told, kind="later", message=f"Event no {number}.")
    monkeypatch.setattr("provisioner.audit_log.queries.SEARCHED", 2)
    narrowed = as_admin.get(f"{ADDRESS}?q=whim&sort=at").text
    [every] = re.findall(r'href="(\?[^"]*since=2000[^"]*)"', narrowed)

    assert "Words were searched in the newest events only" not in all_of_it
    assert "Words were searched in the newest events only" in narrowed
    assert "No event matches." in narrowed
    assert ">later<" in as_admin.get(f"{ADDRESS}?q=event+no").text
    found = as_admin.get(ADDRESS + html.unescape(every)).text
    assert "On a whim." in found
    assert "Words were searched in the newest events only" not in found
    assert "On a whim." in as_admin.get(f"{ADDRESS}?subject=main").text
    assert "On a whim." in as_admin.get(f"{ADDRESS}?q=whim&until=2999-01-01T00:00").text
    assert b"On a whim." in downloaded(as_admin.get(f"{DOWNLOAD}&q=whim"))


def test_a_long_log_is_not_counted_but_downloaded_whole(
    as_admin: Client, told: Template, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        record_event(told, kind="later", message=f"Event no {number}.")
    monkeypatch.setattr(BoundedPaginator, "most", 2)
    monkeypatch.setattr("provisioner.web.lists.listing.MOST_DOWNLOADED", 2)

    page = as_admin.get(f"{ADDRESS}?kind=later").text

    assert "More than 2 events" in page
    assert ", the first" not in page
    assert downloaded(as_admin.get(f"{DOWNLOAD}&kind=later")).count(b"Event no") == 3
