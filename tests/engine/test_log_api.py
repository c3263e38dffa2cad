"""GET /api/v1/operations/{id}/log."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django import Settings
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.catalog.actions.templates import template_build
from provisioner.catalog.models import Template
from provisioner.engine import states as engine_states
from provisioner.engine.api.logs import PIECE_BYTES
from provisioner.engine.models import Operation, Step
from provisioner.workspaces.models import Workspace


@pytest.fixture
def step(template: Template, admin: User, settings: Settings, tmp_path: Path) -> Step:
    """A build that has printed two lines and begun a third."""
    settings.LOG_DIR = tmp_path
    step = template_build(by=admin, template=template).steps.get(name="build")
    engine_states.queue_step(step, job_id=1)
    engine_states.start_step(step)
    step.log_path.write_text("one\ntwo\nthr")
    return step


def log_of(step: Step, query: str = "") -> str:
    return f"/api/v1/operations/{step.operation_id}/log{query}"


def test_a_script_follows_a_step_to_its_end(
    api_as_admin: APIClient, step: Step
) -> None:
    first = api_as_admin.get(log_of(step)).json()
    assert (first["step"], first["title"]) == ("build", "Build")
    assert (first["text"], first["offset"]) == ("one\ntwo\n", 0)
    assert (first["is_running"], first["is_last"]) == (True, True)

    query = f"?step=build&attempt=1&offset={first['next_offset']}"
    nothing = api_as_admin.get(log_of(step, query)).json()
    assert (nothing["text"], nothing["next_offset"]) == ("", first["next_offset"])

    engine_states.fail_step(step, code="build_failed", message="Failed.")
    rest = api_as_admin.get(log_of(step, query)).json()
    assert (rest["text"], rest["is_running"], rest["is_last"]) == ("thr", False, True)
    assert rest["next_offset"] == rest["size"] == len("one\ntwo\nthr")
    assert (rest["state"], rest["ending"][:5]) == ("failed", "Ended")


def test_a_new_attempt_is_read_from_its_beginning(
    api_as_admin: APIClient, step: Step
) -> None:
    answer = api_as_admin.get(log_of(step, "?attempt=7&offset=4")).json()
    assert (answer["attempt"], answer["text"]) == (1, "one\ntwo\n")


def test_a_long_log_comes_in_pieces(api_as_admin: APIClient, step: Step) -> None:
    line = "x" * 99 + "\n"
    whole = line * (PIECE_BYTES // 100 * 2)
    step.log_path.write_text(whole)
    read, offset, is_last = "", 0, False
    while not is_last:
        piece = api_as_admin.get(log_of(step, f"?offset={offset}")).json()
        read, offset = read + piece["text"], piece["next_offset"]
        is_last = piece["is_last"]
    assert read == whole
    assert whole.endswith(api_as_admin.get(log_of(step)).json()["text"])


def test_where_nothing_was_printed_there_is_no_text(
    api_as_alice: APIClient, workspace: Workspace
) -> None:
    operation = workspace.operations.get()
    answer = api_as_alice.get(f"/api/v1/operations/{operation.pk}/log").json()
    assert (answer["step"], answer["text"]) == (None, "")
    assert answer["operation_state"] == Operation.State.RUNNING


@pytest.mark.parametrize(
    "query", ["?offset=-1", "?offset=x", "?attempt=-1", "?step=a/b", "?offset=1e9"]
)
def test_what_is_no_place_in_a_log_is_refused(
    query: str, api_as_admin: APIClient, step: Step
) -> None:
    assert api_as_admin.get(log_of(step, query)).status_code == 400


def test_nobody_else_reads_it(
    api_as_carol: APIClient, api_as_nobody: APIClient, workspace: Workspace
) -> None:
    log = f"/api/v1/operations/{workspace.operations.get().pk}/log"
    assert api_as_nobody.get(log).status_code == 401
    assert api_as_carol.get(log).status_code == 404


@pytest.mark.parametrize("log", ["99999/log", "{}/log?step=nothing"])
def test_what_does_not_exist_is_not_found(
    log: str, api_as_admin: APIClient, step: Step
) -> None:
    address = f"/api/v1/operations/{log.format(step.operation_id)}"
    assert api_as_admin.get(address).status_code == 404
