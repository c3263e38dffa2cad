"""The id of a request: in its answer, its errors, and the work that it starts."""

from __future__ import annotations

import uuid

import pytest
from django.test import Client
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot
from provisioner.engine.models import Operation
from provisioner.lib import request_ids

pytestmark = pytest.mark.django_db
WORKSPACES = "/api/v1/workspaces"


def test_each_answer_names_its_request(as_nobody: Client) -> None:
    first, second = (as_nobody.get("/login/")["X-Request-ID"] for _ in range(2))

    assert uuid.UUID(first) != uuid.UUID(second)


def test_a_caller_may_name_it(as_nobody: Client) -> None:
    answer = as_nobody.get("/login/", headers={"X-Request-ID": "proxy-1.2_3"})

    assert answer["X-Request-ID"] == "proxy-1.2_3"


@pytest.mark.parametrize("named", ["", "a b", "ü", 65 * "a", "a\\n", "<b>", '"'])
def test_what_is_not_fit_for_a_log_is_replaced(named: str, as_nobody: Client) -> None:
    answer = as_nobody.get("/login/", headers={"X-Request-ID": named})

    assert uuid.UUID(answer["X-Request-ID"])


def test_pages_about_errors_name_it(as_alice: Client) -> None:
    answer = as_alice.get("/workspaces/0/", headers={"X-Request-ID": "seen-by-alice"})

    assert answer.status_code == 404
    assert "Request <code>seen-by-alice</code>" in answer.text


def test_errors_of_the_api_name_it(api_as_alice: APIClient) -> None:
    answer = api_as_alice.get(f"{WORKSPACES}/0", headers={"X-Request-ID": "job-7"})

    assert answer.status_code == 404
    assert answer.json()["request_id"] == "job-7"


def test_what_a_request_starts_has_its_id(
    api_as_alice: APIClient, snapshot: Snapshot
) -> None:
    answer = api_as_alice.post(
        WORKSPACES,
        {"template": snapshot.template.name},
        headers={"X-Request-ID": "job-8"},
    )

    assert answer.status_code == 202, answer.json()
    operation = Operation.objects.get()
    assert operation.request_id == "job-8"
    path = f"/api/v1/operations/{operation.pk}"
    assert api_as_alice.get(path).json()["request_id"] == "job-8"
    page = Client()
    page.force_login(User.objects.get(username="alice"))
    assert (
        "Request <code>job-8</code>." in page.get(f"/operations/{operation.pk}/").text
    )


def test_an_id_ends_with_its_request(as_nobody: Client) -> None:
    as_nobody.get("/login/")

    assert request_ids.current() == ""
