"""How far templates are behind, their policies, and the switches."""

from __future__ import annotations

import pytest
from django.test import Client

from provisioner.audit_log.models import Event
from provisioner.catalog.models import (
    RefreshPolicy,
    RefreshSwitch,
    ServerWatch,
    Snapshot,
)
from tests.support.behind import known_to_be_behind

POLICY = {
    "mode": "on_change",
    "quiet_seconds": "2 min",
    "every_seconds": "30 min",
    "cron": "",
    "unused_days": "14",
}


def address_of(snapshot: Snapshot) -> str:
    return f"/templates/{snapshot.template_id}/"


def text_of(page: str) -> str:
    return " ".join(page.split())


def test_everybody_sees_how_far_a_template_is_behind(
    as_carol: Client, snapshot: Snapshot
) -> None:
    known_to_be_behind(snapshot, "alice", "bob", "alice")
    for address in ("/templates/", address_of(snapshot)):
        page = as_carol.get(address).text
        assert "3 changes behind, the first submitted" in page
        assert "12 minutes ago</time>, by alice and bob" in page


def test_a_template_that_is_not_behind_says_so(
    as_carol: Client, snapshot: Snapshot
) -> None:
    assert "Not known yet" in as_carol.get(address_of(snapshot)).text
    known_to_be_behind(snapshot)
    assert "No change under its view" in as_carol.get(address_of(snapshot)).text
    assert "changes behind" not in as_carol.get("/templates/").text


def test_only_administrators_are_led_to_the_form(
    as_carol: Client, as_admin: Client, snapshot: Snapshot
) -> None:
    link = f'href="{address_of(snapshot)}refresh/"'
    assert link not in as_carol.get(address_of(snapshot)).text
    assert link in as_admin.get(address_of(snapshot)).text
    assert as_carol.get(f"{address_of(snapshot)}refresh/").status_code == 403
    assert as_carol.get("/refreshes/").status_code == 403
    assert as_carol.post("/refreshes/pause/").status_code == 403


def test_a_policy_is_saved_and_shown(as_admin: Client, snapshot: Snapshot) -> None:
    saved = as_admin.post(f"{address_of(snapshot)}refresh/", POLICY, follow=True)

    assert (
        "Built after changes, once nothing came for 2 min, at most every 30 min; not "
        "while nobody used it for 14 days." in text_of(saved.text)
    )
    row = RefreshPolicy.objects.get()
    assert (row.quiet_seconds, row.every_seconds, row.unused_days) == (120, 1800, 14)
    assert Event.objects.filter(kind="refresh_policy_changed").count() == 1
    form = as_admin.get(f"{address_of(snapshot)}refresh/").text
    assert 'value="30 min"' in form


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"mode": "cron"}, "A schedule is missing"),
        ({"mode": "cron", "cron": "0 0 31 2 *"}, "0 0 31 2 * never comes"),
        ({"mode": "cron", "cron": "0 0 31"}, "The schedule needs five fields"),
        ({"quiet_seconds": "soon"}, "Write a time such as"),
        ({"quiet_seconds": "999999999 d"}, "Times are from 0 to"),
        ({"mode": "sometimes"}, "Select a valid choice"),
    ],
)
def test_what_makes_no_sense_is_refused(
    change: dict[str, str], sentence: str, as_admin: Client, snapshot: Snapshot
) -> None:
    page = as_admin.post(f"{address_of(snapshot)}refresh/", {**POLICY, **change})
    assert page.status_code in {409, 422}
    assert sentence in page.text
    assert not RefreshPolicy.objects.exists()


def test_all_refreshes_are_paused_and_resumed(
    as_admin: Client, as_carol: Client, snapshot: Snapshot
) -> None:
    page = as_admin.post("/refreshes/pause/", {"do": "pause"}, follow=True).text
    assert "The refresh of all templates is paused." in page
    assert "is paused" in as_carol.get(address_of(snapshot)).text
    assert RefreshSwitch.objects.get().is_paused

    as_admin.post("/refreshes/pause/", {"do": "resume"})
    assert not RefreshSwitch.objects.get().is_paused
    assert "is paused" not in as_carol.get(address_of(snapshot)).text
    kinds = Event.objects.filter(kind__startswith="refresh_").values_list("kind")
    assert {kind for (kind,) in kinds} == {"refresh_paused", "refresh_resumed"}


def test_a_server_is_paused_alone(as_admin: Client, snapshot: Snapshot) -> None:
    server = snapshot.template.site.perforce_server
    wish = {"do": "pause", "server": server.pk}
    page = as_admin.post("/refreshes/pause/", wish, follow=True).text
    assert "Resume" in page
    assert ServerWatch.objects.get(server=server).is_paused
    assert not RefreshSwitch.objects.filter(is_paused=True).exists()
    assert "is paused" in as_admin.get(address_of(snapshot)).text


def test_a_pause_of_nothing_is_refused(as_admin: Client) -> None:
    page = as_admin.post("/refreshes/pause/", {"server": 999}, follow=True).text
    assert "Choose what to pause" in page
    assert not RefreshSwitch.objects.exists()


def test_a_server_that_does_not_answer_is_shown(
    as_admin: Client, as_carol: Client, snapshot: Snapshot
) -> None:
    ServerWatch.objects.create(
        server=snapshot.template.site.perforce_server, last_error="It was <busy>."
    )
    watch = ServerWatch.objects.get()
    for page in (
        as_admin.get("/refreshes/"),
        as_admin.get("/perforce/"),
        as_admin.get(f"/perforce/{watch.server_id}/"),
        as_carol.get(address_of(snapshot)),
    ):
        assert "It was &lt;busy&gt;." in page.text
