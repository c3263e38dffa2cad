"""Bisections through the API: who, what, how far, and the same request again."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.utils import timezone
from procrastinate.contrib.django.models import ProcrastinateJob
from pytest_django import Settings
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.accounts.tokens import token_create
from provisioner.audit_log.models import Event
from provisioner.bisect.actions import bisection_go_on
from provisioner.bisect.models import INTERRUPTED, Bisection, BisectionOperation
from provisioner.bisect.sweeps import sweep_bisections
from provisioner.catalog.models import Snapshot, Template
from provisioner.engine.models import Operation, Step
from provisioner.workspaces.actions.retiring import workspace_retry
from provisioner.workspaces.models import Workspace, WorkspaceOperation
from tests.support.bisections import CHANGES, end_step, read
from tests.support.factories import SnapshotFactory

ADDRESS = "/api/v1/bisections"


def ask(client: APIClient, **others: Any) -> Any:
    body = {"template": "main", "good": 100, "bad": 150, **others}
    return client.post(ADDRESS, body)


def say(client: APIClient, bisection_id: int, change: int, verdict: str) -> Any:
    return client.post(
        f"{ADDRESS}/{bisection_id}/verdict", {"change": change, "verdict": verdict}
    )


@pytest.fixture
def started(api_as_alice: APIClient, snapshot: Snapshot) -> Bisection:
    """One of alice's, whose first step is under way."""
    return read(ask(api_as_alice).json()["id"])


def test_an_answer_is_held_while_a_step_is_under_way_and_no_longer(
    api_as_alice: APIClient, started: Bisection
) -> None:
    where = f"{ADDRESS}/{started.pk}"
    began = time.monotonic()
    api_as_alice.get(f"{where}?wait=1")
    held = time.monotonic() - began
    end_step(started)

    asked = api_as_alice.get(f"{where}?wait=60").json()
    current = asked["current"]["change"]
    api_as_alice.post(f"{where}/stop")
    stopped = api_as_alice.get(f"{where}?wait=60").json()

    assert 1 <= held < 30
    assert (asked["status_code"], current) == ("waits_for_verdict", 111)
    assert stopped["state"] == "stopped"
    assert time.monotonic() - began < 60
    assert api_as_alice.get(f"{where}?wait=61").status_code == 400


def test_a_bisection_is_asked_for_and_goes_on_until_it_is_found(
    api_as_alice: APIClient, snapshot: Snapshot
) -> None:
    answer = ask(api_as_alice)
    assert answer.status_code == 202
    asked = answer.json()
    assert answer["Location"].endswith(f"{ADDRESS}/{asked['id']}")
    assert (asked["state"], asked["changes_count"]) == ("running", None)
    assert (asked["current"], asked["steps_left"]) == (None, None)

    bisection = read(asked["id"])
    shown = api_as_alice.get(answer["Location"]).json()
    assert (shown["changes_count"], shown["suspects_count"]) == (8, 8)
    assert shown["steps_left"] == 3
    current = shown["current"]
    assert (current["change"], current["verdict"]) == (111, "")
    assert (current["user"], current["title"]) == ("bob", "Title 111")
    assert current["snapshot_change"] == snapshot.change
    assert current["workspace_state"] == "provisioning"

    end_step(bisection)
    shown = api_as_alice.get(answer["Location"]).json()
    assert shown["status_code"] == "waits_for_verdict"
    assert (
        say(api_as_alice, bisection.pk, 111, "bad").json()["current"]["change"] == 105
    )
    say(api_as_alice, bisection.pk, 105, "good")
    shown = say(api_as_alice, bisection.pk, 110, "good").json()

    assert shown["state"] == "found"
    assert shown["first_bad"] == {"change": 111, "user": "bob", "title": "Title 111"}
    assert shown["status_message"] == "First bad change 111 by bob: Title 111"
    assert (shown["current"], shown["steps_left"]) == (None, 0)
    verdicts = [(t["change"], t["verdict"], t["decided_by"]) for t in shown["steps"]]
    assert verdicts == [
        (111, "bad", "alice"),
        (105, "good", "alice"),
        (110, "good", "alice"),
    ]
    assert api_as_alice.get(ADDRESS).json()["results"] == [shown]
    assert (
        say(api_as_alice, bisection.pk, 120, "bad").json()["code"] == "bisection_over"
    )


def test_each_clone_is_retired_when_its_step_is_decided(
    api_as_alice: APIClient, started: Bisection
) -> None:
    step = started.steps.get()
    assert step.workspace.purpose == Workspace.Purpose.BUILD

    say(api_as_alice, started.pk, step.change, "good")

    retire = step.workspace.operations.get(kind=WorkspaceOperation.RETIRE)
    assert retire.parameters["purge"]
    assert "client" in retire.steps.values_list("name", flat=True)
    following = started.steps.get(verdict="")
    assert following.workspace.name != step.workspace.name


