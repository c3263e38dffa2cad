"""The administrator's overview: figures, plots as tables too, and who may see it."""

from __future__ import annotations

import datetime as dt
import re
from html import unescape

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from provisioner.accounts.models import Team, User
from provisioner.catalog.models import Snapshot
from provisioner.dashboard.queries import Space, installation
from provisioner.dashboard.spans import SpanForm, span_of
from provisioner.dashboard.weeks import two_weeks
from provisioner.engine.models import Operation, Step
from provisioner.engine.worker_pools import Pool
from provisioner.engine.workers import tell_clock, tell_queues
from provisioner.sites.actions.pausing import perforce_server_pause
from provisioner.sites.models import CapacityDay, SiteCapacity
from provisioner.sites.slots_overview import server_lines, servers_matching
from provisioner.workspaces.models import Workspace, WorkspaceOperation
from provisioner.workspaces.ready_times import ready_in
from tests.support.factories import UserFactory
from tests.support.requests import workspace_create

GIB = 2**30
MONTH = span_of(SpanForm({}))


def took(workspace: Workspace, *, seconds: float, days_ago: int = 0) -> None:
    """Date a workspace's provisioning: how many days ago it ended, and its duration."""
    ended_at = timezone.now() - dt.timedelta(days=days_ago)
    workspace.operations.update(
        state=Operation.State.SUCCEEDED,
        created_at=ended_at - dt.timedelta(seconds=seconds),
        ended_at=ended_at,
    )


@pytest.mark.parametrize(
    ("who", "status"), [("as_alice", 403), ("as_carol", 403), ("as_admin", 200)]
)
def test_it_is_for_administrators(
    who: str, status: int, request: pytest.FixtureRequest
) -> None:
    browser: Client = request.getfixturevalue(who)
    assert browser.get("/overview/").status_code == status


def test_an_empty_installation_has_an_overview_that_says_so(as_admin: Client) -> None:
    page = as_admin.get("/overview/").text

    assert "No worker is running" in page
    assert "No site has been measured yet" in page
    more = as_admin.get("/overview/?more=1").text
    assert "Nothing failed in the last 7 days" in more


def test_workspaces_are_counted_by_template_and_team(
    as_admin: Client, ready: Workspace, alice: User, admin: User
) -> None:
    alice.team = Team.objects.create(name="Rendering")
    alice.save()
    Workspace.objects.filter(pk=ready.pk).update(unique_bytes=3 * GIB)

    it = installation(admin, MONTH)
    page = as_admin.get("/overview/?more=1").text

    assert [(one.name, one.number, one.ready) for one in it.by_team] == [
        ("Rendering", 1, 1)
    ]
    assert [one.name for one in it.by_template] == ["main"]
    assert it.by_template[0].unique_bytes == 3 * GIB
    assert "3 GiB" in page


def test_charts_and_tables_come_once_the_page_is_there_or_alone(
    as_admin: Client, failed: Workspace
) -> None:
    Operation.objects.filter(pk=failed.operations.get().pk).update(
        ended_at=timezone.now()
    )
    first = as_admin.get("/overview/").text
    alone = as_admin.get("/overview/?more=1").text
    part = as_admin.get("/overview/?more=1", headers={"HX-Request": "true"}).text

    assert '<a href="?more=1">Charts, clones, failures' in first
    assert part.strip().startswith('<div id="more">')
    for there in ("charts", "by-template", "failures", "queues", "workers"):
        assert f'id="{there}"' not in first
        assert f'id="{there}"' in alone
        assert f'id="{there}"' in part
    assert f"Provision {failed.name}" in part
    for above in ("troubles", "limits", "savings", "space"):
        assert f'id="{above}"' in first
        assert f'id="{above}"' not in alone
        assert f'id="{above}"' not in part


def test_it_answers_in_the_order_of_what_matters(as_admin: Client) -> None:
    page = as_admin.get("/overview/").text
    order = re.findall(r'<h2 id="([\w-]+)"', page)
    assert order[:5] == ["troubles", "limits", "speed", "weeks", "savings"]


def test_what_is_wrong_is_said_with_where_to_look(
    as_admin: Client, failed: Workspace, admin: User
) -> None:
    Operation.objects.filter(pk=failed.operations.get().pk).update(
        ended_at=timezone.now()
    )
    server = failed.site.perforce_server
    perforce_server_pause(by=admin, server=server, reason="Disks.")

    text = as_admin.get("/overview/").text
    said = text[text.index('id="troubles"') :].partition("</section>")[0]

    for sentence, link in (
        (f"Perforce server {server} is paused: Disks.", "/perforce/"),
        ("1 workspace has failed.", "/workspaces/?state=failed"),
        ("1 operation failed in 24 hours.", "/operations/?state=failed"),
    ):
        assert f'<a href="{link}">{sentence}</a>' in said
    assert f"Site {failed.site} has not been measured lately" in said


