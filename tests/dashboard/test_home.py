"""The home page: a person's own templates first, and what stands against each."""

from __future__ import annotations

import datetime as dt
import re

import pytest
from django.test import Client
from django.utils import timezone

from provisioner.accounts.models import Team, User
from provisioner.catalog.actions.templates import MOST_PINNED
from provisioner.catalog.models import PinnedTemplate, Snapshot, Template
from provisioner.dashboard.offers import Group, offers_to
from provisioner.engine.models import Step
from provisioner.routing.models import RoutingRule
from provisioner.sites.actions.pausing import (
    perforce_server_pause,
    perforce_server_resume,
)
from provisioner.sites.models import SiteCapacity
from provisioner.workspaces.models import Workspace
from tests.support.factories import (
    MirroredSnapshotFactory,
    MirrorFactory,
    PerforceServerFactory,
    SnapshotFactory,
    TemplateFactory,
    UserFactory,
)
from tests.support.queued_steps import (
    ask_to_flush,
    limit,
    worker_that_serves_everything,
)
from tests.support.requests import workspace_create
from tests.support.warm_pools import filled, make_pool


def another(like: Snapshot, name: str) -> Template:
    template = TemplateFactory.create(site=like.template.site, name=name)
    SnapshotFactory.create(template=template)
    return template


def named(groups: list[Group]) -> list[tuple[str, list[str]]]:
    return [
        (group.title, [one.template.name for one in group.offers]) for group in groups
    ]


def ordered(user: User) -> list[tuple[str, list[str]]]:
    return named(offers_to(user, text="", quotas=[]).groups)


def button_of(browser: Client, template: Template) -> str:
    """Return what the button of a template's card says, and how it is."""
    card = browser.get("/").text.partition(f"/templates/{template.pk}/get/")[2]
    found = re.search(r'<button class="button[^>]*?( disabled)?>(.*?)<span', card)
    assert found is not None
    return f"{found[2]}{found[1] or ''}"


# --- their order


def test_own_templates_come_before_those_of_others(
    alice: User, as_alice: Client, snapshot: Snapshot
) -> None:
    alice.team = Team.objects.create(name="Rendering")
    alice.save()
    mate = UserFactory.create(team=alice.team)
    of_team, pinned = another(snapshot, "of-team"), another(snapshot, "pinned")
    of_others, unused = another(snapshot, "of-others"), another(snapshot, "a-unused")
    for by, template in (
        *((alice, snapshot.template), (mate, of_team), (mate, of_team)),
        (UserFactory.create(), of_others),
    ):
        workspace_create(by=by, template=template, request_key=str(timezone.now()))
    as_alice.post(f"/templates/{pinned.pk}/pin/", {"do": "pin"})

    assert ordered(alice) == [
        ("Pinned", ["pinned"]),
        ("Used by you and your team", ["main", "of-team"]),
        ("More templates", ["of-others", unused.name]),
    ]
    assert ordered(mate)[0][1] == ["of-team", "main"]
    page = as_alice.get("/").text
    assert page.index(">pinned<") < page.index(">main<") < page.index(">of-team<")


def test_what_was_made_long_ago_or_ahead_counts_for_nothing(
    alice: User, workspace: Workspace
) -> None:
    assert ordered(alice)[0][0] == "Used by you and your team"
    long_ago = timezone.now() - dt.timedelta(days=91)
    Workspace.objects.update(created_at=long_ago)
    make_pool(workspace.template, alice, size=1)

    assert ordered(alice) == [("More templates", ["main"])]


def test_pinning_is_for_oneself_and_can_be_undone(
    as_alice: Client, as_carol: Client, snapshot: Snapshot
) -> None:
    address = f"/templates/{snapshot.template_id}/pin/"
    asked = {"do": "pin", "next": "/?template=ma"}

    assert as_alice.post(address, asked)["Location"] == "/?template=ma"
    as_alice.post(address, asked)
    assert PinnedTemplate.objects.count() == 1
    assert 'value="unpin"' in as_alice.get("/").text
    assert 'value="pin"' in as_carol.get("/").text

    as_alice.post(address, {"do": "unpin", "next": "https://elsewhere.example/"})
    assert not PinnedTemplate.objects.exists()
    assert as_alice.post("/templates/999999/pin/").status_code == 404


def test_nobody_pins_more_than_a_page_can_show(
    alice: User, as_alice: Client, snapshot: Snapshot
) -> None:
    for number in range(MOST_PINNED):
        template = another(snapshot, f"pinned-{number}")
        PinnedTemplate.objects.create(person=alice, template=template)

    answer = as_alice.post(f"/templates/{snapshot.template_id}/pin/", follow=True)

    assert "Unpin one of them first" in answer.text
    assert named(offers_to(alice, text="", quotas=[]).groups)[0][0] == "Pinned"
    assert answer.text.count('value="unpin"') == MOST_PINNED


# --- the search box


def test_more_than_eight_have_a_search_box(
    as_alice: Client, snapshot: Snapshot
) -> None:
    for number in range(8):
        assert 'id="offers-text"' not in as_alice.get("/").text
        another(snapshot, f"engine-{number}")

    page = as_alice.get("/").text
    assert 'id="offers-text"' in page
    assert "All 9 templates" in page
    found = as_alice.get("/?template=engine 3").text
    assert ">engine-3<" in found
    assert ">main<" not in found
    part = as_alice.get(
        "/?template=nowhere", headers={"HX-Request": "true", "HX-Target": "offers"}
    )
    assert part.text.lstrip().startswith('<div id="offers">')
    assert "No template matches “nowhere”" in part.text
    assert "HX-Target" in part["Vary"]


