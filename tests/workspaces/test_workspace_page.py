from __future__ import annotations

import datetime as dt

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot
from provisioner.engine import states as engine_states
from provisioner.engine.models import Operation, Step
from provisioner.lib import clocks
from provisioner.sites.models import SiteCapacity
from provisioner.web.http import digest
from provisioner.workspaces.models import Workspace
from tests.support.browsers import browser_of, is_polling
from tests.support.requests import workspace_create

HTMX = {"HX-Request": "true"}


def address_of(workspace: Workspace) -> str:
    return f"/workspaces/{workspace.pk}/"


def step_of(workspace: Workspace, name: str) -> Step:
    return Step.objects.get(operation__subject__workspace=workspace, name=name)


@pytest.fixture
def flushing(workspace: Workspace) -> Step:
    """The flush of a workspace that is being made, under way."""
    step = step_of(workspace, "flush")
    engine_states.queue_step(step, job_id=None)
    engine_states.start_step(step)
    engine_states.record_progress(
        step, {"done": 1200, "total": 3612, "unit": "files", "text": "90 a second"}
    )
    return step


def test_a_ready_one_says_how_to_start(as_alice: Client, ready: Workspace) -> None:
    page = as_alice.get(address_of(ready)).text
    line = f"cd {ready.path} &amp;&amp; export P4CONFIG=.p4config &amp;&amp; p4 login"
    assert f"<code>{line}" in page
    assert f'data-copy="{line}' in page
    assert ready.client_name in page
    once = f"<code>cd {ready.path} "
    assert page.replace(f'data-copy="{line}', "").count(str(ready.path)) == 1, once


def test_a_ready_one_says_what_it_contains(as_alice: Client, ready: Workspace) -> None:
    page = as_alice.get(address_of(ready)).text
    assert ": 1 file, digest" in page
    assert ready.snapshot.have_digest in page
    assert "that was not requested" in page


def test_a_ready_one_says_what_changed_and_what_it_takes(
    as_alice: Client, ready: Workspace
) -> None:
    now = timezone.now()
    assert "Last shelved" not in as_alice.get(address_of(ready)).text, "nobody looked"
    seen = {"shelved": {"at": (now - dt.timedelta(hours=3)).isoformat(), "detail": ""}}
    Workspace.objects.update(
        activity={"opened": {"count": 3}, "submitted": {"at": None}, **seen},
        activity_seen_at=now,
        unique_bytes=3 * 2**30,
    )

    page = " ".join(as_alice.get(address_of(ready)).text.split())

    assert "3 files are opened, as of <time" in page
    assert "Last shelved change <time" in page
    assert "submitted change" not in page
    assert "3 GiB</data> of its own" in page


def test_one_that_runs_out_of_inodes_says_so(
    as_alice: Client, ready: Workspace
) -> None:
    # A volume of 4 MiB may have 1,024 files, whatever its limit is now.
    volume = {"actual_size_bytes": 4 << 20, "used_bytes": 1 << 20, "unique_bytes": 1}
    for used, says in ((500, False), (1000, True)):
        Workspace.objects.update(used_inodes=used, max_inodes=1000, **volume)

        page = as_alice.get(address_of(ready)).text

        sentence = "97 % full: 1,000 of the 1,024 files that its size allows."
        assert (sentence in page) is says


def test_what_reconcile_found_is_shown(as_alice: Client, ready: Workspace) -> None:
    found = {"action": "edit", "depot_file": "//d/x", "path": "/mnt/w-hers/src/x.h"}
    Workspace.objects.update(reconcile={"count": 1, "findings": [found]})
    page = as_alice.get(address_of(ready)).text
    assert "found 1 file" in page
    assert "/mnt/w-hers/src/x.h" in page


def test_editors_are_offered_where_the_site_names_a_host(
    as_alice: Client, ready: Workspace
) -> None:
    assert "vscode:" not in as_alice.get(address_of(ready)).text
    ready.site.ssh_host = "work.example"
    ready.site.save()

    page = as_alice.get(address_of(ready)).text

    address = f"vscode://vscode-remote/ssh-remote+work.example{ready.path}"
    assert f'href="{address}"' in page
    port = ready.site.perforce_server.p4port
    assert f"p4v -p {port} -u alice -c {ready.client_name}" in page


