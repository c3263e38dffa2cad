"""The API holds to docs/openapi.yaml, whoever asks and whatever is sent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from django.conf import settings as django_settings
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from django.utils import timezone
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import CheckFunction
from schemathesis.specs.openapi.checks import (
    ignored_auth,
    positive_data_acceptance,
)

from provisioner.accounts.models import ApiToken, Team, User
from provisioner.accounts.tokens import token_create
from provisioner.bisect.actions import bisection_start
from provisioner.catalog.models import Snapshot
from provisioner.drift.models import Finding
from provisioner.engine import states as engine_states
from provisioner.engine.models import Operation
from provisioner.leases.models import LeasePolicy
from provisioner.notify.actions.webhooks import webhook_create
from provisioner.notify.models import WebhookDelivery
from provisioner.pools.actions import pool_create
from provisioner.sandboxes.models import P4dVersion, SandboxPolicy
from provisioner.server_log.models import LogUpload
from provisioner.workspaces.models import Share, Workspace
from provisioner.workspaces.states import set_workspace_state
from tests.support.api_clients import basic
from tests.support.factories import (
    PASSWORD,
    MirrorFactory,
    MomentFactory,
    ProcessFactory,
    QualificationRunFactory,
    SandboxFactory,
    SnapshotFactory,
    UserFactory,
    VerificationFactory,
)
from tests.support.logs import a_sync_that_waited
from tests.support.module_rows import Write, written_once
from tests.support.requests import workspace_create
from tests.support.undoing import undone

__all__ = ["written_once"]

schema = schemathesis.openapi.from_path(
    Path(django_settings.BASE_DIR) / "docs" / "openapi.yaml"
)


@cache
def handler() -> WSGIHandler:
    """Made with the first request, when the settings are those of a test."""
    return get_wsgi_application()


schema.app = lambda environ, start_response: handler()(environ, start_response)


@pytest.fixture(autouse=True)
def connection_stays_open() -> Iterator[None]:
    """Keep the test's transaction across requests, as Django's own test client does."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield
    for signal in signals:
        signal.connect(close_old_connections)


@dataclass(frozen=True)
class Rows:
    """Ids of what is there, by the word in the address, and how a token begins."""

    ids: dict[str, int]
    prefix: str


@dataclass(frozen=True)
class Caller:
    """What somebody sends to say who they are: a token, and a password to get one."""

    token: str
    password: str

    def headers(self, case: schemathesis.Case[Any]) -> dict[str, str]:
        makes_token = case.operation.path == "/api/v1/tokens" and case.method == "POST"
        sent = self.password if makes_token else self.token
        # The caller reads what it gets as it is: nothing here unpacks an answer.
        plain = {"Accept-Encoding": "identity"}
        return plain | ({"Authorization": sent} if sent else {})


@dataclass(frozen=True)
class World:
    """The rows, and who asks for them, by role."""

    rows: Rows
    callers: dict[str, Caller]


@pytest.fixture(scope="module")
def written(written_once: Write[World]) -> World:
    return written_once(make_world)


def make_world() -> World:
    alice = UserFactory.create(username="alice")
    snapshot = SnapshotFactory.create()
    scope, scoped = token_create(
        by=alice, template_ids=[snapshot.template_id], max_workspaces=9
    )
    rows = make_rows(alice, snapshot, scope=scope)
    callers = {
        "owner": caller(alice),
        "scoped token": Caller(f"Bearer {scoped}", ""),
        "stranger": caller(UserFactory.create()),
        "machine": caller(UserFactory.create(is_service=True)),
        "administrator": caller(UserFactory.create(is_staff=True, is_superuser=True)),
        "nobody": Caller("", ""),
    }
    return World(rows, callers)


def caller(user: User) -> Caller:
    _, secret = token_create(by=user)
    return Caller(f"Bearer {secret}", basic(user.username, PASSWORD))


@pytest.fixture
def world(db: None, written: World) -> World:
    return deepcopy(written)


