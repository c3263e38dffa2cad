"""Which releases people should have, whom to ask, and one mail to each."""

from __future__ import annotations

import datetime as dt
import html
import re
import smtplib
from typing import Any

import pytest
from django.core import mail as outbox
from django.core.mail.backends.locmem import EmailBackend
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from provisioner.accounts.mails import NO_MAIL_SERVER
from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.gateways import registry
from provisioner.gateways.errors import Unreachable
from provisioner.insight import actions, overviews
from provisioner.insight.models import ProgramMail, ProgramRelease, ProgramUse
from provisioner.insight.releases import (
    NOT_AGAIN_FOR,
    outdated_of,
    people_to_ask,
)
from provisioner.insight.sweeps import send_program_mail
from provisioner.lib.refusals import InvalidRequest, NotAllowed
from provisioner.sites.models import PerforceServer
from tests.support.factories import PerforceServerFactory

pytestmark = pytest.mark.django_db


class Gateway:
    """A Perforce server that knows addresses, or does not answer."""

    is_there = True

    def email_of(self, user: str) -> str:
        if not self.is_there:
            raise Unreachable("No answer.", system="perforce", operation="users")
        return {"bob": ""}.get(user, "alice@example.com")


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> Gateway:
    made = Gateway()
    monkeypatch.setattr(registry, "perforce", lambda server: made)
    return made


def used(server: PerforceServer, user: str, program: str, release: str) -> ProgramUse:
    now = timezone.now()
    return ProgramUse.objects.create(
        server=server,
        program=program,
        release=release,
        user=user,
        first_seen_at=now,
        last_seen_at=now,
    )


@pytest.fixture
def server(admin: User) -> PerforceServer:
    """A server where alice and bob have old programs."""
    server: PerforceServer = PerforceServerFactory.create(name="commit")
    used(server, "alice", "p4", "2019.1")
    used(server, "alice", "P4V", "2024.10")
    used(server, "bob", "p4", "2022.2")
    used(server, "carol", "p4", "2024.2")
    used(server, "carol", "jam", "")
    actions.program_release_save(
        by=admin, server=server, program="p4", minimum="2020.1", recommended="2024.2"
    )
    return server