@pytest.mark.parametrize(
    ("backend", "email", "said"),
    [
        ("dummy", "alice@example.com", "This installation sends no mail"),
        ("smtp", "", "1 owner of workspaces has no mail address and is not warned."),
        ("smtp", "alice@example.com", ""),
    ],
)
def test_who_gets_no_mail_is_said_wherever_one_is_promised(
    backend: str,
    email: str,
    said: str,
    ready: Workspace,
    as_admin: Client,
    as_alice: Client,
    settings: Settings,
) -> None:
    settings.EMAIL_BACKEND = f"django.core.mail.backends.{backend}.EmailBackend"
    User.objects.filter(username="alice").update(email=email)

    overview = as_admin.get("/overview/").text
    promises = (
        as_alice.get(f"/workspaces/{ready.pk}/").text,
        as_alice.get(f"/templates/{ready.template_id}/").text,
    )

    assert (said in overview) if said else ("mail" not in overview)
    for page in promises:
        assert ("No mail will be sent." in page) == bool(said)


def test_a_full_aggregate_is_foreseen_and_comes_before_quotas(
    as_admin: Client, ready: Workspace, alice: User
) -> None:
    alice.team = Team.objects.create(name="Rendering", max_workspaces=1)
    alice.save()
    site, today = ready.site, timezone.now().astimezone(dt.UTC).date()
    SiteCapacity.objects.create(
        site=site,
        aggregate_size_bytes=100 * GIB,
        aggregate_used_bytes=50 * GIB,
        aggregate_available_bytes=50 * GIB,
        measured_at=timezone.now(),
    )
    for ago in range(10):
        CapacityDay.objects.create(
            site=site,
            day=today - dt.timedelta(days=ago),
            size_bytes=100 * GIB,
            used_bytes=(50 - ago) * GIB,
            clones=1,
        )
    usable = 100 - site.free_percent

    limits = as_admin.get("/overview/").text.partition('id="limits"')[2]

    assert f"Full in {usable - 50} days at this rate" in limits
    assert limits.index("Space of the aggregate") < limits.index("team Rendering")
    assert "linear regression over daily samples of the last 28 days" in limits


def test_this_week_is_compared_with_the_one_before(
    admin: User, workspace: Workspace
) -> None:
    took(workspace, seconds=7)
    days = {
        1: [
            CapacityDay(day=timezone.now().date() - dt.timedelta(days=ago), clones=n)
            for ago, n in ((8, 3), (0, 5))
        ]
    }

    weeks = two_weeks(now=timezone.now(), days=days)

    changes = {change.title: change for change in weeks.changes}
    made = changes["Workspaces made"]
    assert (made.now_text, made.before_text, made.difference) == ("1", "0", "1 more")
    assert changes["Workspaces retired"].difference == "the same"
    assert changes["Clones"].difference == "2 more"
    assert changes["Space used"].now_text == "not measured"
    assert changes["Median time to ready"].now_text == "7.0 s"
    assert changes["Median time to ready"].difference == ""
    assert weeks.waits.p95_seconds == pytest.approx(7)


def test_retired_workspaces_are_no_clones(admin: User, retired: Workspace) -> None:
    assert installation(admin, MONTH).clones == 0


def test_sites_and_teams_near_a_limit_are_shown_but_not_every_person(
    as_admin: Client, ready: Workspace, alice: User
) -> None:
    alice.team = Team.objects.create(name="Rendering", max_workspaces=4)
    alice.max_workspaces = 1
    alice.save()

    limits = as_admin.get("/overview/").text.partition('id="limits"')[2]

    assert "Workspaces of team Rendering" in limits
    assert "25 %" in limits
    assert "Workspaces of alice" not in limits
    assert "Workspaces of alice" in as_admin.get("/limits/").text


def test_the_median_and_the_95th_percentile_of_a_day_are_shown(
    alice: User, snapshot: Snapshot
) -> None:
    for seconds in (2, 4, 6, 8, 30):
        workspace = Workspace.objects.create(
            name=f"w{seconds}",
            owner=alice,
            template=snapshot.template,
            snapshot=snapshot,
            site=snapshot.template.site,
            uid=20001,
            gid=20000,
        )
        Operation.objects.create(
            kind=WorkspaceOperation.PROVISION,
            subject=workspace.subject,
            requested_by=alice,
        )
        took(workspace, seconds=seconds, days_ago=1)

    now = timezone.now()
    found = ready_in(since=now - dt.timedelta(days=3), until=now, by_hour=False)

    [day] = found.values()
    assert day.number == 5
    assert day.p50_seconds == pytest.approx(6)
    assert day.p95_seconds == pytest.approx(8 + 0.8 * 22)


