"""A script's way, with the client library: a ready workspace, and back again."""

from __future__ import annotations

import base64
from pathlib import Path

import httpx
import pytest
from cloneyard_client import AuthenticatedClient
from cloneyard_client.api.operations import operations_retrieve
from cloneyard_client.api.tokens import tokens_create
from cloneyard_client.api.workspaces import (
    workspaces_create,
    workspaces_destroy,
    workspaces_retrieve,
)
from cloneyard_client.models import (
    Error,
    ErrorCode,
    Operation,
    OperationState,
    StepState,
    TokenCreated,
    TokenCreateRequest,
    Workspace,
    WorkspaceCreateRequest,
    WorkspaceState,
)
from pytest_django.live_server_helper import LiveServer

from provisioner.accounts.models import User
from provisioner.catalog.models import Template
from provisioner.demo.processes import Child
from tests.support.factories import PASSWORD

ANSWERS_WITHIN_SECONDS = 90
pytestmark = pytest.mark.django_db(transaction=True)


def with_a_token_of(user: User, *, server: str) -> AuthenticatedClient:
    """Return a client that bought its token with the user's password."""
    pair = base64.b64encode(f"{user.username}:{PASSWORD}".encode()).decode()
    with AuthenticatedClient(base_url=server, token=pair, prefix="Basic") as buyer:
        bought = tokens_create.sync(client=buyer, body=TokenCreateRequest())
    assert isinstance(bought, TokenCreated)
    return AuthenticatedClient(
        base_url=server,
        token=bought.token,
        timeout=httpx.Timeout(ANSWERS_WITHIN_SECONDS),
        raise_on_unexpected_status=True,
    )


def test_a_script_gets_a_ready_workspace_and_gives_it_back(
    live_server: LiveServer, published_template: Template, worker: Child, alice: User
) -> None:
    with with_a_token_of(alice, server=live_server.url) as client:
        asked = WorkspaceCreateRequest(
            template=published_template.name, name="from-a-script"
        )

        got = workspaces_create.sync_detailed(
            client=client, body=asked, wait=60, idempotency_key="job 1"
        )

        workspace = got.parsed
        assert isinstance(workspace, Workspace), workspace
        assert got.status_code == 201
        assert workspace.state is WorkspaceState.READY
        assert workspace.status_message == ""
        assert Path(workspace.path, ".p4config").exists()
        assert workspace.operation is not None
        assert workspace.operation.state is OperationState.SUCCEEDED
        assert workspace.operation.current_steps == []

        again = workspaces_create.sync_detailed(
            client=client, body=asked, idempotency_key="job 1"
        )
        assert isinstance(again.parsed, Workspace)
        assert again.headers["Idempotency-Replayed"] == "true"
        assert again.parsed.id == workspace.id
        assert again.parsed.operation == workspace.operation

        back = workspaces_destroy.sync(workspace.id, client=client, wait=60, purge=True)

        assert isinstance(back, Workspace), back
        assert (back.state, back.status_message) == (WorkspaceState.RETIRED, "")
        assert not Path(workspace.path).exists()
        assert back.operation is not None
        operation = operations_retrieve.sync(back.operation.id, client=client)
        assert isinstance(operation, Operation)
        assert {step.state for step in operation.steps} == {StepState.DONE}


def test_a_refusal_is_a_sentence_and_a_code_of_the_library(
    live_server: LiveServer, alice: User
) -> None:
    with with_a_token_of(alice, server=live_server.url) as client:
        refused = workspaces_retrieve.sync(4711, client=client)

    assert isinstance(refused, Error)
    assert refused.code is ErrorCode.NOT_FOUND
    assert refused.detail != ""
