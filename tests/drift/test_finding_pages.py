from __future__ import annotations

import pytest
from django.test import Client
from procrastinate.contrib.django.models import ProcrastinateJob

from provisioner.accounts.models import Team, User
from provisioner.audit_log.models import Event
from provisioner.drift.models import DriftCheck, Finding
from provisioner.drift.repairs import settle
from provisioner.workspaces.models import Workspace
from tests.support.browsers import browser_of
from tests.support.factories import UserFactory
from tests.support.findings import finding_about

ADDRESS = "/drift/"


@pytest.fixture
def finding(ready: Workspace) -> Finding:
    return finding_about(ready)


def test_shows_findings_and_how_many(as_admin: Client, finding: Finding) -> None:
    page = as_admin.get(ADDRESS).text
    assert "cy_&lt;i&gt;old" in page
    assert "It is left over." in page
    assert '<span class="tally">1<' in page
    assert '<span class="tally">1<' in as_admin.get("/workspaces/").text


def test_the_page_shows_what_could_not_be_checked(
    as_admin: Client, finding: Finding
) -> None:
    DriftCheck.objects.create(
        site=finding.site, system="perforce", status_message="No answer."
    )
    page = as_admin.get(ADDRESS).text
    assert "not checked yet" in page
    assert "No answer." in page


def test_a_check_without_findings_says_so(as_admin: Client) -> None:
    page = as_admin.get(ADDRESS).text
    assert "No finding is open." in page
    assert "tally" in page
    assert "(0)" not in page


def test_looking_now_queues_jobs(as_admin: Client, ready: Workspace) -> None:
    answer = as_admin.post("/drift/check/", follow=True)
    assert "Drift check queued" in answer.text
    jobs = ProcrastinateJob.objects.filter(task_name="check_site")
    assert sorted(jobs.values_list("queue_name", flat=True)) == ["perforce", "storage"]
    assert as_admin.get("/drift/check/").status_code == 405


def test_a_finding_shows_evidence_and_what_would_be_done(
    as_admin: Client, finding: Finding
) -> None:
    page = as_admin.get(f"{ADDRESS}{finding.pk}/").text
    assert "&lt;b&gt;x" in page
    assert "Unmount cy_&lt;i&gt;old&lt;/i&gt; from /old." in page
    assert "without force" in page
    assert ">Remove</button>" in page


def test_what_differs_is_shown_side_by_side(as_admin: Client, ready: Workspace) -> None:
    view = {"is": ["//d/<a>/... //c/..."], "was": ["//d/... //c/..."]}
    finding = finding_about(
        ready,
        kind=Finding.Kind.CLIENT_VIEW_DIFFERS,
        action=Finding.Action.FINISH,
        details={
            "fields": {"View": view},
            "lines_out": view["is"],
            "lines_in": view["was"],
        },
    )
    page = as_admin.get(f"{ADDRESS}{finding.pk}/").text
    assert 'data-label="Now"><code>//d/&lt;a&gt;/... //c/...</code>' in page
    assert "Remove from the View: //d/&lt;a&gt;/... //c/..." in page
    assert ">Restore its View</button>" in page
    copy = finding_about(
        ready,
        kind=Finding.Kind.VOLUME_TAG_COPIED,
        subject="copy",
        details={"state": "online", "own": {"name": "cy_old", "state": "offline"}},
    )
    page = as_admin.get(f"{ADDRESS}{copy.pk}/").text
    assert "<code>copy</code></td>" in page
    assert ">Remove its tag</button>" in page
    assert "Remove its tag…" in as_admin.get(ADDRESS).text


def test_confirming_asks_once(as_admin: Client, admin: User, finding: Finding) -> None:
    address = f"{ADDRESS}{finding.pk}/"
    for _ in range(2):
        answer = as_admin.post(address, follow=True)
    assert "admin requested the repair" in answer.text
    job = ProcrastinateJob.objects.get(task_name="resolve_finding")
    assert (job.queue_name, job.args) == ("storage", {"finding_id": finding.pk})
    event = Event.objects.get(kind="drift_repair_requested")
    assert (event.actor, event.subject) == (admin, "hers")


def test_a_finding_without_an_action_has_no_button(
    as_admin: Client, ready: Workspace
) -> None:
    finding = finding_about(ready, action=Finding.Action.NONE)
    address = f"{ADDRESS}{finding.pk}/"
    shown = as_admin.get(address).text.partition("<main")[2].partition("</main")[0]
    assert "</form>" not in shown
    answer = as_admin.post(address)
    assert answer.status_code == 409
    assert "nothing that Cloneyard can safely do" in answer.text


def test_a_resolved_one_tells_how(
    as_admin: Client, admin: User, finding: Finding
) -> None:
    settle(finding, resolution="It was deleted.", by=admin)
    assert "It was deleted." in as_admin.get(f"{ADDRESS}?state=resolved").text
    page = as_admin.get(f"{ADDRESS}{finding.pk}/").text
    assert "Resolved" in page
    assert "by admin" in page
    assert as_admin.post(f"{ADDRESS}{finding.pk}/").status_code == 409


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("get", ADDRESS),
        ("post", "/drift/check/"),
        ("get", "/drift/{pk}/"),
        ("post", "/drift/{pk}/"),
    ],
)
def test_it_is_for_administrators(
    method: str, path: str, alice: User, carol: User, finding: Finding
) -> None:
    team = Team.objects.create(name="engine")
    User.objects.filter(pk=alice.pk).update(team=team)
    mate = UserFactory.create(username="bob", team=team)
    for user in (alice, mate, carol):
        answer = getattr(browser_of(user), method)(path.format(pk=finding.pk))
        assert answer.status_code == 403, user
    answer = getattr(browser_of(None), method)(path.format(pk=finding.pk))
    assert answer["Location"].startswith("/login/")
    finding.refresh_from_db()
    assert finding.asked_at is None
    assert not ProcrastinateJob.objects.filter(task_name="check_site").exists()
    # nor do others see in the menu that there is something
    assert "Drift" not in browser_of(alice).get("/").text