def test_failures_say_why_and_lead_to_their_steps(
    as_admin: Client, failed: Workspace
) -> None:
    operation = failed.operations.get()
    Operation.objects.filter(pk=operation.pk).update(status_message="No space <b>left")

    page = as_admin.get("/overview/?more=1").text

    assert f'href="/operations/{operation.pk}/"' in page
    assert "No space &lt;b&gt;left" in page


def test_a_queue_that_nobody_serves_is_said(
    as_admin: Client, workspace: Workspace
) -> None:
    queued = workspace.operations.get().steps.filter(state=Step.State.QUEUED)
    assert queued.exists()
    without = as_admin.get("/overview/").text
    assert "make worker</code>. 1 job waits" in without
    assert "which no worker serves" not in without, "that would be said twice"
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO procrastinate_workers (last_heartbeat) VALUES (NOW()) "
            "RETURNING id"
        )
        [worker_id] = cursor.fetchone()
    pool = Pool(queues=("of others",), slots=1)
    tell_queues(worker_id, pool=pool)

    page = as_admin.get("/overview/").text

    assert "which no worker serves" in page
    assert "No worker is running" not in page


def test_a_worker_whose_clock_is_off_is_named(as_admin: Client) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO procrastinate_workers (last_heartbeat) VALUES (NOW()) "
            "RETURNING id"
        )
        [worker_id] = cursor.fetchone()
    tell_queues(worker_id, pool=Pool(queues=None, slots=1))
    tell_clock(worker_id, ahead_seconds=-3600.0)

    page = unescape(as_admin.get("/overview/").text)

    assert "3,600 seconds behind the database's: its worker" in page


@pytest.mark.parametrize(
    ("state", "job_id", "running_and_waiting"),
    [
        (Step.State.RUNNING, 1, (1, 0)),
        (Step.State.QUEUED, 1, (1, 0)),
        (Step.State.QUEUED, None, (0, 1)),
        (Step.State.RETRYING, 1, (0, 0)),
    ],
)
def test_what_has_slots_or_waits_for_them_is_shown_as_for_its_server(
    admin: User,
    workspace: Workspace,
    state: Step.State,
    job_id: int | None,
    running_and_waiting: tuple[int, int],
) -> None:
    now = timezone.now()
    Step.objects.filter(operation__subject__workspace=workspace, name="flush").update(
        state=state,
        job_id=job_id,
        error_message="It failed.",
        queued_at=now - dt.timedelta(seconds=9),
        first_started_at=now - dt.timedelta(seconds=5),
        started_at=now,
    )

    [wait] = installation(admin, MONTH).perforce

    assert wait.server == workspace.site.perforce_server.name
    assert (wait.running, wait.waiting) == running_and_waiting
    [line] = server_lines(servers_matching(admin))
    assert (line.running, line.waiting) == running_and_waiting
    assert wait.p95_seconds == pytest.approx(4)


def test_a_step_that_was_queued_anew_says_nothing_of_how_long_others_wait(
    admin: User, workspace: Workspace
) -> None:
    now = timezone.now()
    Step.objects.filter(operation__subject__workspace=workspace, name="flush").update(
        state=Step.State.QUEUED,
        queued_at=now,
        first_started_at=now - dt.timedelta(seconds=5),
    )

    [wait] = installation(admin, MONTH).perforce

    assert (wait.running, wait.waiting, wait.p95_seconds) == (0, 1, None)


def test_what_sharing_saves_is_shown_apart() -> None:
    space = Space(
        capacity=SiteCapacity(
            aggregate_size_bytes=100 * GIB,
            aggregate_used_bytes=25 * GIB,
            logical_bytes=80 * GIB,
            saved_bytes=60 * GIB,
            saved_within_bytes=10 * GIB,
        )
    )

    assert space.physical_bytes == 20 * GIB
    assert space.saved_by_clones_bytes == 50 * GIB
    assert space.reduction == 4.0
    assert space.used_percent == 25


def test_what_ontap_does_not_say_is_not_made_up() -> None:
    space = Space(capacity=SiteCapacity(aggregate_size_bytes=0))

    assert space.physical_bytes is None
    assert space.saved_by_clones_bytes is None
    assert space.reduction is None
    assert space.used_percent is None


def test_its_queries_do_not_grow_with_what_there_is(
    admin: User, failed: Workspace, build: Operation
) -> None:
    with CaptureQueriesContext(connection) as before:
        installation(admin, MONTH)
    for number in range(3):
        UserFactory.create(team=Team.objects.create(name=f"t{number}"))
        workspace_create(by=UserFactory.create(), template=failed.template)
    Operation.objects.filter(pk=build.pk).update(
        state=Operation.State.FAILED, ended_at=timezone.now()
    )

    with CaptureQueriesContext(connection) as after:
        it = installation(admin, MONTH)

    assert it.clones == 4
    assert len(after) == len(before)
