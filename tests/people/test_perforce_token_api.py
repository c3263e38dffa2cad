"""POST /api/v1/tokens/perforce: a Perforce ticket for a token, by the lab's server."""

from __future__ import annotations

import contextlib
import datetime as dt
import socket
from collections.abc import Iterator

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from provisioner.accounts.models import ApiToken, SignInAttempts, User
from provisioner.audit_log.models import Event
from provisioner.people import api as people_api
from provisioner.people.actions.tickets import TOKEN_LIVES
from provisioner.sites.models import PerforceServer, Site
from tests.support.api_clients import ApiAnswer
from tests.support.broker import ticket_at, ticket_of
from tests.support.factories import UserFactory
from tests.support.lab import Lab
from tests.support.perforce_scene import running_lab, scene_at

pytestmark = pytest.mark.django_db

TICKETS = "/api/v1/tokens/perforce"
NO_TICKET = "0123456789ABCDEF" * 2


@pytest.fixture
def server(lab_site: Site) -> PerforceServer:
    server = lab_site.perforce_server
    server.accepts_tickets = True
    server.save()
    return server


@pytest.fixture
def a_ticket(lab: Lab) -> str:
    return ticket_of(lab, "alice")


def buy(client: APIClient, **asked: str) -> ApiAnswer:
    return client.post(TICKETS, {"p4_user": "alice", **asked})


def refused(answer: ApiAnswer, status: int, code: str) -> None:
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.json()
    assert not ApiToken.objects.exists()


def test_a_ticket_buys_a_token_that_lives_for_minutes(
    api_as_nobody: APIClient, alice: User, server: PerforceServer, a_ticket: str
) -> None:
    answer = buy(api_as_nobody, ticket=a_ticket)

    assert answer.status_code == 201, answer.json()
    body = answer.json()
    assert body["owner"] == "alice"
    lives = dt.datetime.fromisoformat(body["expires_at"]) - timezone.now()
    assert dt.timedelta() < lives <= TOKEN_LIVES
    bearer = f"Bearer {body['token']}"
    listed = api_as_nobody.get("/api/v1/tokens", HTTP_AUTHORIZATION=bearer)
    assert [token["prefix"] for token in listed.json()["results"]] == [body["prefix"]]
    event = Event.objects.get(kind="token_made")
    assert (event.actor, event.via) == (alice, "Perforce ticket")
    assert a_ticket not in str(list(Event.objects.values()))


def test_the_token_is_of_the_account_with_that_perforce_name(
    api_as_nobody: APIClient, server: PerforceServer, a_ticket: str
) -> None:
    UserFactory.create(username="alice", p4_user="somebody-else")
    UserFactory.create(username="a.liddell", p4_user="alice")

    answer = buy(api_as_nobody, ticket=a_ticket, server=server.name)

    assert answer.json()["owner"] == "a.liddell"


def test_a_server_that_ignores_case_means_the_account_in_any_case(
    api_as_nobody: APIClient, alice: User, server: PerforceServer
) -> None:
    scene_of = contextlib.contextmanager(scene_at)
    with running_lab("-C1") as target, scene_of(target) as scene:
        scene.person("alice")
        ticket = ticket_at(scene.account.port, "ALICE", password="password")
        PerforceServer.objects.create(
            name="folding",
            p4port=scene.account.port,
            p4user=scene.account.user,
            accepts_tickets=True,
        )
        answer = buy(api_as_nobody, ticket=ticket, p4_user="ALICE", server="folding")

    assert answer.status_code == 201, answer.json()
    assert answer.json()["owner"] == "alice"


def test_a_ticket_of_somebody_else_proves_nothing(
    api_as_nobody: APIClient, alice: User, lab: Lab, server: PerforceServer
) -> None:
    refused(buy(api_as_nobody, ticket=ticket_of(lab, "bob")), 401, "ticket_refused")

    event = Event.objects.get(kind="sign_in_failed")
    assert event.subject == "alice"


@pytest.mark.parametrize("ticket", [NO_TICKET, "lab-password", "x" * 32, " "])
def test_what_is_no_ticket_is_refused(
    api_as_nobody: APIClient, alice: User, server: PerforceServer, ticket: str
) -> None:
    answer = buy(api_as_nobody, ticket=ticket)

    if ticket.strip():
        refused(answer, 401, "ticket_refused")
    else:
        refused(answer, 400, "invalid")


