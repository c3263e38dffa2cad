"""Exchange a Perforce ticket for an API token of the account with that user.

The server that issued the ticket verifies it, as that user. The ticket is not stored.
"""

from __future__ import annotations

import datetime as dt
import re

from django.contrib.auth.signals import user_login_failed

from provisioner.accounts import origin
from provisioner.accounts.models import ApiToken, User
from provisioner.accounts.tokens import token_create
from provisioner.gateways.errors import (
    AuthFailed,
    PermanentGatewayError,
    TransientGatewayError,
)
from provisioner.lib.refusals import InvalidRequest
from provisioner.people.refusals import (
    NoAccount,
    PerforceAway,
    TicketRefused,
    TicketsNotTaken,
)
from provisioner.perforce_sign_in.actions import find_proven
from provisioner.perforce_sign_in.queries import accounts_of
from provisioner.sites.models import PerforceServer

TOKEN_LIVES = dt.timedelta(minutes=10)
TOKEN_NAME = "for a Perforce ticket"  # noqa: S105 - what people see in their list
# A password is none: only what is too long to be guessed gets to the server.
TICKET = re.compile(r"[0-9A-Fa-f]{32,128}")


def token_for_ticket(
    *, p4_user: str, ticket: str, server: str = ""
) -> tuple[ApiToken, str]:
    """Return a token for the ticket's user with its secret, valid for TOKEN_LIVES.

    `server` is the name of the Perforce server; optional if there is only one.

    Raises: InvalidRequest, TicketsNotTaken, TicketRefused, PerforceAway, NoAccount.
    """
    asked = _server(server)
    if not asked.accepts_tickets:
        raise TicketsNotTaken(server=asked.name)
    ignores_case = _prove(p4_user, ticket, server=asked)
    account = _account_of(p4_user, ignores_case=ignores_case)
    origin.signed_in(account, via="Perforce ticket")
    return token_create(by=account, name=TOKEN_NAME, lives=TOKEN_LIVES)


def _server(name: str) -> PerforceServer:
    found = PerforceServer.objects.filter(**({"name": name} if name else {}))[:2]
    if len(found) != 1:
        raise InvalidRequest(
            f"There is no Perforce server “{name}”."
            if name
            else "Name the Perforce server of the ticket."
        )
    return found[0]


def _prove(p4_user: str, ticket: str, *, server: PerforceServer) -> bool:
    """Ensure that the ticket is the user's; return whether the server ignores case.

    Raises: TicketRefused, PerforceAway.
    """
    refused = TicketRefused(server=server.name, user=p4_user)
    if not TICKET.fullmatch(ticket):
        raise refused
    try:
        proven = find_proven(server, user=p4_user, secret=ticket)
    except AuthFailed:
        proven = None
    except (TransientGatewayError, PermanentGatewayError) as error:
        raise PerforceAway(server=server.name) from error
    if proven is None:
        user_login_failed.send(sender=__name__, credentials={"username": p4_user})
        raise refused
    return proven.ignores_case


def _account_of(p4_user: str, *, ignores_case: bool) -> User:
    """Return the one account with this Perforce user."""
    named = accounts_of(p4_user, ignores_case=ignores_case)
    found = list(named.filter(is_active=True)[:2])
    if len(found) != 1:
        raise NoAccount(user=p4_user)
    return found[0]
