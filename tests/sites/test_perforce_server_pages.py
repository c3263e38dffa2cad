"""Perforce servers: the list of them; what runs at one, who waits, the switch."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from provisioner.accounts.models import User
from provisioner.catalog.models import ServerWatch, Snapshot
from provisioner.engine import dispatch, slots
from provisioner.engine import states as engine_states
from provisioner.engine.models import SlotBudget
from provisioner.gateways.perforce.types import LockUse
from provisioner.sites.actions.pausing import perforce_server_pause
from provisioner.sites.models import PerforceServer
from provisioner.workspaces.models import Workspace
from tests.support.browsers import confirm, post, table
from tests.support.factories import PerforceServerFactory, UserFactory
from tests.support.requests import workspace_create

pytestmark = pytest.mark.django_db


@pytest.fixture
def waiting(alice: User, snapshot: Snapshot) -> Workspace:
    """One whose flush waits behind that of another, which is at work."""
    server = snapshot.template.site.perforce_server
    server.flush_limit = 1
    server.save()
    ci = UserFactory.create(username="ci-1", is_service=True)
    for by in (alice, ci):
        workspace = workspace_create(by=by, template=snapshot.template)
        operation = workspace.operations.get()
        dispatch.defer_step(operation, operation.steps.get(name="flush"))
        if by == alice:
            engine_states.start_step(operation.steps.get(name="flush"))
    return workspace


def page_of(server: PerforceServer, browser: Client) -> str:
    return browser.get(f"/perforce/{server.pk}/").text


def test_all_are_listed_with_how_busy_they_are(
    waiting: Workspace, as_admin: Client, admin: User
) -> None:
    PerforceServerFactory.create(name="other", p4port="ssl:other:1666")
    busy = waiting.site.perforce_server

    rows = table(as_admin, "/perforce/?as=csv&sort=-name")

    assert {row["name"]: (row["running"], row["waiting"]) for row in rows} == {
        "other": ("0", "0"),
        busy.name: ("1", "1"),
    }
    assert rows[0]["name"] == max("other", busy.name)
    assert len(table(as_admin, "/perforce/?as=csv&q=other:1666")) == 1
    assert "No server matches." in as_admin.get("/perforce/?q=nowhere").text
    assert "1 of 1" in as_admin.get("/perforce/").text


def test_many_are_paused_and_go_on_after_a_preview(
    waiting: Workspace, as_admin: Client
) -> None:
    server = waiting.site.perforce_server
    told = {"chosen": [server.pk], "reason": "Move it"}

    preview = post(as_admin, "/perforce/", do="pause", chosen=[server.pk])
    assert "No step starts there until it is resumed." in preview.content.decode()
    untold = confirm(as_admin, preview, "/perforce/")
    assert untold.status_code == 422, "a pause needs a reason"
    assert not SlotBudget.objects.exists()
    seal = re.findall(r'name="seal" value="(\w+)"', preview.content.decode())
    post(as_admin, "/perforce/", do="pause", step="sure", seal=seal, **told)
    assert SlotBudget.objects.get().paused_reason == "Move it"
    assert "Move it" in as_admin.get("/perforce/").text

    for do in ("resume", "pause-refresh"):
        preview = post(as_admin, "/perforce/", do=do, chosen=[server.pk])
        assert confirm(as_admin, preview, "/perforce/").status_code == 302
    assert not SlotBudget.objects.get().is_paused
    assert ServerWatch.objects.get().is_paused


def test_it_shows_what_runs_and_who_waits(waiting: Workspace, as_admin: Client) -> None:
    page = page_of(waiting.site.perforce_server, as_admin)
    assert "1 running; 1 waiting" in page
    assert "0 requests of people, 1 request of machines" in page
    assert "ci-1 (machine)" in page
    assert "Began" in page
    assert "Waiting, queued" in page


def test_it_costs_as_many_queries_for_many_as_for_one(
    waiting: Workspace,
    as_admin: Client,
    alice: User,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    for number in range(3):
        operation = workspace_create(
            by=alice, template=waiting.template, request_key=str(number)
        ).operations.get()
        dispatch.defer_step(operation, operation.steps.get(name="flush"))
    with django_assert_max_num_queries(15):
        assert "4 wait" in page_of(waiting.site.perforce_server, as_admin)


def test_it_shows_waits_for_locks_and_that_fewer_may_run(
    waiting: Workspace, as_admin: Client
) -> None:
    server = waiting.site.perforce_server
    server.flush_limit = 4
    server.save()
    assert "4 may run at a time, as set" in page_of(server, as_admin)
    step = waiting.operations.get().steps.get(name="flush")
    slots.observe(
        step, LockUse(command="sync -k", table="db.have", waited_ms=777, held_ms=3)
    )

    page = page_of(server, as_admin)

    assert "2 may run at a time and not 4" in page
    assert "777 ms" in page
    assert "db.have" in page


def test_a_server_is_paused_and_resumed(
    waiting: Workspace, as_admin: Client, admin: User
) -> None:
    address = f"/perforce/{waiting.site.perforce_server_id}/"
    page = as_admin.post(f"{address}pause/", {"reason": "Move it"}, follow=True).text
    assert f"by {admin.username}: Move it" in page
    assert SlotBudget.objects.get().is_paused

    page = as_admin.post(f"{address}resume/", follow=True).text
    assert f"{waiting.site.perforce_server.name} is resumed." in page
    assert not SlotBudget.objects.get().is_paused


def test_a_pause_without_a_reason_is_refused(
    waiting: Workspace, as_admin: Client
) -> None:
    address = f"/perforce/{waiting.site.perforce_server_id}/pause/"
    page = as_admin.post(address, {"reason": " "}, follow=True).text
    assert "Give a reason" in page
    assert not SlotBudget.objects.exists()


def test_an_unknown_server_is_not_found(as_admin: Client) -> None:
    assert as_admin.post("/perforce/999/pause/", {"reason": "x"}).status_code == 404
    assert as_admin.post("/perforce/999/resume/").status_code == 404


def test_the_page_of_a_workspace_says_that_it_waits(
    waiting: Workspace, as_admin: Client
) -> None:
    page = as_admin.get(f"/workspaces/{waiting.pk}/").text
    server = waiting.site.perforce_server
    next_in_line = "It is next in line for a slot at the Perforce server"
    assert f"{next_in_line} {server.name}." in page
    assert "Waits for a slot" in page

    perforce_server_pause(
        by=UserFactory.create(is_staff=True), server=server, reason="Move it"
    )
    page = as_admin.get(f"/workspaces/{waiting.pk}/").text
    assert f"The Perforce server {server.name} is paused: Move it." in page
