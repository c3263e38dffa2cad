"""What the gateway says of a server's protections."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from provisioner.gateways.errors import Refused
from provisioner.gateways.perforce.connection import TicketHolder, connected
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.protections import Protection, find_unreadable
from tests.support.perforce_scene import (
    PerforceScene,
    PerforceTarget,
    running_lab,
)

PASSWORD = "lab-password"
TABLE = """Protections:
\twrite user * * //...
\tlist user alice * -//depot/secret/...
\tread group readers 10.0.0.5 //depot/secret/open/...
\tadmin user robot * //...
\tsuper user {admin} * //...
"""


@pytest.fixture(scope="module")
def target() -> Iterator[PerforceTarget]:
    """A lab whose table is not the one that it begins with."""
    with running_lab() as target:
        account = target.account
        with connected(account, holder=TicketHolder()) as shell:
            shell.run("group", "-i", text="Group:\treaders\n\nUsers:\n\talice\n")
            shell.run("protect", "-i", text=TABLE.format(admin=account.user))
            for user in ("alice", "robot"):
                form = f"User:\t{user}\n\nEmail:\t{user}@lab\n\nFullName:\t{user}\n"
                shell.run("user", "-f", "-i", text=form)
            shell.run("passwd", "robot", text=PASSWORD)
        yield target


def test_our_own_protections_let_us_read(perforce: PerforceScene) -> None:
    protections = perforce.gateway.protections_of(perforce.account.user)

    view = (f"{perforce.everything} //any/...",)
    assert find_unreadable(view, protections) is None
    assert not protections.is_for_one_host


def test_lines_about_a_user_come_in_order(target: PerforceTarget) -> None:
    protections = PerforceGateway(target.account).protections_of("alice")

    assert protections.lines == (
        Protection(level="write", host="*", path="//...", is_exclusion=False),
        Protection(
            level="list", host="*", path="//depot/secret/...", is_exclusion=True
        ),
        Protection(
            level="read",
            host="10.0.0.5",
            path="//depot/secret/open/...",
            is_exclusion=False,
        ),
    )
    assert protections.is_case_sensitive
    assert not protections.is_unprotected


def test_lines_for_a_host_are_those_that_hold_there(target: PerforceTarget) -> None:
    gateway = PerforceGateway(target.account)

    assert len(gateway.protections_of("alice", host="10.0.0.5").lines) == 3
    elsewhere = gateway.protections_of("alice", host="10.0.0.6")
    assert len(elsewhere.lines) == 2
    assert elsewhere.is_for_one_host


def test_an_account_that_may_not_ask_is_told_so(target: PerforceTarget) -> None:
    robot = replace(target.account, user="robot", password=PASSWORD)

    with pytest.raises(Refused) as caught:
        PerforceGateway(robot).protections_of("alice")

    assert caught.value.remote_code == "6185"


def test_a_server_says_how_it_compares_names() -> None:
    with running_lab("-C1") as target:
        protections = PerforceGateway(target.account).protections_of("alice")

    assert not protections.is_case_sensitive
