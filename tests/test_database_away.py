"""While the database is away, nobody is told that something broke."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import pytest
from django.db import InterfaceError, OperationalError, connection
from django.test import Client

from provisioner.accounts.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture(params=[OperationalError, InterfaceError])
def away(request: pytest.FixtureRequest, client: Client) -> Iterator[None]:
    def break_off(*args: Any) -> NoReturn:
        raise request.param("the connection was lost")

    client.raise_request_exception = False
    with connection.execute_wrapper(break_off):
        yield


@pytest.fixture
def as_alice(alice: User, signed_in: Callable[[User], Client]) -> Client:
    return signed_in(alice)


def test_a_script_learns_when_to_retry(as_alice: Client, away: None) -> None:
    answer = as_alice.get("/api/v1/workspaces")

    assert answer.status_code == 503
    assert int(answer["Retry-After"]) > 0
    assert answer.json()["code"] == "database_away"
    assert "retry in" in answer.json()["detail"]


def test_a_person_reads_a_page(as_alice: Client, away: None) -> None:
    answer = as_alice.get("/workspaces/")

    assert answer.status_code == 503
    assert int(answer["Retry-After"]) > 0
    assert "The database is not answering" in answer.content.decode()


def test_a_bug_of_ours_is_still_one(as_alice: Client) -> None:
    def break_it(*args: Any) -> NoReturn:
        raise RuntimeError("ours")

    as_alice.raise_request_exception = False
    with connection.execute_wrapper(break_it):
        answer = as_alice.get("/api/v1/workspaces")

    assert (answer.status_code, answer.json()["code"]) == (500, "internal_error")
