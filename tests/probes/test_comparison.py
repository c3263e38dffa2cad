"""Moments, and two periods of a server compared: pages, CSV, API."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from provisioner.accounts.mails import NO_MAIL_SERVER
from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.lib import clocks
from provisioner.lib.comparisons import Outcome
from provisioner.lib.refusals import InvalidRequest
from provisioner.probes.actions import moment_mark
from provisioner.probes.comparing import compare_periods
from provisioner.probes.models import Moment, ProbeRun, ProbeTime, ProcessCount
from provisioner.server_log.models import LogSum, ServerLog
from provisioner.sites.models import PerforceServer
from tests.support.factories import PerforceServerFactory

pytestmark = pytest.mark.django_db

DAY = dt.timedelta(days=1)
ZERO = (
    *("failed", "over_30s", "over_60s", "over_120s", "cpu_ms", "wait_ms", "held_ms"),
    *("files_sent", "sent_mb", "rows_scanned", "most_rows"),
)


@pytest.fixture
def moment(admin: User) -> Moment:
    """A server that a new disk made faster, at twice the changes a day."""
    server = PerforceServerFactory.create(name="commit")
    middle = clocks.database_now() - 10 * DAY
    measured(server, begin=middle - 10 * DAY, seconds=329.0, changes_a_day=100)
    measured(server, begin=middle, seconds=64.0, changes_a_day=200)
    return moment_mark(by=admin, server=server, label="NVMe", at=middle, note="db.*")


def measured(
    server: PerforceServer, *, begin: dt.datetime, seconds: float, changes_a_day: int
) -> None:
    """Eight rounds a day for ten days, which differ by a little."""
    for number in range(80):
        at = begin + number * DAY / 8
        took = seconds + (-1, 1)[(number + number // 8) % 2]
        run = ProbeRun.objects.create(
            server=server,
            at=at,
            lapse_seconds=took,
            change=1000 + changes_a_day * number // 8,
        )
        ProbeTime.objects.create(run=run, command="dirs //*", seconds=took)
        ProcessCount.objects.create(server=server, at=at, processes=number % 5)


def test_what_helped_is_said_to_be_better(moment: Moment, admin: User) -> None:
    report = compare_periods(by=admin, moment=moment, days=10)

    lapse, dirs = report.measures
    assert (lapse.name, dirs.name) == ("First to last", "dirs //*")
    found = dirs.comparison
    assert found.outcome == Outcome.BETTER
    assert (found.before.number, found.after.number) == (80, 80)
    assert dirs.share_text == "80.5 %"
    assert report.work is not None
    assert report.work == pytest.approx((100, 200), rel=0.02)
    assert found.adjusted == pytest.approx(0.903, abs=0.003)
    assert "100 changes a day before, 200 after" in report.work_text
    other = compare_periods(by=admin, moment=moment, days=10, what="processes")
    [running] = other.measures
    assert running.comparison.outcome == Outcome.UNDECIDED


def test_a_period_with_nothing_in_it_is_said(moment: Moment, admin: User) -> None:
    long_ago = moment.at - 100 * DAY
    report = compare_periods(
        by=admin,
        moment=moment,
        before_since=long_ago,
        before_until=long_ago + 10 * DAY,
    )
    reasons = {measure.comparison.reason for measure in report.measures}
    assert reasons == {"Nothing was measured in the period before."}
    assert report.work is None


def test_commands_of_the_log_are_compared_hour_by_hour(
    moment: Moment, admin: User
) -> None:
    log = ServerLog.objects.create(server=moment.server, path="/log")
    for hour in range(-240, 240, 8):
        commands, each_ms = (20, 1000) if hour >= 0 else (10, 4000)
        for span, name, number, took in (
            ("hour", "user-sync", commands, commands * each_ms + hour),
            ("day", "user-sync", commands, 1),
            ("hour", "user-verify", 1, 1),
        ):
            LogSum.objects.create(
                log=log,
                span=span,
                by="command",
                at=moment.at + hour * dt.timedelta(hours=1),
                name=name,
                commands=number,
                lapse_ms=took,
                longest_ms=took,
                origin="people",
                **dict.fromkeys(ZERO, 0),
            )

    report = compare_periods(by=admin, moment=moment, days=10, what="log")

    sync, verify = report.measures
    assert (sync.name, verify.name) == ("user-sync", "user-verify")
    assert sync.comparison.outcome == Outcome.BETTER
    assert sync.comparison.share == pytest.approx(0.75, abs=0.01)
    assert sync.comparison.before.average == pytest.approx(4.0, abs=0.02)
    assert report.work == pytest.approx((33, 63), abs=0.5)
    assert sync.comparison.adjusted == pytest.approx(0.869, abs=0.002)


def test_a_moment_of_another_server_is_refused(moment: Moment, admin: User) -> None:
    other = PerforceServerFactory.create()
    with pytest.raises(InvalidRequest, match="NVMe was marked at commit") as refusal:
        compare_periods(by=admin, moment=moment, server=other)
    assert refusal.value.field == "server"
    same = compare_periods(by=admin, moment=moment, server=moment.server, days=10)
    assert same.server == moment.server


@pytest.mark.parametrize(
    ("given", "field", "says"),
    [
        ({}, "before_since", "Choose a moment, or give this time."),
        ({"days": 0}, "days", "Choose 1 to 180 days."),
        ({"what": "weather"}, "what", "Choose one of probe, processes, log."),
    ],
)
def test_what_is_missing_is_said_at_its_place(
    given: dict[str, object], field: str, says: str, moment: Moment, admin: User
) -> None:
    if "what" in given:
        given["moment"] = moment
    with pytest.raises(InvalidRequest) as refusal:
        compare_periods(by=admin, **given)  # type: ignore[arg-type]  # wrong on purpose
    assert (refusal.value.field, refusal.value.message) == (field, says)


@pytest.mark.parametrize(
    ("hours", "field", "says"),
    [
        ((0, -1, 5, 6), "before_until", "ends before it begins"),
        ((0, 1, 6, 5), "after_until", "ends before it begins"),
        ((0, 5, 4, 6), "after_since", "The periods overlap."),
        ((0, 1, 24 * 99, 24 * 100), "after_since", "has not begun yet"),
    ],
)
def test_periods_that_cannot_be_are_refused(
    hours: tuple[int, int, int, int], field: str, says: str, admin: User
) -> None:
    begin = clocks.database_now() - 20 * DAY
    first, second, third, fourth = (begin + dt.timedelta(hours=hour) for hour in hours)
    with pytest.raises(InvalidRequest, match=says) as refusal:
        compare_periods(
            by=admin,
            server=PerforceServerFactory.create(),
            before_since=first,
            before_until=second,
            after_since=third,
            after_until=fourth,
        )
    assert refusal.value.field == field


def test_a_report_is_a_page_and_a_csv(
    moment: Moment, admin: User, signed_in: Callable[[User], Client]
) -> None:
    browser, path = signed_in(admin), "/perforce/comparison/"
    assert "Choose what to compare" in browser.get(path).text
    asked = f"{path}?moment={moment.pk}&days=10"
    page = browser.get(asked).text
    for text in (
        "commit: NVMe",
        "80.5 %",
        "<strong>Better</strong>",
        "329.000 s",
        "64.000 s",
    ):
        assert text in page
    lines = browser.get(f"{asked}&as=csv").getvalue().decode().splitlines()
    assert lines[0].startswith("server,measure,unit,before_number,before_days,")
    assert lines[2].startswith("commit,dirs //*,s,80,")

    without = browser.get(f"{asked}&what=log").text
    assert (
        "Nothing was measured in either period. Read the log of the server" in without
    )

    refused = browser.get(f"{path}?server=commit")
    assert refused.status_code == 409
    assert "Choose a moment, or give this time." in refused.text
    wrong = browser.get(f"{path}?moment=x&days=1000")
    assert wrong.status_code == 422


def test_a_report_is_mailed_only_where_mail_is_sent(
    moment: Moment, as_admin: Client, settings: Any
) -> None:
    address = f"/perforce/comparison/?moment={moment.pk}&days=10"
    assert "Mail this report" in as_admin.get(address).text
    settings.EMAIL_BACKEND = NO_MAIL_SERVER

    page = as_admin.get(address).text

    assert "This report cannot be mailed. This installation sends no mail" in page
    assert "Mail this report" not in page
    assert ">Send<" not in page


def test_moments_are_marked_and_deleted_on_their_page(
    admin: User, signed_in: Callable[[User], Client]
) -> None:
    PerforceServerFactory.create(name="commit")
    browser, path = signed_in(admin), "/perforce/moments/"
    asked = {"server": "commit", "label": "Upgraded to 2025.2", "note": "<b>"}
    late = browser.post(path, {**asked, "at": "2999-01-01T00:00"})
    assert late.status_code == 409
    assert "This is yet to come." in late.text
    early = browser.post(path, {**asked, "at": "0001-01-01T00:00"})
    assert "Nothing is kept for longer than 13 months." in early.text
    assert "Upgraded to 2025.2" in early.text
    when = f"{clocks.database_now() - DAY:%Y-%m-%dT%H:%M}"
    assert browser.post(path, {**asked, "at": when}).status_code == 302
    assert "&lt;b&gt;" in browser.get(path).text

    moment = Moment.objects.get()
    assert browser.post(f"{path}{moment.pk}/delete/").status_code == 302
    assert not Moment.objects.exists()
    kinds = Event.objects.filter(kind__startswith="moment_").order_by("pk")
    assert [event.kind for event in kinds] == ["moment_marked", "moment_deleted"]


def test_the_api_marks_moments_and_compares(moment: Moment, admin: User) -> None:
    api = APIClient()
    api.force_authenticate(admin)
    at = clocks.database_now() - DAY
    body = {"server": "commit", "label": "New build farm", "at": at.isoformat()}
    made = api.post("/api/v1/moments", body, format="json")
    assert made.status_code == 201
    found = api.get("/api/v1/moments").json()["results"]
    assert [one["label"] for one in found] == ["New build farm", "NVMe"]
    assert api.delete(f"/api/v1/moments/{made.json()['id']}").status_code == 204

    path = f"/api/v1/comparison?moment={moment.pk}&days=10"
    _, dirs = api.get(path).json()["results"]
    assert (dirs["measure"], dirs["outcome"]) == ("dirs //*", "better")
    low, high = dirs["interval"]
    assert low <= dirs["variance"] <= high
    assert api.get("/api/v1/comparison?moment=99999").status_code == 400
    assert api.get("/api/v1/comparison?server=commit").json()["fields"].keys() == {
        "before_since"
    }