def test_old_programs_are_named_by_user_and_whether_they_still_work(
    server: PerforceServer,
) -> None:
    uses = ProgramUse.objects.values_list("user", "program", "release")
    found = outdated_of(uses, ProgramRelease.objects.all())

    said = {user: [(str(o), o.is_too_old) for o in old] for user, old in found.items()}
    assert said == {"alice": [("p4 2019.1", True)], "bob": [("p4 2022.2", False)]}


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        ({"program": " "}, "program"),
        ({"program": "p4", "minimum": "old"}, "minimum"),
        (
            {"program": "p4", "minimum": "2024.2", "recommended": "2024.1"},
            "recommended",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(
    wanted: dict[str, str], field: str, server: PerforceServer, admin: User
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        actions.program_release_save(by=admin, server=server, **wanted)

    assert refused.value.field == field
    assert ProgramRelease.objects.get().minimum == "2020.1"


def test_rows_are_changed_removed_and_recorded_once(
    server: PerforceServer, admin: User, alice: User
) -> None:
    for _ in range(2):
        actions.program_release_save(by=admin, server=server, program="p4")

    assert not ProgramRelease.objects.exists()
    assert Event.objects.filter(kind="program_release_changed").count() == 2
    with pytest.raises(NotAllowed):
        actions.program_release_save(by=alice, server=server, program="p4")


def test_each_gets_one_mail_and_none_again_for_a_month(
    server: PerforceServer, admin: User, gateway: Gateway, monkeypatch: Any
) -> None:
    asked = actions.program_mails_send(by=admin, server=server)
    assert [mail.p4_user for mail in asked] == ["alice", "bob"]
    for mail in asked * 2:
        send_program_mail(mail.pk)

    [sent] = outbox.outbox
    assert sent.to == ["alice@example.com"]
    assert "p4 2019.1: too old. Install 2024.2 or newer." in sent.body
    assert "has no mail address" in ProgramMail.objects.get(p4_user="bob").trouble
    assert Event.objects.filter(kind="program_mail_sent").count() == 1
    due = {each.user: each.is_due for each in people_to_ask(server)}
    assert due == {"alice": False, "bob": True}
    # It was asked for long before it could be sent: that is when the time begins.
    ProgramMail.objects.update(requested_at=timezone.now() - NOT_AGAIN_FOR)
    assert not people_to_ask(server)[0].is_due
    ProgramMail.objects.filter(claimed_at__isnull=False).update(
        claimed_at=timezone.now() - NOT_AGAIN_FOR
    )
    assert all(each.is_due for each in people_to_ask(server))


def test_an_address_that_two_share_gets_one_mail(
    server: PerforceServer, admin: User, gateway: Gateway
) -> None:
    used(server, "eve", "p4", "2018.1")
    for mail in actions.program_mails_send(by=admin, server=server):
        send_program_mail(mail.pk)

    assert len(outbox.outbox) == 1


def test_a_mail_is_tried_again_for_a_day_without_an_answer_and_never_after_a_break(
    server: PerforceServer,
    admin: User,
    gateway: Gateway,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mail, other = actions.program_mails_send(by=admin, server=server)
    gateway.is_there = False
    send_program_mail(mail.pk)
    mail.refresh_from_db()
    assert (mail.claimed_at, mail.trouble) == (None, "")
    day_ago = timezone.now() - dt.timedelta(days=1, minutes=1)
    ProgramMail.objects.filter(pk=other.pk).update(requested_at=day_ago)
    send_program_mail(other.pk)
    other.refresh_from_db()
    assert other.trouble.startswith("No mail address is known")

    gateway.is_there = True

    def breaks(self: Any, messages: Any) -> int:
        raise smtplib.SMTPServerDisconnected("half-way")

    monkeypatch.setattr(EmailBackend, "send_messages", breaks)
    with pytest.raises(smtplib.SMTPServerDisconnected):
        send_program_mail(mail.pk)
    monkeypatch.undo()
    send_program_mail(mail.pk)
    mail.refresh_from_db()
    assert mail.claimed_at
    assert mail.sent_at is None
    assert not outbox.outbox


def test_the_page_shows_whom_and_asks_those_alone(
    server: PerforceServer, as_admin: Client, settings: Any
) -> None:
    sending, settings.EMAIL_BACKEND = settings.EMAIL_BACKEND, NO_MAIL_SERVER
    page = as_admin.get(reverse("program-releases"))
    assert "Nobody can be mailed. This installation sends no mail" in page.text
    assert "The mail names" not in page.text
    assert "Send 2 mails" not in page.text
    settings.EMAIL_BACKEND = sending

    page = as_admin.get(reverse("program-releases"))
    assert "p4 2019.1 (too old)" in page.text
    uses = f"/perforce/programs/?server={server.name}&amp;user=alice"
    assert f'<a href="{uses}">alice</a>' in page.text
    assert "Send 2 mails" in page.text

    address = reverse("program-ask", args=[server.pk])
    answer = as_admin.post(address, {"user": ["alice", "carol"]}, follow=True)

    assert [mail.p4_user for mail in ProgramMail.objects.all()] == ["alice"]
    assert "Send 1 mail" in answer.text


def test_one_click_asks_so_many_and_the_page_says_who_got_none(
    server: PerforceServer, as_admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (actions, overviews):
        monkeypatch.setattr(module, "MAILS_AT_ONCE", 1)
    page = as_admin.get(reverse("program-releases"))
    assert "Send 1 mail" in page.text
    assert page.text.count('name="user"') == 1
    assert "1 more person uses an older one." in page.text

    as_admin.post(reverse("program-ask", args=[server.pk]), {"user": ["alice", "bob"]})

    mail = ProgramMail.objects.get()
    assert mail.p4_user == "alice"
    ProgramMail.objects.update(trouble="They have no address.")
    page = as_admin.get(reverse("program-releases"))
    assert "Not sent: They have no address." in page.text


def test_a_release_is_changed_on_its_page(
    server: PerforceServer, as_admin: Client
) -> None:
    address = reverse("program-release", args=[server.pk])
    assert 'value="2020.1"' in as_admin.get(address, {"program": "p4"}).text
    wrong = as_admin.post(address, {"program": "p4", "minimum": "new"})
    assert "Write a release as 2024.1." in wrong.text

    as_admin.post(address, {"program": "P4V", "recommended": "2025.1"})

    [person, _] = people_to_ask(server)
    assert [str(old) for old in person.outdated] == ["P4V 2024.10", "p4 2019.1"]


def test_a_minimum_leads_to_what_would_stop_older_ones(
    server: PerforceServer, as_admin: Client
) -> None:
    page = as_admin.get(reverse("program-releases")).text
    [address] = re.findall(r'href="([^"]*older_than=2020\.1)"', page)

    proposed = as_admin.get(html.unescape(address))

    assert "p4 configure set minClient=2020.1" in proposed.text


def test_scripts_change_releases_and_ask(
    server: PerforceServer, api_as_admin: APIClient, settings: Any
) -> None:
    address = f"/api/v1/program-releases/{server.pk}"
    change = {"program": "p4", "minimum": "2023.1"}
    changed = api_as_admin.patch(address, change, format="json").json()
    assert changed["releases"] == [
        {"program": "p4", "minimum": "2023.1", "recommended": ""}
    ]
    [listed] = api_as_admin.get("/api/v1/program-releases").json()["results"]
    assert [each["user"] for each in listed["people"]] == ["alice", "bob"]

    asked = api_as_admin.post(f"{address}/ask")

    assert asked.status_code == 202
    assert [each["user"] for each in asked.json()["mails"]] == ["alice", "bob"]
    settings.EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
    assert api_as_admin.post(f"{address}/ask").json()["code"] == "mails_not_sent"
