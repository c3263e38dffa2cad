"""Probes: which commands, how long they take, gaps, weeks and peaks."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator
from html import unescape
from typing import Any

import pytest
from django.test import Client
from procrastinate.contrib.django.models import ProcrastinateJob
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.engine.models import SlotBudget, WorkerQueues
from provisioner.gateways import registry
from provisioner.insight.models import Process, ProcessReading
from provisioner.lib import clocks
from provisioner.lib.refusals import InvalidRequest
from provisioner.probes.actions import probe_plan_save
from provisioner.probes.commands import LONGEST, USUAL, read_commands
from provisioner.probes.models import (
    KEPT_FOR,
    ProbePlan,
    ProbeRun,
    ProbeTime,
    ProbeWeek,
    ProcessCount,
)
from provisioner.probes.peaks import Peak, baseline_of, peaks_of
from provisioner.probes.queries import (
    LAPSE,
    WEEKS_SHOWN,
    keep_weeks,
    monday_of,
    plan_of,
    weeks_of,
)
from provisioner.probes.reading import client_of, run_probe
from provisioner.probes.sweeps import (
    probe_server,
    sweep_old_probes,
    sweep_probes,
    sweep_process_counts,
)
from provisioner.sites.models import PerforceServer, Site
from tests.support.factories import (
    PerforceServerFactory,
    ProcessFactory,
    SiteFactory,
)
from tests.support.lab_perforce import LabServer, lab_server, workspace
from tests.support.workers import start_worker

pytestmark = pytest.mark.django_db

MONDAY = dt.datetime(2026, 11, 23, tzinfo=dt.UTC)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    directory = tmp_path_factory.mktemp("probes")
    with lab_server(directory) as server:
        workspace(server, directory, name="ws", depot="//depot").add({"f": "x\n"})
        yield server


@pytest.fixture
def server(lab: LabServer, settings: Any) -> Iterator[PerforceServer]:
    secrets = {"P4PASSWD": lab.password}
    settings.SITE_SECRET = lambda name, *, key: secrets[name]
    yield PerforceServerFactory.create(name="lab", p4port=f"127.0.0.1:{lab.port}")
    lab.faults()


@pytest.fixture
def site() -> Site:
    return SiteFactory.create()


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("", "Name at least one command."),
        ("sync //depot/a", "“sync” is not accepted: it may change something."),
        ("obliterate -y //depot/a", "“obliterate” is not accepted"),
        ("info\n-u admin info", "“-u” is not accepted"),
        ("counter x 1", "“counter” is not accepted"),
        ("client -i", "“client” is not accepted"),
        ("jobs -R", "it rebuilds the table of jobs"),
        ("jobs -lR", "it rebuilds the table of jobs"),
        ("files //...", "reads the whole depot"),
        ("files //...@now", "reads the whole depot"),
        ("fstat -T depotFile //....c#head", "reads the whole depot"),
        ("files //*/...", "reads the whole depot"),
        ('dirs "//depot/a', "a quotation mark too many or too few"),
        ("info \x1b[2J", "printable characters at most"),
        ("dirs //" + LONGEST * "a", f"{LONGEST} printable characters"),
        ("\n".join(f"describe -s {n}" for n in range(11)), "Name 10 commands at most."),
    ],
)
def test_commands_that_may_change_or_cost_too_much_are_refused(
    typed: str, says: str
) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        read_commands(typed, field="commands")
    assert says in refusal.value.sentence
    assert refusal.value.field == "commands"


def test_commands_are_read_as_people_type_them() -> None:
    typed = "p4 info\n\n  opened \ninfo\nsync -n //depot/a/...\nfiles -m 5 //...\n"
    assert read_commands(typed, field="c").splitlines() == [
        *("info", "opened", "sync -n //depot/a/...", "files -m 5 //..."),
    ]
    assert read_commands("\n".join(USUAL), field="c").splitlines() == list(USUAL)


def test_a_delay_at_the_server_comes_back_from_the_probe(
    lab: LabServer, server: PerforceServer
) -> None:
    """Within 5 % of what the lab waits, beside what each takes without a delay.

    A busy machine adds to both, so one good round of many is enough; that none is
    shorter than the delay holds for each.
    """
    delay = 1.0
    plan = plan_of(server)
    [usual] = run_probe(plan).times.filter(command="dirs //*")
    lab.faults({"command": "dirs", "latency_seconds": delay})

    for _ in range(25):
        run = run_probe(plan)
        times = {each.command: each.seconds for each in run.times.all()}
        took, others = times.pop("dirs //*"), sum(s or 0.0 for s in times.values())
        assert took is not None
        assert run.lapse_seconds is not None
        assert usual.seconds is not None
        assert took >= delay
        assert run.lapse_seconds >= took + others
        if took <= 1.05 * (delay + usual.seconds):
            break
    else:
        pytest.fail(f"{took} s for a delay of {delay} s")
    assert list(run.times.values_list("command", flat=True)) == list(USUAL)
    assert (run.gap, run.change, bool(run.host)) == ("", 1, True)
    spec = registry.perforce(server).clients.find(client_of(server))
    assert spec is not None
    assert spec.view == (f"//depot/{spec.name}/... //{spec.name}/...",)


def test_a_refused_command_is_an_error_of_that_command_alone(
    server: PerforceServer,
) -> None:
    run = run_probe(ProbePlan(server=server, commands="info\ndirs -Z //*"))
    info, dirs = run.times.all()
    assert info.seconds is not None
    assert (dirs.seconds, run.lapse_seconds, run.gap) == (None, None, "")
    assert "Invalid option" in dirs.error


@pytest.mark.parametrize(
    "fault",
    [
        {"command": "dirs", "drop": "before"},
        {"command": "dirs", "max_commands": 1},
        {"command": "dirs", "error": "server is paused"},
        {"command": "*", "drop": "before"},
    ],
)
def test_an_outage_is_a_gap_and_nothing_is_stored_by_halves(
    fault: dict[str, Any], lab: LabServer, server: PerforceServer
) -> None:
    lab.faults(fault)
    run = run_probe(ProbePlan(server=server, commands="info\ndirs //*"))
    assert run.gap
    assert (run.lapse_seconds, run.change, run.times.count()) == (None, None, 0)


def queued() -> list[str]:
    jobs = ProcrastinateJob.objects.filter(task_name="probe_server", status="todo")
    return list(jobs.values_list("queue_name", flat=True))


def test_rounds_run_on_hosts_of_the_site_unless_its_server_is_paused(
    site: Site, admin: User
) -> None:
    server = site.perforce_server
    sweep_probes(0)
    run = ProbeRun.objects.get()
    assert run.gap == f"No host worker is running at {site.name}."

    start_worker("desk7", site.host_queue)
    sweep_probes(0)
    assert queued() == [site.host_queue]
    sweep_probes(0)  # the first one waits still
    assert "busy" in ProbeRun.objects.latest("pk").gap
    assert queued() == [site.host_queue]

    ProcrastinateJob.objects.all().delete()
    SlotBudget.objects.create(
        server=server,
        paused_at=clocks.database_now(),
        paused_by=admin,
        paused_reason="moves",
    )
    sweep_probes(0)
    assert ProbeRun.objects.latest("pk").gap == "Paused: moves"
    SlotBudget.objects.all().delete()
    PerforceServer.objects.update(maintenance_windows="* * * * * 90")
    sweep_probes(0)
    assert "is in maintenance until" in ProbeRun.objects.latest("pk").gap
    probe_plan_save(by=admin, server=server, is_on=False)
    sweep_probes(0)
    assert (queued(), ProbeRun.objects.count()) == ([], 4)


def test_a_job_that_waited_too_long_is_a_gap(server: PerforceServer) -> None:
    due = clocks.database_now() - dt.timedelta(minutes=11)
    probe_server(server.pk, int(due.timestamp()))
    run = ProbeRun.objects.get()
    assert (run.gap, int(run.at.timestamp())) == (
        "The host worker was busy.",
        int(due.timestamp()),
    )


def test_a_host_worker_that_is_gone_does_not_hold_up_those_of_other_sites(
    site: Site,
) -> None:
    other = SiteFactory.create(name="z", perforce_server=site.perforce_server)
    start_worker("desk7", site.host_queue)
    sweep_probes(0)
    WorkerQueues.objects.all().delete()
    start_worker("desk8", other.host_queue)

    sweep_probes(0)

    # Two at one server would time each other, and the first would hold up the second.
    assert queued() == [other.host_queue]
    assert ProcrastinateJob.objects.get(status="todo").lock is not None
    assert not ProbeRun.objects.exists()
    sweep_probes(0)
    run = ProbeRun.objects.get()
    assert run.gap == f"All host workers at {other.name} were busy."


def test_a_job_that_waited_too_long_is_no_gap_where_another_host_ran_the_round(
    server: PerforceServer,
) -> None:
    due = clocks.database_now() - dt.timedelta(minutes=11)
    rounds(server, 1.0, begin=due + dt.timedelta(seconds=30))
    probe_server(server.pk, int(due.timestamp()))
    assert not ProbeRun.objects.exclude(gap="").exists()


def rounds(server: PerforceServer, *lapses: float, begin: dt.datetime) -> None:
    for number, lapse in enumerate(lapses):
        run = ProbeRun.objects.create(
            server=server,
            at=begin + dt.timedelta(minutes=15 * number),
            lapse_seconds=lapse,
            change=number,
        )
        ProbeTime.objects.create(run=run, command="opened", seconds=lapse / 2)


def test_weeks_are_those_of_rims_table() -> None:
    """Average 12.2, median 4.1, maximum 125: what the median alone would hide."""
    server = PerforceServerFactory.create()
    lapses = [1.0, 1.0, 1.0, 1.3, 1.6, 2.0, 4.1, 4.2, 4.2, 4.3, 4.4, 4.5, 125.0]
    rounds(server, *lapses, begin=MONDAY)
    ProbeRun.objects.create(server=server, at=MONDAY + dt.timedelta(days=1), gap="Off.")
    rounds(server, 9.0, begin=MONDAY - dt.timedelta(minutes=1))

    lapse, opened, before, _ = weeks_of([server], now=MONDAY + dt.timedelta(days=2))

    assert (lapse.begin, lapse.command) == (MONDAY.date(), LAPSE)
    assert lapse.average == pytest.approx(12.2)
    assert (lapse.median, lapse.maximum, lapse.minimum) == (4.1, 125.0, 1.0)
    assert (lapse.rounds, lapse.gaps, lapse.failed) == (13, 1, 0)
    assert (opened.command, opened.median, opened.gaps) == ("opened", 2.05, 1)
    assert (before.begin.isoformat(), before.average) == ("2026-11-16", 9.0)


def test_no_week_is_shown_in_part() -> None:
    """But the present one; on Friday the oldest lacked the days before Friday."""
    server = PerforceServerFactory.create()
    oldest = MONDAY - dt.timedelta(weeks=WEEKS_SHOWN - 1)
    rounds(server, 9.0, begin=oldest)
    rounds(server, 1.0, begin=oldest + dt.timedelta(days=5))
    rounds(server, 7.0, begin=oldest - dt.timedelta(minutes=1))

    lapse, _ = weeks_of([server], now=MONDAY + dt.timedelta(days=4))

    assert (lapse.begin, lapse.average) == (oldest.date(), 5.0)


def test_weeks_that_are_over_are_kept(server: PerforceServer) -> None:
    rounds(server, 9.0, 11.0, begin=MONDAY - dt.timedelta(days=3))
    rounds(server, 2.0, begin=MONDAY)
    now = MONDAY + dt.timedelta(days=1)
    asked = weeks_of([server], now=now)

    keep_weeks(now=now)
    keep_weeks(now=now)

    assert ProbeWeek.objects.count() == 2
    ProbeTime.objects.filter(run__at__lt=MONDAY).delete()
    kept = weeks_of([server], now=now)
    assert [(week.begin, week.command, week.median) for week in kept] == [
        (week.begin, week.command, week.median) for week in asked
    ]


def counts(*numbers: int) -> list[tuple[int, int]]:
    monday = int(MONDAY.timestamp())
    return [(monday + 300 * n, count) for n, count in enumerate(numbers)]


def test_a_peak_ends_when_the_baseline_is_back() -> None:
    found = counts(4, 4, 4, 20, 31, 9, 4, 4, 4, 12)
    assert baseline_of(found) == 4
    assert peaks_of(found) == [
        Peak(
            at=MONDAY + dt.timedelta(minutes=20),
            processes=31,
            took=dt.timedelta(minutes=10),
        ),
        Peak(at=MONDAY + dt.timedelta(minutes=45), processes=12, took=None),
    ]
    assert peaks_of([]) == []
    assert peaks_of(counts(1, 1, 3, 1)) == []  # three of one are no peak


def test_what_follows_a_peak_unseen_is_not_known() -> None:
    found = counts(4, 4, 4, 20, 4, 4)
    del found[4]
    found[4] = (found[4][0] + 3600, 4)
    assert [peak.took for peak in peaks_of(found)] == [None]


def test_running_commands_are_counted_where_they_were_just_read() -> None:
    now = clocks.database_now()
    fresh, stale, troubled = PerforceServerFactory.create_batch(3)
    for server, read_at, trouble in (
        (fresh, now, ""),
        (stale, now - dt.timedelta(minutes=9), ""),
        (troubled, now, "No answer."),
    ):
        ProcessReading.objects.create(server=server, read_at=read_at, trouble=trouble)
        ProcessFactory.create_batch(2, server=server)
    ProcessFactory.create(server=fresh, command="pull")
    ProcessFactory.create(server=fresh, state=Process.State.IDLE)

    sweep_process_counts(0)

    count = ProcessCount.objects.get()
    assert (count.server, count.processes) == (fresh, 2)


def test_old_rounds_go() -> None:
    server = PerforceServerFactory.create()
    old = clocks.database_now() - KEPT_FOR - dt.timedelta(days=1)
    for at in (old, clocks.database_now()):
        rounds(server, 1.0, begin=at)
        ProcessCount.objects.create(server=server, at=at, processes=1)
    sweep_old_probes(0)
    assert (ProbeTime.objects.count(), ProcessCount.objects.count()) == (1, 1)


def test_pages_and_csv_show_weeks_gaps_and_times(
    admin: User, signed_in: Callable[[User], Client]
) -> None:
    site = SiteFactory.create()
    now = clocks.database_now()
    rounds(site.perforce_server, 1.5, 2.5, begin=now - dt.timedelta(minutes=40))
    before = now - dt.timedelta(minutes=1)
    failed = ProbeRun.objects.create(server=site.perforce_server, at=before, change=3)
    ProbeTime.objects.create(run=failed, command="dirs //*", error="Too many rows.")
    ProbeRun.objects.create(server=site.perforce_server, at=now, gap="No answer.")
    ProcessCount.objects.create(server=site.perforce_server, at=now, processes=3)
    browser = signed_in(admin)

    page = browser.get("/perforce/probes/").text
    for text in (
        "2.000 s",
        "2.500 s",
        "No answer.",
        "Too many rows.",
        "There was none",
    ):
        assert text in page
    lines = browser.get("/perforce/probes/?as=csv&failed=true").getvalue().decode()
    assert "dirs //*,Too many rows.,," in lines
    assert "opened" not in lines


def test_each_number_of_a_week_leads_to_its_rows(
    admin: User, signed_in: Callable[[User], Client]
) -> None:
    server = SiteFactory.create().perforce_server
    monday = monday_of(clocks.database_now())
    rounds(server, 1.5, 2.5, begin=monday)
    other = PerforceServerFactory.create()
    rounds(other, 9.0, begin=monday)
    failed = ProbeRun.objects.create(server=server, at=monday, change=3)
    ProbeTime.objects.create(run=failed, command="opened", error="Too many rows.")
    ProbeRun.objects.create(server=server, at=monday, gap="In maintenance.")
    before = monday - dt.timedelta(hours=1)
    ProbeRun.objects.create(server=server, at=before, gap="Of the week before.")
    browser = signed_in(admin)

    def rows_behind(number: str, *, of: str) -> str:
        page = browser.get("/perforce/probes/").text
        rows = re.findall(r'<tr><th class="unbroken".*?</tr>', page)
        [row] = [each for each in rows if of in each and f"{monday:%-d %b}" in each]
        link = re.search(rf'data-label="{number}"><a href="([^"]*)"', row)
        assert link, (number, row)
        address = unescape(link[1]).split("#")[0]
        return browser.get(f"{address}&as=csv").getvalue().decode()

    slowest = rows_behind("Maximum", of=LAPSE).splitlines()
    assert ["2.5" in slowest[1], "1.5" in slowest[2], len(slowest)] == [True, True, 3]
    assert "1.5" in rows_behind("Minimum", of=LAPSE).splitlines()[1]
    assert len(rows_behind("Rounds", of="opened").splitlines()) == 1 + 2
    assert "Too many rows." in rows_behind("Errors", of="opened")
    assert len(rows_behind("Errors", of=LAPSE).splitlines()) == 1 + 1
    gaps = rows_behind("Gaps", of=LAPSE)
    assert "In maintenance." in gaps
    assert "Of the week before." not in gaps
    assert gaps == rows_behind("Gaps", of="opened")


def test_a_round_leads_to_its_commands(
    admin: User, signed_in: Callable[[User], Client]
) -> None:
    server = SiteFactory.create().perforce_server
    now = clocks.database_now()
    rounds(server, 1.5, 2.5, begin=now - dt.timedelta(hours=1))
    browser = signed_in(admin)
    page = browser.get("/perforce/probes/rounds/?sort=lapse").text
    link = re.search(r'<a href="(/perforce/probes/\?[^"]*)">1.500 s', page)
    assert link
    address = unescape(link[1]).split("#")[0]
    lines = browser.get(f"{address}&as=csv").getvalue().decode().splitlines()
    assert len(lines) == 2


def test_a_plan_is_changed_on_its_page(
    site: Site, admin: User, signed_in: Callable[[User], Client]
) -> None:
    path = f"/perforce/probes/{site.perforce_server_id}/"
    browser = signed_in(admin)
    refused = browser.post(path, {"is_on": "on", "commands": "info\nsubmit"})
    assert refused.status_code == 409
    assert "“submit” is not accepted" in refused.text
    assert "info\nsubmit" in refused.text
    assert not ProbePlan.objects.exists()

    assert browser.post(path, {"commands": "p4 info\r\nopened"}).status_code == 302
    plan = ProbePlan.objects.get()
    assert (plan.is_on, plan.lines) == (False, ["info", "opened"])
    assert Event.objects.filter(kind="probe_plan_changed").count() == 1
    assert "Switched off." in browser.get("/perforce/probes/").text


def test_the_api_tells_errors_from_what_was_measured(site: Site, admin: User) -> None:
    api = APIClient()
    api.force_authenticate(admin)
    rounds(site.perforce_server, 2.0, begin=clocks.database_now())
    ProbeTime.objects.create(
        run=ProbeRun.objects.get(), command="dirs //*", error="Too many rows."
    )
    for failed, command in (("true", "dirs //*"), ("false", "opened")):
        [time] = api.get(f"/api/v1/probes/times?failed={failed}").json()["results"]
        assert time["command"] == command


def test_the_api_has_plans_times_and_weeks(site: Site, admin: User) -> None:
    api = APIClient()
    api.force_authenticate(admin)
    server = site.perforce_server
    rounds(server, 2.0, begin=clocks.database_now())
    [plan] = api.get("/api/v1/probes").json()["results"]
    assert (plan["is_on"], plan["commands"]) == (True, list(USUAL))
    path = f"/api/v1/probes/{server.pk}"
    refused = api.patch(path, {"commands": "submit"}, format="json")
    assert (refused.status_code, refused.json()["fields"].keys()) == (400, {"commands"})
    changed = api.patch(path, {"commands": "info"}, format="json")
    assert (changed.status_code, changed.json()["commands"]) == (200, ["info"])

    times = f"/api/v1/probes/times?server={server.name}"
    [time] = api.get(times).json()["results"]
    assert (time["command"], time["seconds"], time["lapse_seconds"]) == (
        *("opened", 1.0, 2.0),
    )
    assert api.get(f"{times}&failed=true").json()["results"] == []
    ProbeRun.objects.create(server=server, at=clocks.database_now(), gap="Paused.")
    gaps = api.get("/api/v1/probes/rounds?outcome=gap").json()["results"]
    assert [each["gap"] for each in gaps] == ["Paused."]
    weeks = api.get("/api/v1/probes/weeks").json()["results"]
    assert [(week["command"], week["average"]) for week in weeks] == [
        (LAPSE, 2.0),
        ("opened", 1.0),
    ]
