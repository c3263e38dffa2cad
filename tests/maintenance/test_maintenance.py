"""Maintenance: announced by administrators, said by every page, over by itself."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from provisioner.audit_log.models import Event
from provisioner.maintenance.models import Maintenance
from tests.support.maintenance import MESSAGE, make_maintenance

PAGE, API = "/maintenance/", "/api/v1/maintenance"


def local(hours: float) -> str:
    """Return a time from now as a browser writes it."""
    return f"{timezone.now() + dt.timedelta(hours=hours):%Y-%m-%dT%H:%M}"


def test_who_announces_it_has_every_page_say_so(
    as_admin: Client, as_carol: Client, as_nobody: Client
) -> None:
    sent = {"message": MESSAGE, "starts_at": local(1), "ends_at": local(3)}
    assert as_admin.post(PAGE, sent)["Location"] == PAGE

    for page in (as_carol.get("/"), as_nobody.get("/login/"), as_admin.get(PAGE)):
        assert "Maintenance from <time" in page.text
        assert MESSAGE in page.text
    event = Event.objects.get(kind="maintenance_announced")
    assert event.actor_name == "admin"
    assert MESSAGE in event.message
    assert event.data.keys() == {"starts_at", "ends_at"}


@pytest.mark.django_db
def test_while_it_goes_on_the_page_says_until_when(as_carol: Client) -> None:
    make_maintenance(begins_in=-1)
    assert "Maintenance until <time" in as_carol.get("/").text


def test_what_is_over_is_said_no_longer(as_carol: Client, as_admin: Client) -> None:
    make_maintenance()
    Maintenance.objects.update(
        starts_at=timezone.now() - dt.timedelta(hours=2),
        ends_at=timezone.now() - dt.timedelta(seconds=1),
    )
    assert MESSAGE not in as_carol.get("/").text
    assert MESSAGE not in as_admin.get(PAGE).text


def test_it_is_withdrawn_with_an_event(as_admin: Client, as_carol: Client) -> None:
    row = make_maintenance()
    withdraw = f"{PAGE}{row.pk}/withdraw/"
    assert as_carol.post(withdraw).status_code == 403
    assert MESSAGE in as_carol.get("/").text

    as_admin.post(withdraw)

    assert MESSAGE not in as_carol.get("/").text
    assert Event.objects.filter(kind="maintenance_withdrawn").count() == 1
    assert as_admin.post(withdraw).status_code == 404


@pytest.mark.parametrize(
    ("changed", "status", "sentence"),
    [
        ({"ends_at": local(-1)}, 409, "It ends before it begins."),
        ({"starts_at": local(-3), "ends_at": local(-1)}, 409, "already be over"),
        ({"message": ""}, 422, "This field is required."),
        ({"message": "a\x1bb"}, 409, "without control characters"),
        ({"ends_at": "tomorrow"}, 422, "Enter a valid date/time."),
    ],
)
def test_what_is_wrong_is_said_and_nothing_typed_is_lost(
    changed: dict[str, str], status: int, sentence: str, as_admin: Client
) -> None:
    sent = {"message": MESSAGE, "starts_at": local(1), "ends_at": local(3), **changed}
    answer = as_admin.post(PAGE, sent)
    assert answer.status_code == status
    assert sentence in answer.text
    assert f'value="{sent["starts_at"]}"' in answer.text
    assert not Maintenance.objects.exists()


def test_its_message_is_text_and_no_html(as_carol: Client) -> None:
    make_maintenance(message="<b>now</b>")
    assert "&lt;b&gt;now" in as_carol.get("/").text


def test_scripts_announce_and_withdraw_it(
    api_as_admin: APIClient, api_as_carol: APIClient, api_as_nobody: APIClient
) -> None:
    now = timezone.now()
    body: dict[str, Any] = {
        "message": MESSAGE,
        "starts_at": now.isoformat(),
        "ends_at": (now + dt.timedelta(hours=1)).isoformat(),
    }
    assert api_as_carol.post(API, body).status_code == 403
    assert api_as_nobody.get(API).status_code == 401

    made = api_as_admin.post(API, body)

    assert made.status_code == 201
    [listed] = api_as_carol.get(API).json()["results"]
    assert (listed["id"], listed["message"]) == (made.json()["id"], MESSAGE)
    one = f"{API}/{listed['id']}"
    assert api_as_carol.delete(one).status_code == 403
    assert api_as_admin.delete(one).status_code == 204
    assert api_as_admin.delete(one).status_code == 404
    backwards = {**body, "ends_at": body["starts_at"]}
    answer = api_as_admin.post(API, backwards)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