def test_its_header_has_what_is_done_with_it(
    as_alice: Client, as_admin: Client, alice: User, ready: Workspace
) -> None:
    header = as_alice.get(address_of(ready)).text.partition("workspace-header")[2]
    header = header.partition("</header>")[0]

    for verb in ("extend", "share", "retire"):
        assert f'href="/workspaces/{ready.pk}/{verb}/"' in header
    assert "main</a> at change" in header
    assert "lease ends" in header


def test_the_tab_follows_the_state_while_htmx_polls(
    as_alice: Client, workspace: Workspace, flushing: Step
) -> None:
    state = "hers: Being created, 0 of 8"
    page = as_alice.get(address_of(workspace)).text
    assert f"<title>{state}" in page
    assert 'href="/static/img/mark-running.svg"' in page
    assert "data-notify hidden" in page

    part = as_alice.get(address_of(workspace), headers=HTMX).text
    assert f"\n<title>{state}" in part, "htmx takes it from the root of an answer"
    assert 'id="favicon"' in part


@pytest.mark.parametrize("state", ["ready", "failed"])
def test_the_tab_says_how_it_came_out(
    as_alice: Client, request: pytest.FixtureRequest, state: str
) -> None:
    workspace: Workspace = request.getfixturevalue(state)

    settled = as_alice.get(address_of(workspace), headers=HTMX).text

    assert f"<title>hers: {state.capitalize()}" in settled
    assert f"mark-{state}.svg" in settled
    assert f'data-settled="hers: {state.capitalize()}."' in settled


def test_a_build_only_one_has_no_perforce_commands(
    as_alice: Client, alice: User, snapshot: Snapshot
) -> None:
    workspace = workspace_create(by=alice, template=snapshot.template, purpose="build")
    Workspace.objects.update(state="ready", ready_at=timezone.now())
    page = as_alice.get(address_of(workspace)).text
    assert "<code>cd " in page
    assert "P4CONFIG" not in page
    assert "P4V" not in page
    assert "Have list" not in page


def test_one_that_moves_shows_its_steps_and_polls(
    as_alice: Client, workspace: Workspace, flushing: Step
) -> None:
    page = as_alice.get(address_of(workspace)).text
    assert 'hx-trigger="every 1s"' in page
    assert '<ol class="steps">' in page
    assert "Clone the snapshot" in page
    assert 'aria-current="step"' in page
    assert '<progress max="3612" value="1200"' in page
    assert "1,200 of 3,612 files, 90 a second" in page
    assert '<noscript><meta http-equiv="refresh"' in page


def test_a_retry_shows_its_reason_and_time(
    as_alice: Client, workspace: Workspace, flushing: Step
) -> None:
    retry_at = timezone.now() + dt.timedelta(seconds=40)
    engine_states.retry_step_later(
        flushing, code="busy", message="Perforce is busy.", retry_at=retry_at
    )
    page = as_alice.get(address_of(workspace)).text
    assert "Will be retried" in page
    assert "Perforce is busy." in page
    assert retry_at.isoformat() in page


def test_htmx_gets_the_progress_alone_while_it_moves(
    as_alice: Client, workspace: Workspace
) -> None:
    answer = as_alice.get(address_of(workspace), headers=HTMX)
    assert answer.text.lstrip().startswith('<section class="progress-card"')
    assert "HX-Retarget" not in answer
    assert "HX-Request" in answer["Vary"]


def test_a_screen_reader_hears_only_changes(
    as_alice: Client, workspace: Workspace, flushing: Step
) -> None:
    address = address_of(workspace)
    said = digest("Step 7 of 8: Flush to the change of the snapshot.")
    page = as_alice.get(address).text
    assert 'aria-live="polite"' in page
    assert f"?said={said}" in page
    same = as_alice.get(f"{address}?said={said}", headers=HTMX).text
    assert "#announcement" not in same
    news = as_alice.get(f"{address}?said=other", headers=HTMX).text
    assert "innerHTML:#announcement" in news