def test_a_ticket_that_was_logged_out_is_refused(
    api_as_nobody: APIClient, alice: User, lab: Lab, server: PerforceServer
) -> None:
    ended = ticket_of(lab, "alice", ended=True)

    refused(buy(api_as_nobody, ticket=ended), 401, "ticket_refused")


def test_where_the_server_wants_no_password_anything_would_do_and_nothing_does(
    api_as_nobody: APIClient, lab: Lab, server: PerforceServer
) -> None:
    UserFactory.create(username="open-door")
    p4 = lab.as_admin()
    p4.input = {"User": "open-door", "Email": "o@x", "FullName": "Open Door"}
    p4.run("user", "-i", "-f")
    p4.disconnect()

    answer = buy(api_as_nobody, p4_user="open-door", ticket=NO_TICKET)

    refused(answer, 401, "ticket_refused")


def test_who_has_no_account_or_an_ended_one_gets_no_token(
    api_as_nobody: APIClient, lab: Lab, server: PerforceServer, a_ticket: str
) -> None:
    refused(buy(api_as_nobody, ticket=a_ticket), 409, "no_account")

    UserFactory.create(username="alice", is_active=False)
    refused(buy(api_as_nobody, ticket=a_ticket), 409, "no_account")

    for name in ("one", "two"):
        UserFactory.create(username=name, p4_user="alice")
    refused(buy(api_as_nobody, ticket=a_ticket), 409, "no_account")


def test_tickets_are_not_taken_unless_the_server_s_row_says_so(
    api_as_nobody: APIClient, alice: User, lab_site: Site, a_ticket: str
) -> None:
    refused(buy(api_as_nobody, ticket=a_ticket), 403, "tickets_not_taken")


def test_of_several_servers_one_has_to_be_named(
    api_as_nobody: APIClient, alice: User, server: PerforceServer, a_ticket: str
) -> None:
    PerforceServer.objects.create(name="other", p4port="other:1666", p4user="cloneyard")

    refused(buy(api_as_nobody, ticket=a_ticket), 400, "invalid")
    refused(buy(api_as_nobody, ticket=a_ticket, server="third"), 400, "invalid")
    named = buy(api_as_nobody, ticket=a_ticket, server=server.name)
    assert named.status_code == 201


@pytest.fixture
def closed_port() -> Iterator[str]:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


def test_a_server_that_is_away_is_said_to_be(
    api_as_nobody: APIClient, alice: User, server: PerforceServer, closed_port: str
) -> None:
    server.p4port = closed_port
    server.save()

    refused(buy(api_as_nobody, ticket=NO_TICKET), 409, "perforce_away")


def test_who_guesses_is_slowed_down_and_keeps_nobody_out(
    api_as_nobody: APIClient, alice: User, server: PerforceServer, a_ticket: str
) -> None:
    answers = [buy(api_as_nobody, ticket="guess").status_code for _ in range(12)]

    assert answers == [401] * 10 + [429] * 2
    assert buy(api_as_nobody, ticket=a_ticket).status_code == 201


def test_a_silent_perforce_server_holds_few_threads(
    api_as_nobody: APIClient, alice: User, server: PerforceServer, a_ticket: str
) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(people_api.TICKETS_AT_A_TIME):
            stack.enter_context(people_api._asking_perforce)
        answer = buy(api_as_nobody, ticket=a_ticket)
        refused(answer, 429, "throttled")
        assert answer["Retry-After"] == "1"

    assert not SignInAttempts.objects.exists()
    assert buy(api_as_nobody, ticket=a_ticket).status_code == 201


def test_a_name_that_perforce_does_not_know_makes_no_user_there(
    api_as_nobody: APIClient, lab: Lab, server: PerforceServer
) -> None:
    """This server makes a user of whoever gives a command."""
    for name in ("nobody-yet", "-a", "*"):
        answer = buy(api_as_nobody, p4_user=name, ticket=NO_TICKET)
        refused(answer, 401, "ticket_refused")
    p4 = lab.as_admin()
    assert not {"nobody-yet", "-a"} & {record["User"] for record in p4.run("users")}
    p4.disconnect()
