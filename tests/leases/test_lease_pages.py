"""The lease on a workspace's page: extending, keeping, releasing."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import pytest
from django.test import Client
from django.utils import timezone

from provisioner.accounts.models import Team, User
from provisioner.leases.models import LeasePolicy
from provisioner.lib.times import exact
from provisioner.workspaces.models import Workspace
from tests.support.browsers import browser_of
from tests.support.factories import UserFactory


def url(workspace: Workspace, verb: str = "") -> str:
    return f"/workspaces/{workspace.pk}/{verb}"


def end_in(workspace: Workspace, **span: float) -> Workspace:
    workspace.expires_at = timezone.now() + dt.timedelta(**span)
    workspace.save()
    return workspace


def test_the_page_and_the_list_say_when_it_ends(
    as_alice: Client, ready: Workspace
) -> None:
    page = as_alice.get(url(ready)).text
    assert ready.expires_at is not None
    assert exact(ready.expires_at) in page
    assert "Reminder mails: " in page
    assert "lease ends" in as_alice.get("/").text


def test_one_click_extends_it(as_alice: Client, ready: Workspace) -> None:
    end_in(ready, days=2)
    assert "Extend until" in as_alice.get(url(ready)).text

    answer = as_alice.post(url(ready, "extend/"), follow=True)

    ready.refresh_from_db()
    assert ready.expires_at is not None
    assert ready.expires_at > timezone.now() + dt.timedelta(days=29)
    assert f"lasts until {exact(ready.expires_at)}" in answer.text


def test_a_button_is_there_once_it_is_worth_it(
    as_alice: Client, ready: Workspace
) -> None:
    assert "Extend until" not in as_alice.get(url(ready)).text
    end_in(ready, days=29)
    assert "Extend until" in as_alice.get(url(ready)).text


def test_it_is_extended_for_another_time(as_alice: Client, ready: Workspace) -> None:
    as_alice.post(url(ready, "extend/"), {"span": "45 d 12 h"})

    ready.refresh_from_db()
    assert ready.expires_at is not None
    left = ready.expires_at - timezone.now()
    assert dt.timedelta(days=45.4) < left <= dt.timedelta(days=45.5)


@pytest.mark.parametrize(
    ("span", "days"), [("45 days", 45), ("6 Weeks", 42), ("5 weeks 3 d", 38)]
)
def test_it_is_extended_in_the_words_that_people_use(
    as_alice: Client, ready: Workspace, span: str, days: int
) -> None:
    assert "2 weeks" in as_alice.get(url(ready, "extend/")).text

    as_alice.post(url(ready, "extend/"), {"span": span})

    ready.refresh_from_db()
    assert ready.expires_at is not None
    left = ready.expires_at - timezone.now()
    assert dt.timedelta(days=days - 0.1) < left <= dt.timedelta(days=days)


@pytest.mark.parametrize("way", ["%Y-%m-%d", "%d %b", "%A, %B %d", "%d %B %Y"])
def test_it_is_extended_until_the_end_of_a_day_in_ones_own_zone(
    alice: User, ready: Workspace, way: str
) -> None:
    alice.time_zone = "Asia/Tokyo"
    alice.save()
    day = (timezone.now() + dt.timedelta(days=60)).date()

    browser_of(alice).post(url(ready, "extend/"), {"span": day.strftime(way)})

    ready.refresh_from_db()
    assert ready.expires_at is not None
    end = ready.expires_at.astimezone(ZoneInfo("Asia/Tokyo"))
    assert (end.date(), end.hour, end.minute) == (day, 23, 59)


@pytest.mark.parametrize(
    ("span", "sentence", "code"),
    [
        ("soon", "Write a time such as", 422),
        ("31 Feb", "Write a time such as", 422),
        ("91 d", "is too long", 409),
        ("1 d", "would not extend the lease", 409),
        ("2001-01-01", "A lease ends in the future", 409),
        ("9999-12-31", "Choose an end within 100 years", 422),
    ],
)
def test_a_refusal_stands_at_the_field_and_nothing_typed_is_lost(
    as_alice: Client, ready: Workspace, span: str, sentence: str, code: int
) -> None:
    answer = as_alice.post(url(ready, "extend/"), {"span": span})

    assert answer.status_code == code
    assert sentence in answer.text.partition('class="field field-wrong"')[2]
    assert f'value="{span}"' in answer.text


def test_a_lease_that_is_over_can_still_be_extended(
    as_alice: Client, ready: Workspace
) -> None:
    end_in(ready, seconds=-20)
    assert "will be retired soon unless" in as_alice.get(url(ready)).text

    as_alice.post(url(ready, "extend/"))

    ready.refresh_from_db()
    assert ready.expires_at is not None
    assert ready.expires_at > timezone.now()


def test_an_administrator_keeps_it_with_a_reason(
    as_admin: Client, as_alice: Client, ready: Workspace
) -> None:
    assert "without an end?" in as_admin.get(url(ready, "keep/")).text
    assert as_admin.post(url(ready, "keep/"), {"reason": ""}).status_code == 422

    answer = as_admin.post(
        url(ready, "keep/"), {"reason": "For <b>the</b> fair"}, follow=True
    )

    assert "Kept without an end: For &lt;b&gt;the&lt;/b&gt; fair" in answer.text
    assert "Give it a lease again" in as_alice.get(url(ready)).text
    assert "kept" in as_alice.get("/").text
    as_alice.post(url(ready, "release/"))
    ready.refresh_from_db()
    assert ready.keep_reason == ""
    assert ready.expires_at is not None


def test_an_owner_is_offered_to_keep_it_where_that_is_possible(
    as_alice: Client, ready: Workspace
) -> None:
    assert "Keep it without an end" not in as_alice.get(url(ready)).text
    refused = as_alice.post(url(ready, "keep/"), {"reason": "Mine"})
    assert refused.status_code == 409
    assert "only an administrator can keep" in refused.text
    LeasePolicy.objects.create(purpose="development", default_seconds=86400)

    assert "Keep it without an end" in as_alice.get(url(ready)).text
    as_alice.post(url(ready, "keep/"), {"reason": "Mine"})

    ready.refresh_from_db()
    assert ready.keep_reason == "Mine"


@pytest.mark.parametrize("verb", ["extend/", "keep/", "release/"])
def test_strangers_and_nobody_get_nowhere(
    ready: Workspace, carol: User, verb: str
) -> None:
    ends_at = ready.expires_at
    body = {"reason": "x", "span": "80 d"}

    assert browser_of(carol).post(url(ready, verb), body).status_code == 404
    sent_away = browser_of(None).post(url(ready, verb), body)
    assert sent_away.status_code == 302
    assert "/login/" in sent_away["Location"]

    ready.refresh_from_db()
    assert (ready.expires_at, ready.keep_reason) == (ends_at, "")


@pytest.mark.parametrize("verb", ["extend/", "keep/", "release/"])
def test_a_team_mate_may_look_and_not_touch(
    ready: Workspace, alice: User, verb: str
) -> None:
    team = Team.objects.create(name="engine")
    User.objects.filter(pk=alice.pk).update(team=team)
    bob = browser_of(UserFactory.create(username="bob", team=team))
    ends_at = ready.expires_at

    assert bob.get(url(ready)).status_code == 200
    assert bob.post(url(ready, verb), {"span": "80 d"}).status_code == 403

    ready.refresh_from_db()
    assert (ready.expires_at, ready.keep_reason) == (ends_at, "")


def test_a_check_changes_nothing(as_alice: Client, ready: Workspace) -> None:
    before = ready.expires_at
    assert as_alice.get(url(ready, "extend/")).status_code == 200
    ready.refresh_from_db()
    assert ready.expires_at == before
    assert as_alice.get(url(ready, "release/")).status_code == 405
