"""In which zone people read times, and how exact what is rounded is said."""

from __future__ import annotations

import datetime as dt

import pytest
from django.test import Client
from pytest_django import Settings

from provisioner.accounts import zones
from provisioner.accounts.models import User
from provisioner.accounts.tokens import token_create
from provisioner.notify.mails import mail_of
from provisioner.notify.models import Notification
from provisioner.web.templatetags.cloneyard import size
from provisioner.workspaces.models import Workspace

# The clocks of Berlin, of Kathmandu and of UTC show three different days.
ENDS_AT = dt.datetime(2033, 7, 4, 23, 30, tzinfo=dt.UTC)
IN_UTC = "Mon 04 Jul 2033, 23:30 UTC"
IN_BERLIN = "Tue 05 Jul 2033, 01:30 CEST"
IN_KATHMANDU = "Tue 05 Jul 2033, 05:15 UTC+0545"


@pytest.fixture
def leased(ready: Workspace) -> Workspace:
    Workspace.objects.filter(pk=ready.pk).update(expires_at=ENDS_AT)
    ready.refresh_from_db()
    return ready


@pytest.mark.parametrize(
    ("chosen", "cookie", "installations", "shown"),
    [
        ("", "", "UTC", IN_UTC),
        ("", "", "Europe/Berlin", IN_BERLIN),
        ("", "Asia/Kathmandu", "Europe/Berlin", IN_KATHMANDU),
        ("Europe/Berlin", "Asia/Kathmandu", "UTC", IN_BERLIN),
        ("Mars/Olympus", "", "UTC", IN_UTC),
        ("", "../../etc/passwd", "UTC", IN_UTC),
        ("", "Factory", "UTC", IN_UTC),
        ("", "x" * 3000, "UTC", IN_UTC),
        ("", "Europe/Berlin\x00", "UTC", IN_UTC),
    ],
)
def test_pages_have_the_readers_zone(
    chosen: str,
    cookie: str,
    installations: str,
    shown: str,
    as_alice: Client,
    alice: User,
    leased: Workspace,
    settings: Settings,
) -> None:
    settings.DISPLAY_TIME_ZONE = installations
    User.objects.filter(pk=alice.pk).update(time_zone=chosen)
    as_alice.cookies[zones.COOKIE] = cookie

    page = as_alice.get(f"/workspaces/{leased.pk}/").text

    assert f"Its lease ends on {shown}" in page
    if shown != IN_UTC:
        assert IN_UTC not in page


def test_what_many_read_stays_in_utc(
    as_alice: Client, alice: User, ready: Workspace
) -> None:
    soon = dt.datetime.now(dt.UTC) + dt.timedelta(days=1)
    Workspace.objects.filter(pk=ready.pk).update(expires_at=soon)
    User.objects.filter(pk=alice.pk).update(time_zone="Europe/Berlin")
    _, secret = token_create(by=alice)

    page = as_alice.post(f"/workspaces/{ready.pk}/extend/", follow=True).text
    answer = Client().get(
        f"/api/v1/workspaces/{ready.pk}",
        headers={"Authorization": f"Bearer {secret}"},
    )

    assert "CET" in page or "CEST" in page
    said = ready.events.get(kind="lease_extended").message
    assert said.endswith("UTC.")
    assert answer.json()["lease"]["ends_at"].endswith("Z")
    assert " UTC (" in answer.json()["lease"]["sentence"]


def test_mails_have_their_readers_zone(leased: Workspace) -> None:
    User.objects.filter(pk=leased.owner_id).update(time_zone="Europe/Berlin")
    notice = Notification.objects.create(
        workspace=leased, kind=Notification.Kind.LEASE_ENDS, due_at=ENDS_AT
    )
    notice = Notification.objects.get(pk=notice.pk)

    assert IN_BERLIN in mail_of(notice, now=ENDS_AT - dt.timedelta(days=1)).text


def test_people_choose_their_zone(as_alice: Client, alice: User) -> None:
    as_alice.cookies[zones.COOKIE] = "Asia/Kathmandu"
    assert "The browser&#x27;s, now Asia/Kathmandu" in as_alice.get("/me/").text

    assert as_alice.post("/me/", {"time_zone": "Europe/Berlin"}).status_code == 302
    assert as_alice.post("/me/", {"time_zone": "Mars/Olympus"}).status_code == 422
    alice.refresh_from_db()
    assert alice.time_zone == "Europe/Berlin"

    page = as_alice.get("/me/").text
    assert '<option value="Europe/Berlin" selected>' in page
    assert as_alice.post("/me/", {"time_zone": ""}).status_code == 302
    assert "now Asia/Kathmandu" in as_alice.get("/me/").text


def test_filters_read_times_in_the_readers_zone(
    as_admin: Client, admin: User, ready: Workspace
) -> None:
    User.objects.filter(pk=admin.pk).update(time_zone="Pacific/Kiritimati")  # UTC+14
    soon = dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)

    here = as_admin.get("/operations/", {"since": f"{soon:%Y-%m-%dT%H:%M}"}).text

    assert "Since (Pacific/Kiritimati)" in here
    assert "hers" in here  # in UTC that moment is still to come


def test_sizes_say_their_bytes() -> None:
    assert size(1536) == '<data value="1536" title="1,536 bytes">1.5 KiB</data>'