# --- what stands against a workspace


@pytest.fixture
def served(snapshot: Snapshot) -> Snapshot:
    """A snapshot at a site that a worker serves."""
    worker_that_serves_everything()
    return snapshot


def test_nothing_stands_against_it(as_alice: Client, served: Snapshot) -> None:
    assert button_of(as_alice, served.template) == "Get a workspace"
    assert "obstacle" not in as_alice.get("/").text


def test_a_paused_server_is_said_before_the_click(
    as_alice: Client, admin: User, served: Snapshot
) -> None:
    server = served.template.site.perforce_server
    perforce_server_pause(by=admin, server=server, reason="A checkpoint.")

    assert button_of(as_alice, served.template) == "Request: server is paused"
    for address in ("/", "/templates/", f"/templates/{served.template_id}/"):
        page = as_alice.get(address).text
        assert page.count("is paused: A checkpoint.") == 1
        assert "Request: server is paused" in page


def test_the_server_that_a_rule_chooses_is_the_one_that_may_be_paused(
    as_alice: Client, as_carol: Client, alice: User, admin: User, served: Snapshot
) -> None:
    site = served.template.site
    replica = PerforceServerFactory.create(
        kind="forwarding-replica", upstream=site.perforce_server
    )
    RoutingRule.objects.create(position=1, account=alice, site=site, server=replica)
    perforce_server_pause(by=admin, server=site.perforce_server, reason="A checkpoint.")

    assert button_of(as_alice, served.template) == "Get a workspace"
    assert button_of(as_carol, served.template) == "Request: server is paused"
    perforce_server_resume(by=admin, server=site.perforce_server)
    perforce_server_pause(by=admin, server=replica, reason="An upgrade.")
    assert button_of(as_alice, served.template) == "Request: server is paused"
    assert "is paused: An upgrade." in as_alice.get("/").text
    assert button_of(as_carol, served.template) == "Get a workspace"


def test_a_full_quota_is_said_in_the_words_of_its_refusal(
    as_alice: Client, alice: User, served: Snapshot
) -> None:
    alice.max_workspaces = 0
    alice.save()

    assert button_of(as_alice, served.template) == "Quota is full disabled"
    refused = as_alice.post(f"/templates/{served.template_id}/get/")
    sentence = "You have 0 of the 0 workspaces that you may have."
    for address in ("/", "/templates/", f"/templates/{served.template_id}/"):
        page = as_alice.get(address).text
        assert sentence in page
        assert "Quota is full" in page
    assert sentence in refused.text


def test_a_site_without_room_is_said_in_the_words_of_its_refusal(
    as_alice: Client, alice: User, served: Snapshot
) -> None:
    site = served.template.site
    site.clones_per_volume = 1
    site.save()
    assert button_of(as_alice, served.template) == "Get a workspace"
    workspace_create(by=UserFactory.create(), template=served.template)

    assert button_of(as_alice, served.template) == "No room left disabled"
    refused = as_alice.post(f"/templates/{served.template_id}/get/")
    sentence = "has 1 of the 1 clones that its volume can have."
    assert sentence in as_alice.get("/").text
    assert sentence in refused.text


def test_a_busy_server_says_since_when_and_behind_how_many(
    as_alice: Client, as_carol: Client, alice: User, served: Snapshot
) -> None:
    limit(served.template, 1)
    ask_to_flush(alice, served.template, key="running")
    name = served.template.site.perforce_server.name
    said = f"No slot at the Perforce server {name}."
    assert said in as_carol.get("/").text
    waiting = ask_to_flush(alice, served.template, key="waiting")
    since = timezone.now() - dt.timedelta(minutes=12)
    Step.objects.filter(pk=waiting.pk).update(queued_at=since)

    assert button_of(as_carol, served.template) == "Request: waits for a slot"
    said = f"No slot at the Perforce server {name} for 12 minutes: 1 before you."
    assert said in as_carol.get("/").text


def test_a_site_that_is_down_says_since_when(
    as_alice: Client, served: Snapshot
) -> None:
    SiteCapacity.objects.create(
        site=served.template.site,
        status_message="ONTAP could not be reached.",
        failing_since=timezone.now() - dt.timedelta(minutes=7),
    )

    assert button_of(as_alice, served.template) == "Request: site is down"
    said = "has not worked for 7 minutes: ONTAP could not be reached."
    assert said in as_alice.get("/").text
    mirror = MirrorFactory.create(template=served.template)
    MirroredSnapshotFactory.create(mirror=mirror, snapshot=served)
    form = as_alice.get(f"/templates/{served.template_id}/get/").text
    assert said in form
    assert "does not work at the moment" in form


def test_a_site_without_a_worker_says_so(as_alice: Client, snapshot: Snapshot) -> None:
    assert button_of(as_alice, snapshot.template) == "Request: site is down"
    assert "No worker runs for the site" in as_alice.get("/").text


def test_one_that_lies_ready_waits_for_nothing(
    as_alice: Client, as_carol: Client, alice: User, admin: User, served: Snapshot
) -> None:
    filled(make_pool(served.template, alice, size=1, purpose="development"))
    server = served.template.site.perforce_server
    perforce_server_pause(by=admin, server=server, reason="A checkpoint.")

    assert button_of(as_alice, served.template) == "Get a workspace"
    assert button_of(as_carol, served.template) == "Request: server is paused"
