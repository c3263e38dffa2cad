"""All operations: who sees which, filters in the address, order, and as a table."""

from __future__ import annotations

import datetime as dt

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from provisioner.engine.models import Operation
from provisioner.workspaces.models import Workspace
from tests.support.browsers import rows_of


def table(browser: Client, query: str = "") -> list[dict[str, str]]:
    answer = browser.get(f"/operations/?as=csv&{query[1:]}")
    assert "cloneyard-operations-" in answer["Content-Disposition"]
    return rows_of(answer)


@pytest.mark.parametrize(
    ("who", "is_shown"), [("as_alice", True), ("as_carol", False), ("as_admin", True)]
)
def test_people_see_those_of_their_workspaces(
    who: str, is_shown: bool, failed: Workspace, request: pytest.FixtureRequest
) -> None:
    browser: Client = request.getfixturevalue(who)

    page = browser.get("/operations/").text

    assert (f"Provision {failed.name}" in page) is is_shown
    assert bool(table(browser)) is is_shown


def test_builds_are_for_everybody(as_carol: Client, build: Operation) -> None:
    assert f'href="/operations/{build.pk}/"' in as_carol.get("/operations/").text


@pytest.mark.parametrize(
    ("query", "is_shown"),
    [
        ("?state=failed", True),
        ("?state=running", False),
        ("?kind=provision", True),
        ("?kind=retire", False),
        ("?q=hers", True),
        ("?q=HERS+aggregate", True),
        ("?q=nowhere", False),
        ("?by=alice", True),
        ("?by=carol", False),
        ("?since=2020-01-01T00:00", True),
        ("?since=2999-01-01T00:00", False),
        ("?until=2020-01-01T00:00", False),
        ("?state=nonsense&kind=%00&since=yesterday&sort=best", True),
    ],
)
def test_filters_are_the_address(
    query: str, is_shown: bool, as_alice: Client, failed: Workspace
) -> None:
    failed.operations.update(status_message="The aggregate is full.")

    assert bool(table(as_alice, query)) is is_shown
    page = as_alice.get(f"/operations/{query}").text
    assert ("Provision hers" in page) is is_shown


def test_the_longest_come_first_where_asked(
    as_admin: Client, build: Operation, failed: Workspace
) -> None:
    short = failed.operations.get()
    now = timezone.now()
    for operation, seconds in ((build, 900), (short, 5)):
        Operation.objects.filter(pk=operation.pk).update(
            state=Operation.State.FAILED,
            created_at=now - dt.timedelta(seconds=seconds),
            ended_at=now,
        )

    longest = [row["id"] for row in table(as_admin, "?sort=-seconds")]
    newest = [row["id"] for row in table(as_admin)]

    assert longest == [str(build.pk), str(short.pk)]
    assert newest == longest[::-1]


def test_a_table_names_what_it_has(as_admin: Client, failed: Workspace) -> None:
    operation = failed.operations.get()
    Operation.objects.filter(pk=operation.pk).update(status_message="=1+1")

    [row] = table(as_admin)

    assert row["subject"] == "hers"
    assert row["state"] == "failed"
    assert row["requested_by"] == "alice"
    assert float(row["seconds"]) >= 0
    assert row["status_message"] == "'=1+1", "no formula"


def test_a_page_costs_the_same_however_many_there_are(
    as_admin: Client,
    failed: Workspace,
    build: Operation,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    with django_assert_max_num_queries(8):
        as_admin.get("/operations/")
