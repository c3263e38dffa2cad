"""?wait=SECONDS holds the answer, and nothing else."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection
from pytest_django import DjangoAssertNumQueries, Settings
from rest_framework.test import APIClient

from provisioner.catalog.models import Snapshot
from provisioner.engine.models import Operation
from provisioner.workspaces.api.viewsets import wait_until_settled
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.states import set_workspace_state
from tests.support.workspaces import end, running_of

WORKSPACES = "/api/v1/workspaces"


@contextmanager
def settled_meanwhile(*, after_seconds: float, to: Workspace.State) -> Iterator[None]:
    """Move the one workspace to a state from another connection, as a worker does."""

    def work() -> None:
        try:
            deadline = time.monotonic() + 60
            under_way = Operation.objects.filter(state=Operation.State.RUNNING)
            while not under_way.exists() and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(after_seconds)
            workspace = Workspace.objects.get()
            end(running_of(workspace), Operation.State.SUCCEEDED)
            set_workspace_state(workspace, to)
        finally:
            connection.close()

    worker = threading.Thread(target=work)
    worker.start()
    try:
        yield
    finally:
        worker.join(60)


@pytest.fixture
def committed(transactional_db: None, jobs_emptied: None) -> None:
    """What one connection writes, the others see."""


def test_a_request_waits_until_the_workspace_is_ready(
    committed: None, api_as_alice: APIClient, snapshot: Snapshot
) -> None:
    with settled_meanwhile(after_seconds=0.2, to=Workspace.State.READY):
        response = api_as_alice.post(f"{WORKSPACES}?wait=10", {"template": "main"})

    assert response.status_code == 201
    assert response.json()["state"] == "ready"
    assert response.json()["operation"]["state"] == "succeeded"


def test_a_check_waits_until_the_workspace_is_ready(
    committed: None, api_as_alice: APIClient, workspace: Workspace
) -> None:
    with settled_meanwhile(after_seconds=0.2, to=Workspace.State.READY):
        response = api_as_alice.get(f"{WORKSPACES}/{workspace.pk}?wait=10")

    assert response.status_code == 200
    assert response.json()["state"] == "ready"


def test_a_retirement_waits_until_the_workspace_is_in_the_trash(
    committed: None, api_as_alice: APIClient, ready: Workspace
) -> None:
    with settled_meanwhile(after_seconds=0.2, to=Workspace.State.TRASHED):
        response = api_as_alice.delete(f"{WORKSPACES}/{ready.pk}?wait=10")

    assert response.status_code == 202
    assert response.json()["state"] == "trashed"


def test_the_answer_comes_when_the_time_is_over(
    api_as_alice: APIClient, workspace: Workspace
) -> None:
    started = time.monotonic()

    response = api_as_alice.get(f"{WORKSPACES}/{workspace.pk}?wait=1")

    assert response.json()["state"] == "provisioning"
    assert 1 <= time.monotonic() - started < 30


def test_what_is_settled_is_answered_at_once(
    api_as_alice: APIClient, failed: Workspace
) -> None:
    started = time.monotonic()

    response = api_as_alice.get(f"{WORKSPACES}/{failed.pk}?wait=60")

    assert response.json()["state"] == "failed"
    assert time.monotonic() - started < 30


@pytest.mark.parametrize("wait", ["-1", "61", "x", "", "1.5", "nan", "inf", "9" * 99])
@pytest.mark.parametrize("method", ["get", "delete", "post"])
def test_a_malformed_wait_is_refused_before_anything_is_done(
    api_as_alice: APIClient, workspace: Workspace, method: str, wait: str
) -> None:
    path = WORKSPACES if method == "post" else f"{WORKSPACES}/{workspace.pk}"
    body = '{"template": "main"}' if method == "post" else ""

    response = api_as_alice.generic(
        method.upper(), f"{path}?wait={wait}", body, "application/json"
    )

    assert response.status_code == 400
    assert list(response.json()["fields"]) == ["wait"]
    assert Operation.objects.count() == 1


@pytest.mark.parametrize("setting", ["API_WAITS_PER_PROCESS", "API_WAITS_PER_PERSON"])
def test_beyond_the_places_the_answer_comes_at_once(
    api_as_alice: APIClient, workspace: Workspace, settings: Settings, setting: str
) -> None:
    setattr(settings, setting, 0)
    other = {"template": "main", "name": "another"}

    looked = api_as_alice.get(f"{WORKSPACES}/{workspace.pk}?wait=60")
    made = api_as_alice.post(f"{WORKSPACES}?wait=60", other)

    for answer in (looked, made):
        assert answer.status_code == 202
        assert answer.json()["state"] == "provisioning"
        assert int(answer["Retry-After"]) > 0


def test_what_is_settled_needs_no_place(
    api_as_alice: APIClient, failed: Workspace, settings: Settings
) -> None:
    settings.API_WAITS_PER_PROCESS = 0

    answer = api_as_alice.get(f"{WORKSPACES}/{failed.pk}?wait=60")

    assert answer.status_code == 200
    assert "Retry-After" not in answer


def test_a_place_is_given_back(
    api_as_alice: APIClient, workspace: Workspace, settings: Settings
) -> None:
    settings.API_WAITS_PER_PERSON = 1
    for _ in range(2):
        assert (
            api_as_alice.get(f"{WORKSPACES}/{workspace.pk}?wait=1").status_code == 200
        )


def test_checks_become_rarer(
    workspace: Workspace, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    # 50 ms and half as much again each time: some seven looks in the first second.
    with django_assert_max_num_queries(8):
        wait_until_settled(workspace.pk, seconds=1, by=workspace.owner)


def test_two_requests_with_one_key_at_once_make_one_workspace(
    committed: None, api_as_alice: APIClient, snapshot: Snapshot
) -> None:
    answers: list[int] = []
    together = threading.Barrier(4)

    def ask() -> None:
        try:
            together.wait(5)
            response = api_as_alice.post(
                WORKSPACES, {"template": "main"}, HTTP_IDEMPOTENCY_KEY="once"
            )
            answers.append(response.json()["id"])
        finally:
            connection.close()

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    assert len(answers) == 4
    assert len(set(answers)) == 1
    assert Operation.objects.count() == 1
