from __future__ import annotations

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot
from provisioner.dashboard.lists import ALL_WORKSPACES
from provisioner.workspaces.models import Workspace
from tests.support.factories import SnapshotFactory, TemplateFactory
from tests.support.requests import workspace_create

ADDRESS = "/workspaces/"


@pytest.fixture
def others(carol: User, snapshot: Snapshot) -> Workspace:
    """One of carol's, of another template."""
    other = SnapshotFactory.create(
        template=TemplateFactory.create(name="tools", site=snapshot.template.site)
    )
    return workspace_create(by=carol, template=other.template, name="others")


def test_shows_everybodys(
    as_admin: Client, ready: Workspace, others: Workspace
) -> None:
    page = as_admin.get(ADDRESS).text
    assert ">hers<" in page
    assert ">others<" in page
    assert "2 workspaces" in page


@pytest.mark.parametrize(
    ("query", "is_hers", "is_others"),
    [
        ("q=OTHER", False, True),
        ("q=alice", True, False),
        ("state=ready", True, False),
        ("state=provisioning", False, True),
        ("owner=carol", False, True),
        ("template={template}", False, True),
        ("q=alice&state=provisioning", False, False),
        ("state=nonsense&page=nonsense", True, True),
    ],
)
def test_the_address_filters(
    as_admin: Client,
    ready: Workspace,
    others: Workspace,
    query: str,
    is_hers: bool,
    is_others: bool,
) -> None:
    query = query.format(template=others.template_id)
    page = as_admin.get(f"{ADDRESS}?{query}").text
    assert (">hers<" in page) is is_hers
    assert (">others<" in page) is is_others
    if not is_hers and not is_others:
        assert "No workspace matches" in page


def test_retired_ones_are_shown_when_asked_for(
    as_admin: Client, retired: Workspace
) -> None:
    assert ">hers<" not in as_admin.get(ADDRESS).text
    assert ">hers<" in as_admin.get(f"{ADDRESS}?state=retired").text


def test_pages_keep_the_filters(
    as_admin: Client,
    alice: User,
    snapshot: Snapshot,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    for number in range(ALL_WORKSPACES.page_size + 1):
        workspace_create(by=alice, template=snapshot.template, name=f"w-{number}")
    # the session, its user, open findings; how many there are, which are on the page,
    # these with what names them, policies, the filter's choices
    with django_assert_num_queries(9):
        page = as_admin.get(f"{ADDRESS}?q=w-").text
    assert "Page 1 of 2" in page
    assert "?q=w-&amp;page=2" in page
    assert ">w-0<" not in page
    assert ">w-0<" in as_admin.get(f"{ADDRESS}?q=w-&page=2").text


def test_it_is_for_administrators(as_alice: Client, as_nobody: Client) -> None:
    answer = as_alice.get(ADDRESS)
    assert answer.status_code == 403
    assert "You are not allowed to do this" in answer.text
    assert as_nobody.get(ADDRESS)["Location"].startswith("/login/")