def test_htmx_gets_all_of_it_once_it_has_settled(
    as_alice: Client, ready: Workspace
) -> None:
    answer = as_alice.get(address_of(ready), headers=HTMX)
    assert answer["HX-Retarget"] == "#workspace"
    assert 'id="workspace"' in answer.text
    assert "every 1s" not in answer.text
    assert "innerHTML:#announcement" in answer.text
    assert "<html" not in answer.text


def test_a_failed_one_says_why_and_offers_to_retry(
    as_alice: Client, failed: Workspace
) -> None:
    page = as_alice.get(address_of(failed)).text
    assert "The aggregate is full." in page
    assert f'action="/workspaces/{failed.pk}/retry/"' in page
    assert "Not started" in page
    assert not is_polling(page)


def test_a_retirement_that_failed_before_it_deleted_says_why(
    as_alice: Client, refused: Workspace
) -> None:
    refused.operations.filter(state=Operation.State.REFUSED).update(
        state=Operation.State.FAILED,
        findings=None,
        status_message="The Perforce server cannot be reached.",
    )
    page = as_alice.get(address_of(refused)).text
    assert "It was not retired" in page
    assert "The Perforce server cannot be reached." in page
    assert "What was found" not in page


def test_a_refused_retirement_shows_what_it_found(
    as_alice: Client, refused: Workspace
) -> None:
    page = as_alice.get(address_of(refused)).text
    assert "It was not retired" in page
    assert "//depot/main/src/render.cpp" in page
    assert "Try &lt;b&gt;culling&lt;/b&gt;" in page


def test_a_retired_one_offers_nothing_more(
    as_alice: Client, retired: Workspace
) -> None:
    page = as_alice.get(address_of(retired)).text
    assert "Retired" in page
    assert "/retire/" not in page
    assert "Start working" not in page


def test_events_say_who_and_when(as_alice: Client, ready: Workspace) -> None:
    page = as_alice.get(address_of(ready)).text
    assert "Requested a clone of main at change 100." in page
    assert "by alice" in page
    assert "<time datetime=" in page


def test_an_administrator_sees_whose_it_is(as_admin: Client, ready: Workspace) -> None:
    assert "for alice" in as_admin.get(address_of(ready)).text


def test_a_stranger_finds_nothing(as_carol: Client, ready: Workspace) -> None:
    assert as_carol.get(address_of(ready)).status_code == 404
    assert as_carol.get(address_of(ready), headers=HTMX).status_code == 404


def test_nobody_is_sent_to_sign_in(as_nobody: Client, ready: Workspace) -> None:
    assert as_nobody.get(address_of(ready))["Location"].startswith("/login/")


def test_a_post_is_refused(as_alice: Client, ready: Workspace) -> None:
    assert as_alice.post(address_of(ready)).status_code == 405


def test_its_story_takes_few_queries(
    alice: User, refused: Workspace, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    browser = browser_of(alice)
    # the session, its user, the workspace, its operations, their steps, the events,
    # what was rescued, what was transferred, whether there is something newer,
    # its siblings that alice sees, how many there are, whom it is shared with, its
    # copies, those it can be restored from, what it was restored from, whether its
    # site works, and maintenance
    with django_assert_num_queries(21):
        browser.get(address_of(refused))


def test_a_workspace_at_a_lost_site_says_so(alice: User, ready: Workspace) -> None:
    browser = browser_of(alice)
    lost = "may be lost"
    SiteCapacity.objects.update_or_create(
        site=ready.site, defaults={"status_message": "No route."}
    )
    assert lost not in browser.get(address_of(ready)).text

    SiteCapacity.objects.update(failing_since=clocks.database_now())

    shown = browser.get(address_of(ready)).text
    assert lost in shown
    assert "No route." in shown
