"""Columns that people choose, views that they save, and filters at one click."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from provisioner.accounts.models import User
from provisioner.dashboard.lists import ALL_WORKSPACES
from provisioner.web.models import SavedView
from provisioner.workspaces.models import Workspace
from tests.support.behind import known_to_be_behind
from tests.support.browsers import table
from tests.support.factories import SnapshotFactory, TemplateFactory, UserFactory

ALL = "/workspaces/"
COLUMNS, SAVE = "/me/lists/columns/", "/me/views/save/"
NAMES = [c.name for c in ALL_WORKSPACES.columns if c.label][1:]


def of_list(**more: Any) -> dict[str, Any]:
    return {"listing": "workspaces", "there": ALL, "column": NAMES, **more}


def save(browser: Client, name: str, there: str, **more: Any) -> SavedView:
    sent = of_list(name=name, **{"shown": NAMES, **more, "there": there})
    answer = browser.post(SAVE, sent)
    assert answer.status_code == 302, answer.content
    return SavedView.objects.get(pk=answer["Location"].rpartition("=")[2])


def hidden(page: str) -> list[str]:
    classes = re.search(r'<table class="table table-list([^"]*)"', page)
    assert classes is not None
    return classes[1].split()


def test_columns_are_chosen_by_each_person_and_kept(
    as_admin: Client, as_alice: Client, ready: Workspace
) -> None:
    assert hidden(as_admin.get(ALL).text) == []
    shown = [name for name in NAMES if name not in ("owner", "site")]

    answer = as_admin.post(COLUMNS, of_list(shown=shown, there=f"{ALL}?q=a"))

    assert answer["Location"] == f"{ALL}?q=a"
    # The box that chooses a row comes first, then the name, the state, the owner.
    assert hidden(as_admin.get(ALL).text) == ["hides-4", "hides-6"]
    assert 'name="shown" value="owner">' in as_admin.get(ALL).text
    assert hidden(as_alice.get("/operations/").text) == []
    [row] = table(as_admin, f"{ALL}?as=csv")
    assert {"owner", "site"} & set(row) == set()
    assert {"name", "template", "change", "path"} <= set(row)
    as_admin.post(COLUMNS, of_list(shown=[n for n in NAMES if n != "template"]))
    assert not {"template", "change"} & set(table(as_admin, f"{ALL}?as=csv")[0])
    as_admin.post(COLUMNS, of_list(shown=NAMES))
    assert hidden(as_admin.get(ALL).text) == []


def test_a_view_has_filters_order_and_columns_at_an_address_for_others(
    as_admin: Client, as_alice: Client, alice: User, ready: Workspace
) -> None:
    there = f"{ALL}?q={ready.name}&sort=name&page=3&choose=page&view=7"
    view = save(as_admin, "  Mine,  by  name ", there, shown=NAMES[1:])
    address = f"{ALL}?view={view.pk}"

    assert view.query == f"q={ready.name}&sort=name"
    page = as_admin.get(address).text
    assert f'<a href="{address}">Mine, by name</a>' in page
    assert 'aria-sort="ascending"' in page
    assert f'value="{ready.name}"' in page
    assert hidden(page) == ["hides-3"]
    assert [row["name"] for row in table(as_admin, f"{address}&as=csv")] == [ready.name]
    assert table(as_admin, f"{address}&q=nowhere&as=csv") == [], "the address wins"
    alice.is_staff = True
    alice.save()
    theirs = as_alice.get(address).text
    assert f"View “Mine, by name” of {view.person}" in theirs
    assert f'<a href="{address}">' not in theirs, "it is not among alice's"


def test_a_view_shows_nobody_more_than_is_theirs(
    as_admin: Client, as_carol: Client, ready: Workspace
) -> None:
    view = save(as_admin, "All", f"/operations/?q={ready.name}")
    SavedView.objects.update(listing="operations")

    assert len(table(as_admin, f"/operations/?view={view.pk}&as=csv")) == 1
    assert table(as_carol, f"/operations/?view={view.pk}&as=csv") == []
    assert as_carol.post(f"/me/views/{view.pk}/delete/").status_code == 302
    assert SavedView.objects.filter(pk=view.pk).exists(), "it is not carol's"


def test_a_name_that_is_taken_is_said_at_the_field_and_nothing_is_lost(
    as_admin: Client, as_alice: Client, ready: Workspace
) -> None:
    save(as_admin, "Failed ones", f"{ALL}?state=failed")
    there = f"{ALL}?q=x"

    taken = as_admin.post(
        SAVE, of_list(name="Failed ones", there=there, shown=NAMES[1:])
    )

    assert taken.status_code == 422
    assert "You have a view “Failed ones” of this list already." in taken.text
    assert 'value="Failed ones"' in taken.text
    assert f'name="there" value="{there}"' in taken.text
    assert taken.text.count('name="shown"') == len(NAMES) - 1
    assert save(as_alice, "Failed ones", ALL).name == "Failed ones", "alice's own"
    assert as_admin.post(SAVE, of_list(name=" ")).status_code == 422


def test_what_is_gone_of_a_view_is_a_sentence(
    as_admin: Client, ready: Workspace
) -> None:
    view = save(as_admin, "Old", f"{ALL}?sort=-color&q={ready.name}")
    SavedView.objects.update(hidden=["flavor"])

    page = as_admin.get(f"{ALL}?view={view.pk}")

    assert page.status_code == 200
    assert "The column “flavor” of this view is gone." in page.text
    assert "There is no order by “color” any more: sorted by Created." in page.text
    assert ready.name in page.text
    deleted = as_admin.post(f"/me/views/{view.pk}/delete/")
    assert deleted["Location"] == ALL
    gone = as_admin.get(f"{ALL}?view={view.pk}").text
    assert "This saved view was deleted. The whole list is shown." in gone
    for nonsense in ("x", "9" * 30, "-1"):
        assert as_admin.get(f"{ALL}?view={nonsense}").status_code == 200


@pytest.mark.parametrize("there", ["https://evil.example/", "//evil.example/", "x", ""])
def test_no_other_site_is_led_to(as_admin: Client, there: str) -> None:
    assert as_admin.post(COLUMNS, of_list(there=there))["Location"] == "/"
    answer = as_admin.post(SAVE, of_list(name="n", there=there))
    assert answer["Location"].startswith("/?view=")


def by_chips(browser: Client, address: str) -> dict[str, list[str]]:
    """Return what the quick filters of a list find, by their words."""
    chips = re.findall(
        r'<a class="chip" href="(\?[^"]*)"[^>]*>([^<]*)', browser.get(address).text
    )
    return {
        label: [row["name"] for row in table(browser, f"{address}{url}&as=csv")]
        for url, label in chips
    }


def test_quick_filters_of_templates(as_admin: Client, as_alice: Client) -> None:
    behind, fresh = SnapshotFactory.create(), SnapshotFactory.create()
    failed, archived = TemplateFactory.create(), TemplateFactory.create()
    known_to_be_behind(behind, "carol", "carol")
    known_to_be_behind(fresh)
    failed.state, failed.status_code, failed.status_message = "failed", "x", "X."
    failed.save()
    archived.archived_at, archived.archived_by = timezone.now(), archived.owner
    archived.save()
    fresh.template.owner = User.objects.get(username="alice")
    fresh.template.save()

    found = {
        "Failed build": [failed.name],
        "Behind": [behind.template.name],
        "Archived": [archived.name],
        "Mine": [fresh.template.name],
    }
    assert by_chips(as_alice, "/templates/") == found
    assert by_chips(as_admin, "/templates/") == {**found, "Mine": []}


def test_quick_filters_of_people(
    as_admin: Client, alice: User, carol: User, ready: Workspace
) -> None:
    User.objects.exclude(username="carol").update(email="a@example.com")
    User.objects.filter(pk=carol.pk).update(email="", max_workspaces=0)
    User.objects.filter(pk=alice.pk).update(max_workspaces=0)
    UserFactory.create(username="gone", is_active=False, email="")

    assert by_chips(as_admin, "/people/") == {
        "Administrators": ["admin", ready.template.owner.username],
        "Over quota": ["alice"],
        "No mail address": ["carol"],
        "Closed": ["gone"],
    }


def test_quick_filters_are_one_click(as_admin: Client, ready: Workspace) -> None:
    soon = timezone.now() + dt.timedelta(days=3)
    Workspace.objects.filter(pk=ready.pk).update(expires_at=soon)
    page = as_admin.get(ALL).text

    assert 'class="chip" href="/abandoned/">Abandoned<' in page, "not what is shown"
    assert by_chips(as_admin, ALL) == {
        "Failed": [],
        "Ends this week": [ready.name],
        "Mine": [],
    }
    assert 'aria-current="true">Failed</a>' in as_admin.get(f"{ALL}?state=failed").text
    Workspace.objects.update(expires_at=soon + dt.timedelta(days=9))
    assert table(as_admin, f"{ALL}?ends=week&as=csv") == []
    Workspace.objects.update(
        state="failed", status_code="x", status_message="X.", expires_at=soon
    )
    [row] = table(as_admin, f"{ALL}?state=failed&as=csv")
    assert row["name"] == ready.name
    assert table(as_admin, f"{ALL}?ends=week&as=csv") == []


def test_a_time_that_ends_before_it_begins_is_said(as_admin: Client) -> None:
    query = "since=2026-11-09T00:00&until=2026-11-02T00:00"
    page = as_admin.get(f"/operations/?{query}").text
    assert "Until (UTC): It ends before it begins. Choose a later time." in page
    assert 'value="2026-11-02T00:00"' in page
