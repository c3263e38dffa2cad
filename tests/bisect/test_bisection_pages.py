"""Pages of bisections: beginning one, following it, deciding, stopping."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from provisioner.accounts.models import User
from provisioner.bisect.models import Bisection
from provisioner.catalog.models import Snapshot
from provisioner.workspaces.models import Workspace
from tests.support.bisections import end_step, read
from tests.support.browsers import is_polling


@pytest.fixture
def started(as_alice: Client, snapshot: Snapshot) -> Bisection:
    """One of alice's, begun on the page; its first step waits for her verdict."""
    begin = reverse("bisection-create", args=[snapshot.template_id])
    answer = as_alice.post(begin, {"good": 100, "bad": 150, "command": ""})
    bisection = Bisection.objects.get()
    assert answer["Location"] == reverse("bisection-detail", args=[bisection.pk])
    read(bisection.pk)
    end_step(bisection)
    return bisection


def address(bisection: Bisection, name: str = "detail") -> str:
    return reverse(f"bisection-{name}", args=[bisection.pk])


def decide(browser: Client, bisection: Bisection, verdict: str) -> str:
    """Press a button of the step at hand; return the page that follows."""
    change = bisection.steps.get(verdict="").change
    answer = browser.post(
        address(bisection, "verdict"),
        {"change": change, "verdict": verdict},
        follow=True,
    )
    assert answer.status_code == 200
    return answer.text


def test_the_template_leads_to_the_form_and_the_list_to_what_was_begun(
    as_alice: Client, started: Bisection
) -> None:
    template = as_alice.get(reverse("template-detail", args=[started.template_id])).text
    begin = reverse("bisection-create", args=[started.template_id])
    assert f'href="{begin}"' in template
    assert "Find the first bad change" in as_alice.get(begin).text
    listed = as_alice.get(reverse("bisection-list")).text
    assert f'href="{address(started)}"' in listed


def test_the_form_says_which_bisections_are_running_already(
    as_alice: Client, started: Bisection, settings: Settings
) -> None:
    settings.BISECTIONS_PER_PERSON = 1
    begin = reverse("bisection-create", args=[started.template_id])
    page = as_alice.post(begin, {"good": 101, "bad": 150, "command": ""}).text
    assert f"at a time: {started.pk} of main (100 to 150). Stop one" in page
    assert 'value="101"' in page


def test_the_page_says_what_waits_and_where_it_lies(
    as_alice: Client, started: Bisection
) -> None:
    step = started.steps.get()
    page = as_alice.get(address(started)).text

    assert "Change 111 waits for a verdict." in page
    assert "bob: Title 111" in page
    assert str(step.workspace.path) in page
    assert "8; 3 more steps at most" in page
    part = as_alice.get(address(started), headers={"HX-Request": "true"}).text
    assert "<html" not in part
    assert 'hx-trigger="every 2s"' in part


def test_verdicts_lead_to_the_first_bad_change(
    as_alice: Client, started: Bisection
) -> None:
    assert "Change 105 is being tested" in decide(as_alice, started, "bad")
    decide(as_alice, started, "good")
    page = decide(as_alice, started, "good")

    assert "First bad change 111 by bob: Title 111" in page
    assert not is_polling(page), "it does not move any more"
    assert page.count("alice said so.") == 3
    assert address(started, "verdict") not in page


def test_a_verdict_on_another_change_is_refused_in_words(
    as_alice: Client, started: Bisection
) -> None:
    for change in ("120", "x", ""):
        answer = as_alice.post(
            address(started, "verdict"),
            {"change": change, "verdict": "bad"},
            follow=True,
        )
        assert "is not the one being tested" in answer.text
    assert started.steps.get().verdict == ""


def test_stop_retires_the_clone(as_alice: Client, started: Bisection) -> None:
    page = as_alice.post(address(started, "stop"), follow=True).text
    assert "alice stopped it." in page
    assert started.steps.get().workspace.state == Workspace.State.RETIRING


def test_what_makes_no_sense_stays_on_the_form(
    as_alice: Client, snapshot: Snapshot
) -> None:
    begin = reverse("bisection-create", args=[snapshot.template_id])
    refused = as_alice.post(begin, {"good": 9, "bad": 1})
    assert refused.status_code == 409
    assert "Give a change later than the good one." in refused.text
    assert as_alice.post(begin, {"good": "x"}).status_code == 422
    assert not Bisection.objects.exists()


def test_others_see_or_decide_nothing(
    as_carol: Client, as_admin: Client, started: Bisection, alice: User
) -> None:
    assert as_carol.get(address(started)).status_code == 404
    assert as_carol.post(address(started, "stop")).status_code == 404
    assert address(started) not in as_carol.get(reverse("bisection-list")).text
    assert address(started, "verdict") in as_admin.get(address(started)).text