def make_rows(alice: User, snapshot: Snapshot, *, scope: ApiToken) -> Rows:
    alice.token = scope  # what that gets is hers, too
    workspace = workspace_create(by=alice, template=snapshot.template)
    alice.token = None
    operation = workspace.operations.get()
    engine_states.end_operation(operation, Operation.State.SUCCEEDED)
    engine_states.skip_waiting_steps(operation)
    set_workspace_state(workspace, Workspace.State.READY)
    token, _ = token_create(by=alice, name="to revoke")
    webhook = webhook_create(
        by=alice, url="https://hooks.example.com/", events=["workspace.ready"]
    )
    delivery = WebhookDelivery.objects.create(
        webhook=webhook, event="workspace.ready", body="{}"
    )
    return Rows(
        ids={
            "templates": snapshot.template_id,
            "snapshots": snapshot.pk,
            "workspaces": workspace.pk,
            "operations": operation.pk,
            "lease-policies": LeasePolicy.objects.create(purpose="development").pk,
            "events": workspace.events.latest("pk").pk,
            "findings": _finding_about(workspace).pk,
            "webhooks": webhook.pk,
            "deliveries": delivery.pk,
            "pools": pool_create(
                by=UserFactory.create(is_staff=True),
                template=snapshot.template,
                purpose="ci",
                owner=alice,
                size=1,
            ).pk,
            "mirrors": MirrorFactory.create(template=snapshot.template).pk,
            "processes": ProcessFactory.create().pk,
            "bisections": bisection_start(
                by=alice, template=snapshot.template, good=1, bad=100
            ).pk,
            "shares": Share.objects.create(
                workspace=workspace, person=UserFactory.create(), created_by=alice
            ).pk,
            "server-commands": a_sync_that_waited(
                snapshot.template.site.perforce_server
            ).pk,
            "server-log-uploads": LogUpload.objects.create(
                server=snapshot.template.site.perforce_server,
                name="log",
                size=1,
                state=LogUpload.State.READ,
            ).pk,
            "server-logs": snapshot.template.site.perforce_server_id,
            "perforce-servers": snapshot.template.site.perforce_server_id,
            "plans": snapshot.template.site_id,
            "sandboxes": (sandbox := SandboxFactory.create(owner=alice)).pk,
            "sandbox-hosts": sandbox.host_id,
            "sandbox-policies": SandboxPolicy.objects.create(
                team=Team.objects.create(name="Sandboxes")
            ).pk,
            "p4d-versions": P4dVersion.objects.create(release="2023.1", path="/p4d").pk,
            "verifications": VerificationFactory.create(sandbox__owner=alice).pk,
            "checkpoint-plans": snapshot.template.site.perforce_server_id,
            "verification-plans": snapshot.template.site.perforce_server_id,
            "drill-plans": snapshot.template.site.perforce_server_id,
            "qualification-runs": QualificationRunFactory.create(
                sandbox__owner=alice
            ).pk,
            "moments": MomentFactory.create().pk,
            "probes": snapshot.template.site.perforce_server_id,
            "orphan-rules": snapshot.template.site.perforce_server_id,
            "advice-rules": snapshot.template.site.perforce_server_id,
            "program-releases": snapshot.template.site.perforce_server_id,
        },
        prefix=token.token_key,
    )


def _finding_about(workspace: Workspace) -> Finding:
    now = timezone.now()
    return Finding.objects.create(
        site=workspace.site,
        kind=Finding.Kind.ROW_WITHOUT_CLIENT,
        subject=workspace.client_name,
        sentence="Its client is gone.",
        workspace=workspace,
        first_seen_at=now,
        last_seen_at=now,
    )


def aim_at_rows(case: schemathesis.Case[Any], rows: Rows) -> None:
    """Turn half of the numbers in addresses into ids of rows that are there."""
    parameters: dict[str, Any] = case.path_parameters or {}
    number = parameters.get("id")
    if isinstance(number, int) and number % 2 == 0:
        what = re.findall(r"([a-z-]+)/\{id\}", case.operation.path)[0]
        parameters["id"] = rows.ids.get(what, number)
    for outer in ("webhook", "workspace"):
        number = parameters.get(f"{outer}_pk")
        if isinstance(number, int) and number % 2 == 0:
            parameters[f"{outer}_pk"] = rows.ids[f"{outer}s"]
    if parameters.get("prefix"):
        parameters["prefix"] = rows.prefix


def do_not_wait(case: schemathesis.Case[Any]) -> None:
    """No worker runs here, so what is well formed would be waited for in vain."""
    query: dict[str, Any] = case.query or {}
    if re.fullmatch(r"[0-9]+([.]0*)?", str(query.get("wait"))):
        query["wait"] = 0


# What is well formed can still be refused with 400: a cursor that is not ours, a
# template that is not there. That it matters who asks is checked once for all roles.
EXCLUDED: list[CheckFunction] = [positive_data_acceptance]


GENERATED = settings(
    deadline=None,
    derandomize=True,
    # The explicit ones, examples of the schema, are among the others.
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@schema.parametrize()
@settings(GENERATED, max_examples=1)
def test_every_answer_is_documented_and_none_is_a_500(
    case: schemathesis.Case[Any], world: World
) -> None:
    ask_as_everybody(case, world)


@pytest.mark.integration
@schema.parametrize()
@settings(GENERATED, max_examples=10)
def test_every_answer_of_many_is_documented_and_none_is_a_500(
    case: schemathesis.Case[Any], world: World
) -> None:
    ask_as_everybody(case, world)


def ask_as_everybody(case: schemathesis.Case[Any], world: World) -> None:
    aim_at_rows(case, world.rows)
    do_not_wait(case)

    for role, caller in world.callers.items():
        excluded = EXCLUDED if role == "owner" else [*EXCLUDED, ignored_auth]
        with undone(), named(role):
            case.call_and_validate(
                headers=caller.headers(case),
                excluded_checks=excluded,
            )


@contextmanager
def named(role: str) -> Iterator[None]:
    """Let a failure say who asked."""
    try:
        yield
    except BaseException as failure:
        failure.add_note(f"Asked as {role}.")
        raise
