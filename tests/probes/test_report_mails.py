"""Reports that are mailed to people: each once, and what became of it is said."""

from __future__ import annotations

import datetime as dt
import smtplib
from collections.abc import Callable
from typing import Any

import pytest
from django.core import mail as outbox
from django.core.mail.backends.locmem import EmailBackend
from django.test import Client
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.accounts.requested_mails import TRIED_FOR
from provisioner.audit_log.models import Event
from provisioner.insight.refusals import MailsNotSent
from provisioner.lib import clocks
from provisioner.lib.refusals import InvalidRequest, NotAllowed
from provisioner.probes.actions import moment_mark, report_mail
from provisioner.probes.comparing import Report, compare_periods
from provisioner.probes.models import ProbeRun, ReportMail
from provisioner.probes.sweeps import send_report_mail
from tests.support.factories import PerforceServerFactory

pytestmark = pytest.mark.django_db

HOUR = dt.timedelta(hours=1)


@pytest.fixture
def report(admin: User, alice: User, carol: User) -> Report:
    User.objects.filter(pk=alice.pk).update(email="alice@example.com")
    User.objects.filter(pk=carol.pk).update(email="")
    server, now = PerforceServerFactory.create(name="commit"), clocks.database_now()
    for hours, seconds in ((30, 329.0), (5, 64.0)):
        ProbeRun.objects.create(
            server=server, at=now - hours * HOUR, lapse_seconds=seconds, change=1
        )
    moment = moment_mark(by=admin, server=server, label="NVMe", at=now - 9 * HOUR)
    return compare_periods(by=admin, moment=moment)


def test_each_person_gets_the_numbers_once(report: Report, admin: User) -> None:
    asked = report_mail(by=admin, report=report, people="alice, carol alice")
    for mail in asked * 2:
        send_report_mail(mail.pk)

    [sent] = outbox.outbox
    assert sent.to == ["alice@example.com"]
    assert sent.subject == "Did it help? commit: NVMe"
    assert "not decided" in sent.body
    assert "Variance 80.5 %" in sent.body
    assert "n 1, average 329.000" in sent.body
    outcomes = {each.person.username: each.outcome for each in ReportMail.objects.all()}
    assert outcomes["alice"] == "Sent."
    assert outcomes["carol"].startswith("Not sent: carol has no mail address")
    assert Event.objects.filter(kind="report_mail_sent").count() == 1


@pytest.mark.parametrize(
    ("people", "said"),
    [
        (" ,", "Name 1 to 20 people"),
        ("alice nobody", "Nobody here has the username nobody."),
    ],
)
def test_whoever_is_not_known_stops_all(
    people: str, said: str, report: Report, admin: User
) -> None:
    with pytest.raises(InvalidRequest, match=said):
        report_mail(by=admin, report=report, people=people)
    assert not ReportMail.objects.exists()


def test_others_and_installations_without_mail_are_refused(
    report: Report, admin: User, alice: User, settings: Any
) -> None:
    with pytest.raises(NotAllowed):
        report_mail(by=alice, report=report, people="alice")
    settings.EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
    with pytest.raises(MailsNotSent):
        report_mail(by=admin, report=report, people="alice")


def test_a_mail_is_tried_for_a_day_without_an_answer_and_never_after_a_break(
    report: Report, admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_away(self: Any) -> bool:
        raise OSError("no route")

    def breaks(self: Any, messages: Any) -> int:
        raise smtplib.SMTPServerDisconnected("half-way")

    [mail] = report_mail(by=admin, report=report, people="alice")
    [other] = report_mail(by=admin, report=report, people="alice")
    long_ago = clocks.database_now() - TRIED_FOR - HOUR
    ReportMail.objects.filter(pk=other.pk).update(requested_at=long_ago)
    monkeypatch.setattr(EmailBackend, "open", is_away)
    for each in (mail, other):
        send_report_mail(each.pk)
    mail.refresh_from_db()
    other.refresh_from_db()
    assert mail.outcome == "Waits for the mail server."
    assert other.outcome == "Not sent: The mail server did not accept it."
    monkeypatch.undo()

    monkeypatch.setattr(EmailBackend, "send_messages", breaks)
    with pytest.raises(smtplib.SMTPServerDisconnected):
        send_report_mail(mail.pk)
    monkeypatch.undo()
    send_report_mail(mail.pk)
    mail.refresh_from_db()
    assert mail.outcome.startswith("Not known")
    assert not outbox.outbox


def test_the_page_mails_what_it_shows(
    report: Report, admin: User, signed_in: Callable[[User], Client]
) -> None:
    assert report.moment is not None
    browser = signed_in(admin)
    path = f"/perforce/comparison/?moment={report.moment.pk}"

    wrong = browser.post(path, {"people": "nobody"})
    sent = browser.post(path, {"people": "alice"}, follow=True)

    assert wrong.status_code == 409
    assert "Nobody here has the username nobody." in wrong.text
    assert "Did it help? commit: NVMe to alice. Waits" in sent.text


def test_the_api_mails_a_report_and_says_what_became_of_it(
    report: Report, api_as_admin: APIClient
) -> None:
    assert report.moment is not None
    asked = {"moment": report.moment.pk, "people": ["alice"]}

    answer = api_as_admin.post("/api/v1/report-mails", asked, format="json")

    assert answer.status_code == 202
    [listed] = api_as_admin.get("/api/v1/report-mails").json()["results"]
    assert listed == answer.json()["mails"][0]
    assert listed["person"] == "alice"