def test_the_same_request_or_verdict_again_changes_nothing(
    api_as_alice: APIClient, started: Bisection
) -> None:
    assert ask(api_as_alice).json()["id"] == started.pk
    assert ask(api_as_alice, command="true").json()["id"] != started.pk
    for _ in range(2):
        answer = say(api_as_alice, started.pk, 111, "good")
        assert answer.status_code == 200
        assert answer.json()["current"]["change"] == 130
    other = say(api_as_alice, started.pk, 111, "bad")
    assert (other.status_code, other.json()["code"]) == (409, "not_being_tried")
    assert started.steps.count() == 2


def test_what_a_command_says_counts_without_anybody(
    api_as_alice: APIClient, snapshot: Snapshot
) -> None:
    bisection = read(ask(api_as_alice, command="make test").json()["id"])
    for verdict in ("skip", "bad", "good"):
        end_step(bisection, verdict=verdict, message="It ended.")
    shown = api_as_alice.get(f"{ADDRESS}/{bisection.pk}").json()
    assert [t["verdict"] for t in shown["steps"][:3]] == ["skip", "bad", "good"]
    assert {t["decided_by"] for t in shown["steps"]} == {None}
    told = Event.objects.filter(subject_kind="bisection", kind="bisection_step_decided")
    assert told.count() == 3

    end_step(bisection, message="It was ended by signal 9.")
    assert bisection.status_code == "waits_for_verdict"
    assert "signal 9" in bisection.status_message


def test_only_skipped_suspects_left_are_named(
    api_as_alice: APIClient, started: Bisection
) -> None:
    while started.is_running:
        change = started.steps.get(verdict="").change
        say(api_as_alice, started.pk, change, "skip")
        started.refresh_from_db()
    assert started.state == "undecided"
    assert ", ".join(map(str, CHANGES)) in started.status_message


def test_an_interrupted_command_is_run_in_another_clone_but_not_for_ever(
    api_as_alice: APIClient, snapshot: Snapshot
) -> None:
    bisection = read(ask(api_as_alice, command="make test").json()["id"])
    for _ in range(2):
        end_step(bisection, code=INTERRUPTED, message="Its worker ended.")
        assert bisection.status_code == ""
    end_step(bisection, code=INTERRUPTED, message="Its worker ended.")
    assert bisection.status_code == "waits_for_verdict"
    changes = bisection.steps.values_list("change", "verdict")
    assert list(changes) == [(111, "again"), (111, "again"), (111, "")]


def test_a_failed_step_that_is_tried_again_is_brought_to_its_change(
    started: Bisection, alice: User
) -> None:
    end_step(started, code="refused", message="No.")
    workspace = started.steps.get().workspace

    operation = workspace_retry(by=alice, workspace=workspace)

    assert operation.kind == BisectionOperation.STEP
    assert Step.objects.filter(operation=operation, name="files").exists()
    bisection_go_on(started.pk)
    started.refresh_from_db()
    assert started.status_code == ""


def test_without_room_the_next_step_waits_for_it(
    api_as_alice: APIClient, snapshot: Snapshot, alice: User
) -> None:
    alice.max_workspaces = 0
    alice.save()
    bisection = read(ask(api_as_alice).json()["id"])
    assert bisection.is_running
    assert bisection.status_message.startswith("The next step waits.")
    assert not Workspace.objects.exists(), "nothing is left of the attempt"

    alice.max_workspaces = None
    alice.save()
    bisection_go_on(bisection.pk)

    bisection.refresh_from_db()
    assert bisection.status_code == ""
    assert bisection.steps.count() == 1


def test_snapshots_of_another_view_are_not_used(
    api_as_alice: APIClient, template: Template
) -> None:
    old = SnapshotFactory.create(template=template, change=111)
    spec = old.client_spec.replace("//depot/main/...", "//depot/other/...")
    newer = SnapshotFactory.create(template=template, change=160, client_spec=spec)
    SnapshotFactory.create(
        template=template, change=112, parts=[{"path": "//d", "change": 1}]
    )
    bisection = read(ask(api_as_alice).json()["id"])
    assert bisection.steps.get().workspace.snapshot == newer


@pytest.mark.parametrize(
    "body",
    [
        {"good": 150, "bad": 100},
        {"good": 100, "bad": 100},
        {"good": 0},
        {"bad": 2**40},
        {"good": "100"},
        {"command": "a\0b"},
        {"command": "x" * 10_001},
        {"template": "no-such"},
    ],
)
def test_what_makes_no_sense_is_refused(
    api_as_alice: APIClient, snapshot: Snapshot, body: dict[str, Any]
) -> None:
    answer = ask(api_as_alice, **body)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
    assert not Bisection.objects.exists()


