from __future__ import annotations

import datetime as dt

from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot
from provisioner.engine.models import Operation
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.states import set_workspace_state
from tests.support.browsers import confirm, is_polling, post, table
from tests.support.factories import SnapshotFactory, TemplateFactory
from tests.support.requests import workspace_create
from tests.support.workspaces import end, running_of, states_of


def test_shows_what_each_of_mine_is(as_alice: Client, ready: Workspace) -> None:
    page = as_alice.get("/").text
    assert "hers" in page
    assert "Ready" in page
    assert f'<span class="change">{ready.snapshot.change}</span>' in page
    assert str(ready.path) in page


def test_shows_nobody_elses(
    as_carol: Client, as_admin: Client, ready: Workspace
) -> None:
    assert "hers" not in as_carol.get("/").text
    assert "hers" not in as_admin.get("/").text


def test_nobody_is_sent_to_sign_in(as_nobody: Client) -> None:
    assert as_nobody.get("/")["Location"] == "/login/?next=/"


def test_many_are_chosen_retired_and_found_by_their_owner(
    as_alice: Client, as_carol: Client, alice: User, ready: Workspace
) -> None:
    assert 'name="chosen"' not in as_alice.get("/").text, "one has its own page"
    other = workspace_create(by=alice, template=ready.template, name="other")
    page = as_alice.get("/?choose=page").text
    assert page.count('name="chosen"') == page.count(" checked>") == 2
    assert ">other<" not in as_alice.get("/?state=ready").text
    assert "No workspace matches" in as_alice.get("/?q=nowhere").text
    assert len(table(as_alice, "/?as=csv&q=hers")) == 1

    sent = {"do": "retire", "chosen": [ready.pk, other.pk]}
    assert as_carol.post("/", {**sent, "step": "sure"}).status_code == 422
    preview = post(as_alice, "/", **sent)
    said = "Provisioning stops, and it is purged."
    assert said in preview.content.decode()
    confirm(as_alice, preview, "/")

    assert states_of(ready, other) == ["retiring", "retiring"]


def test_without_workspaces_it_offers_templates(
    as_alice: Client, snapshot: Snapshot
) -> None:
    page = as_alice.get("/").text
    assert "You have no workspace yet" in page
    assert f"/templates/{snapshot.template_id}/get/" in page
    assert 'name="request_key"' in page


def test_without_uid_it_says_so_and_offers_no_button(
    as_newcomer: Client, snapshot: Snapshot
) -> None:
    page = as_newcomer.get("/").text
    assert "has no uid and gid yet" in page
    assert "request_key" not in page


def test_templates_with_a_snapshot_come_first(
    as_alice: Client, snapshot: Snapshot
) -> None:
    TemplateFactory.create(site=snapshot.template.site, name="a-new-one")
    page = as_alice.get("/").text
    assert page.index(">main<") < page.index(">a-new-one<")


def test_it_polls_while_something_moves_and_no_longer(
    as_alice: Client, workspace: Workspace
) -> None:
    assert 'hx-trigger="every 2s"' in as_alice.get("/").text
    end(running_of(workspace), Operation.State.SUCCEEDED)
    set_workspace_state(workspace, Workspace.State.READY)
    assert not is_polling(as_alice.get("/").text)


def test_htmx_gets_the_list_alone(as_alice: Client, workspace: Workspace) -> None:
    answer = as_alice.get("/", headers={"HX-Request": "true"})
    assert answer.text.lstrip().startswith('<div id="workspaces"')
    assert "HX-Request" in answer["Vary"]


def test_more_workspaces_take_no_more_queries(
    as_alice: Client,
    alice: User,
    snapshot: Snapshot,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    for number in range(5):
        SnapshotFactory.create(
            template=TemplateFactory.create(site=snapshot.template.site)
        )
        workspace_create(by=alice, template=snapshot.template, name=f"w-{number}")
    # the session, its user, what was used, which templates there are, these, their
    # snapshots, home sites, their sites, the clock, clones, volumes, rules, steps at
    # Perforce, the clock, workers, mirrors, pools, freshness, usual times, what others
    # share, how many workspaces there are, which the page shows, these, policies,
    # maintenance, saved views
    with django_assert_num_queries(25):
        as_alice.get("/")


def test_retired_ones_have_their_own_page(
    as_alice: Client, as_carol: Client, retired: Workspace
) -> None:
    assert "hers" not in as_alice.get("/").text
    assert "hers" in as_alice.get("/retired/").text
    assert "hers" not in as_carol.get("/retired/").text
    assert as_alice.post("/retired/").status_code == 405


def test_a_template_says_how_long_a_workspace_of_it_takes(
    as_alice: Client, workspace: Workspace
) -> None:
    assert "ready in about" not in as_alice.get("/").text
    now = timezone.now()
    Workspace.objects.update(created_at=now - dt.timedelta(seconds=21), ready_at=now)

    assert "ready in about 25 s" in as_alice.get("/").text
    assert "ready in about 25 s" in as_alice.get("/templates/").text
