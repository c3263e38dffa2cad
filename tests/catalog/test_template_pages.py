"""The list of templates and a template's page."""

from __future__ import annotations

import datetime as dt

from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.states import set_template_state
from provisioner.engine import states as engine_states
from provisioner.engine.models import Operation, Step
from provisioner.workspaces.models import Workspace
from tests.support.behind import known_to_be_behind
from tests.support.browsers import is_polling
from tests.support.factories import SnapshotFactory, TemplateFactory
from tests.support.workspaces import end

HTMX = {"HX-Request": "true"}


def address_of(template: Template) -> str:
    return f"/templates/{template.pk}/"


def test_the_list_shows_what_each_would_give(
    as_alice: Client, snapshot: Snapshot
) -> None:
    page = as_alice.get("/templates/").text
    assert '<span class="change">100</span>' in page
    assert "1 file" in page
    assert f'action="/templates/{snapshot.template_id}/get/"' in page


def test_the_empty_list_tells_whom_to_ask(as_alice: Client, as_admin: Client) -> None:
    assert "Once an administrator has defined" in as_alice.get("/templates/").text
    assert "/templates/new/" not in as_alice.get("/templates/").text
    assert "/templates/new/" in as_admin.get("/templates/").text


def test_the_list_takes_no_more_queries_for_more(
    as_alice: Client,
    snapshot: Snapshot,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    for _ in range(5):
        SnapshotFactory.create(
            template=TemplateFactory.create(site=snapshot.template.site)
        )
    known_to_be_behind(snapshot, "alice", "bob")
    # the session, its user, saved views, which are on the page, these, their snapshots,
    # which are watched, their changes, how long each takes, maintenance; and, of what
    # stands against each, sites, the clock, clones and volumes, rules, slots, the clock
    # again, workers, pools
    with django_assert_num_queries(20):
        as_alice.get("/templates/")


def test_the_list_acts_for_administrators_and_refuses_strangers(
    as_alice: Client, as_nobody: Client, snapshot: Snapshot
) -> None:
    sent = {"do": "build", "chosen": [snapshot.template_id], "step": "sure"}
    assert as_alice.post("/templates/", sent).status_code == 422
    assert not Operation.objects.exists()
    assert as_nobody.get("/templates/")["Location"].startswith("/login/")


def test_everybody_sees_how_it_is_defined_and_pinned(
    as_carol: Client, snapshot: Snapshot
) -> None:
    template = snapshot.template
    Snapshot.objects.update(remarks=["a and A differ only in case."])
    Template.objects.update(build_command="make all", build_environment={"CC": "clang"})
    page = as_carol.get(address_of(template)).text
    assert "//depot/main/... //template/..." in page
    assert "make all" in page
    assert snapshot.have_digest in page
    assert "a and A differ only in case." in page


def test_values_of_the_environment_are_for_administrators(
    as_carol: Client, as_admin: Client, template: Template
) -> None:
    Template.objects.update(build_environment={"UPLOAD_TOKEN": "hunter2"})
    page = as_carol.get(address_of(template)).text
    assert "UPLOAD_TOKEN" in page
    assert "hunter2" not in page
    assert "UPLOAD_TOKEN=hunter2" in as_admin.get(address_of(template)).text


def test_everybody_sees_the_environment_of_bisections(
    as_carol: Client, template: Template
) -> None:
    Template.objects.update(bisection_environment={"CC": "clang"})
    assert "CC=clang" in as_carol.get(address_of(template)).text


def test_only_administrators_are_offered_to_change_it(
    as_carol: Client, as_admin: Client, template: Template
) -> None:
    assert "/edit/" not in as_carol.get(address_of(template)).text
    assert "/build/" not in as_carol.get(address_of(template)).text
    page = as_admin.get(address_of(template)).text
    assert "/edit/" in page
    assert "/build/" in page


def test_many_actions_are_in_a_menu_with_what_ends_it_last(
    as_alice: Client, as_admin: Client, snapshot: Snapshot
) -> None:
    address = f"/templates/{snapshot.template_id}/"
    shown, _, rest = as_admin.get(address).text.partition('id="more-actions"')
    menu = rest.partition("</ul>")[0]
    assert "Build the newest change" in shown
    assert menu.index("Rename") < menu.index("Archive…") < menu.index("Delete…")
    assert 'id="more-actions"' not in as_alice.get(address).text  # she has two


def test_the_newest_snapshot_is_what_one_gets(
    as_alice: Client, snapshot: Snapshot, workspace: Workspace
) -> None:
    newer = SnapshotFactory.create(template=snapshot.template, change=300)
    Snapshot.objects.filter(pk=snapshot.pk).update(
        created_at=timezone.now() - dt.timedelta(days=1)
    )
    page = as_alice.get(address_of(snapshot.template)).text
    get_this, older = page.split('<span class="tag">Default</span>')
    assert f'<span class="change">{newer.change}</span>' in get_this
    assert '<span class="change">100</span>' in older
    assert "1 workspace" in older


def test_a_build_under_way_is_live(
    as_alice: Client, template: Template, build: Operation
) -> None:
    page = as_alice.get(address_of(template)).text
    assert 'hx-trigger="every 1s"' in page
    assert "Sync the files" in page
    assert f"/operations/{build.pk}/log/" in page
    assert '<noscript><meta http-equiv="refresh"' in page


def test_htmx_gets_the_progress_then_all_of_it(
    as_alice: Client, template: Template, build: Operation
) -> None:
    moving = as_alice.get(address_of(template), headers=HTMX)
    assert 'id="template-progress"' in moving.text
    assert 'id="template"' not in moving.text
    assert "HX-Request" in moving["Vary"]
    end(build, Operation.State.SUCCEEDED)
    template.refresh_from_db()
    set_template_state(template, Template.State.READY)
    settled = as_alice.get(address_of(template), headers=HTMX)
    assert settled["HX-Retarget"] == "#template"
    assert not is_polling(settled.text)


def test_a_poll_asks_for_what_it_shows_alone(
    as_alice: Client,
    template: Template,
    build: Operation,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    # the session, its user, operations, the template, steps of the newest
    with django_assert_num_queries(5):
        as_alice.get(address_of(template), headers=HTMX)


def test_a_build_is_stopped_once_that_is_confirmed(
    as_admin: Client, as_alice: Client, template: Template, build: Operation
) -> None:
    address = f"{address_of(template)}build/stop/"
    assert address in as_admin.get(address_of(template)).text
    assert address not in as_alice.get(address_of(template)).text
    assert "This build publishes nothing" in as_admin.get(address).text
    build.refresh_from_db()
    assert build.state == Operation.State.RUNNING

    page = as_admin.post(address, follow=True).text

    assert "The build was stopped." in page
    assert "admin stopped the build." in page
    assert as_admin.post(address).status_code == 409


def test_a_failed_build_says_why_and_where_its_log_is(
    as_alice: Client, template: Template, build: Operation
) -> None:
    step = Step.objects.get(operation=build, name="volume")
    engine_states.start_step(step)
    engine_states.fail_step(step, code="x", message="No.")
    end(build, Operation.State.FAILED, code="build_failed", message="Exit code 2.")
    template.refresh_from_db()
    set_template_state(
        template, Template.State.FAILED, code="build_failed", message="Exit code 2."
    )
    page = as_alice.get(address_of(template)).text
    assert "Exit code 2." in page
    assert f"/operations/{build.pk}/log/" in page


def test_a_template_nobody_built_says_so(as_alice: Client, template: Template) -> None:
    page = as_alice.get(address_of(template)).text
    assert "Never built." in page
    assert "Nothing published yet." in page


def test_an_unknown_one_is_not_found(as_alice: Client) -> None:
    assert as_alice.get("/templates/999999/").status_code == 404


def test_the_page_refuses_a_post_and_nobody(
    as_alice: Client, as_nobody: Client, template: Template
) -> None:
    assert as_alice.post(address_of(template)).status_code == 405
    assert as_nobody.get(address_of(template))["Location"].startswith("/login/")


def test_older_snapshots_are_a_click_away(
    as_carol: Client, admin: User, snapshot: Snapshot
) -> None:
    template = snapshot.template
    for number in range(1, 17):
        SnapshotFactory.create(template=template, change=snapshot.change + number)
    newer = Snapshot.objects.exclude(pk=snapshot.pk)
    newer.update(
        withdrawn_at=timezone.now(), withdrawn_by=admin, withdraw_reason="Broken."
    )

    shown = as_carol.get(address_of(template)).text
    everything = as_carol.get(f"{address_of(template)}?snapshots=all").text

    assert shown.count('<li class="snapshot"') == 11
    assert f'id="snapshot-{snapshot.pk}"' in shown, "new workspaces get the oldest"
    assert '<a href="?snapshots=all#snapshots">All 17 snapshots</a>' in shown
    assert everything.count('<li class="snapshot"') == 17