def test_a_template_without_a_snapshot_has_nothing_to_clone(
    api_as_alice: APIClient, template: Template
) -> None:
    answer = ask(api_as_alice)
    assert (answer.status_code, answer.json()["code"]) == (409, "no_snapshot")


def test_a_stop_retires_the_clone_and_is_safe_to_repeat(
    api_as_alice: APIClient, started: Bisection
) -> None:
    for _ in range(2):
        answer = api_as_alice.post(f"{ADDRESS}/{started.pk}/stop")
        assert (answer.status_code, answer.json()["state"]) == (200, "stopped")
    assert started.steps.get().workspace.operations.filter(kind="retire").count() == 1
    bisection_go_on(started.pk)
    assert started.steps.count() == 1


def test_nobody_else_sees_or_decides_it(
    api_as_carol: APIClient, api_as_admin: APIClient, started: Bisection
) -> None:
    assert api_as_carol.get(ADDRESS).json()["results"] == []
    assert api_as_carol.get(f"{ADDRESS}/{started.pk}").status_code == 404
    assert say(api_as_carol, started.pk, 111, "bad").status_code == 404
    assert api_as_carol.post(f"{ADDRESS}/{started.pk}/stop").status_code == 404
    assert api_as_admin.get(f"{ADDRESS}/{started.pk}").status_code == 200
    assert say(api_as_admin, started.pk, 111, "bad").status_code == 200


def test_a_token_for_something_else_starts_none(
    alice: User, snapshot: Snapshot
) -> None:
    client = APIClient()
    _, secret = token_create(by=alice, purposes=["ci"])
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    body = {"template": "main", "good": 1, "bad": 9}
    answer = client.post(ADDRESS, body, format="json")
    assert (answer.status_code, answer.json()["code"]) == (403, "token_scope")


def test_an_account_that_was_closed_gets_no_more_clones(
    api_as_alice: APIClient, snapshot: Snapshot, alice: User
) -> None:
    started_id = ask(api_as_alice).json()["id"]
    alice.is_active = False
    alice.save()
    bisection = read(started_id)
    assert bisection.status_code == "not_allowed"
    assert not bisection.steps.exists()


def test_a_person_has_three_bisections_running_and_reads_for_one_at_a_time(
    jobs_emptied: None,
    api_as_alice: APIClient,
    api_as_carol: APIClient,
    snapshot: Snapshot,
) -> None:
    hers = [ask(api_as_alice, good=good).json()["id"] for good in (100, 101, 102)]
    refused = ask(api_as_alice, good=103)
    sweep_bisections(0)

    assert (refused.status_code, refused.json()["code"]) == (409, "too_many_bisections")
    assert f"{hers[0]} of main (100 to 150), " in refused.json()["detail"]
    assert ask(api_as_alice, good=100).json()["id"] == hers[0], "it is under way"
    assert ask(api_as_carol).status_code == 202
    locks = ProcrastinateJob.objects.values_list("lock", flat=True)
    assert len(locks) == 4, "each is queued once"
    assert len(set(locks)) == 2

    api_as_alice.post(f"{ADDRESS}/{hers[0]}/stop")
    assert ask(api_as_alice, good=103).status_code == 202


def test_a_person_has_two_commands_at_a_time_and_others_wait_for_nobody(
    api_as_alice: APIClient,
    api_as_carol: APIClient,
    snapshot: Snapshot,
    settings: Settings,
) -> None:
    settings.BISECTIONS_PER_PERSON = 20
    hers = [
        read(ask(api_as_alice, command=f"make {number}").json()["id"])
        for number in range(18)
    ]
    assert [b.steps.count() for b in hers] == [1, 1, *[0] * 16]
    told = api_as_alice.get(f"{ADDRESS}/{hers[2].pk}").json()
    assert told["status_code"] == "too_many_commands"
    assert "a person may have 2" in told["status_message"]
    assert read(ask(api_as_carol, command="make").json()["id"]).steps.count() == 1
    by_hand = read(ask(api_as_alice, good=101).json()["id"])
    assert by_hand.steps.count() == 1, "what runs no command waits for none"

    # Its own next step begins at once, so another search has to wait on.
    end_step(hers[0], verdict="bad", message="It ended with exit code 1.")
    sweep_bisections(0)
    assert [b.steps.count() for b in hers[:4]] == [2, 1, 0, 0]

    api_as_alice.post(f"{ADDRESS}/{hers[1].pk}/stop")
    Operation.objects.filter(
        subject__workspace__bisection_step__bisection=hers[1]
    ).update(
        state=Operation.State.FAILED, status_code="stopped", ended_at=timezone.now()
    )
    sweep_bisections(0)
    assert [b.steps.count() for b in hers[:4]] == [2, 1, 1, 0]
    hers[2].refresh_from_db()
    assert hers[2].status_code == ""
