"""What Prometheus reads: formats, figures, few labels, and who may read it."""

from __future__ import annotations

import datetime as dt

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
from prometheus_client.parser import text_string_to_metric_families as parse_plain

from provisioner.accounts.models import User
from provisioner.accounts.tokens import token_create
from provisioner.engine.models import Operation
from provisioner.probes.models import ProbeRun
from provisioner.sites.actions.pausing import perforce_server_pause
from provisioner.workspaces.models import Workspace
from tests.support.factories import SandboxFactory, TemplateFactory

OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def scrape(by: User, *, accept: str = OPENMETRICS) -> str:
    _, secret = token_create(by=by)
    answer = Client().get(
        "/metrics", headers={"Authorization": f"Bearer {secret}", "Accept": accept}
    )
    assert answer.status_code == 200, answer.text
    return answer.text


def samples(text: str) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in parse(text)
        for sample in family.samples
    }


def value(found: Samples, name: str, **labels: str) -> float | None:
    return found.get((f"cloneyard_{name}", frozenset(labels.items())))


def test_workspaces_and_times_to_ready_are_told(admin: User, ready: Workspace) -> None:
    now = timezone.now()
    ready.operations.update(
        state=Operation.State.SUCCEEDED,
        created_at=now - dt.timedelta(seconds=90),
        ended_at=now - dt.timedelta(seconds=60),
    )
    Workspace.objects.filter(pk=ready.pk).update(unique_bytes=4096)

    found = samples(scrape(admin))

    here = {"site": ready.site.name, "state": "ready"}
    assert value(found, "workspaces", **here) == 1
    assert value(found, "workspaces_unique_bytes", **here) == 4096
    assert value(found, "workspaces_made_1h") == 1
    assert value(found, "request_to_ready_seconds", quantile="0.95") == pytest.approx(
        30
    )
    ended = {"kind": "provision", "state": "succeeded"}
    assert value(found, "operations_ended_1h", **ended) == 1


@pytest.mark.parametrize(
    ("state", "seconds", "minutes_ago", "outcome"),
    [
        ("succeeded", 59, 4, "in_time"),
        ("succeeded", 61, 4, "late"),
        ("failed", 1, 4, "failed"),
        ("failed", 1, 6, None),
        ("canceled", 99, 4, None),
        ("refused", 99, 4, None),
    ],
)
def test_requests_that_ended_are_told_by_their_outcome(
    state: str,
    seconds: int,
    minutes_ago: int,
    outcome: str | None,
    admin: User,
    ready: Workspace,
) -> None:
    ended = timezone.now() - dt.timedelta(minutes=minutes_ago)
    created = ended - dt.timedelta(seconds=seconds)
    ready.operations.update(state=state, created_at=created, ended_at=ended)

    found = samples(scrape(admin))

    settled = {
        each: value(found, "requests_settled_5m", outcome=each)
        for each in ("in_time", "late", "failed")
    }
    assert settled == {each: float(each == outcome) for each in settled}
    assert value(found, "ready_objective_seconds") == 60


def test_what_was_made_ahead_was_no_request(admin: User, ready: Workspace) -> None:
    now = timezone.now()
    ready.operations.update(state="succeeded", created_at=now, ended_at=now)
    Workspace.objects.filter(pk=ready.pk).update(made_ahead_at=now)

    found = samples(scrape(admin))

    assert value(found, "requests_settled_5m", outcome="in_time") == 0


def test_sandboxes_are_told_by_host(admin: User) -> None:
    sandbox = SandboxFactory.create(state="stopped")
    SandboxFactory.create(
        host=sandbox.host,
        state="retired",
        retired_at=timezone.now(),
        status_code="host_not_asked",
    )

    found = samples(scrape(admin))

    host = sandbox.host.name
    assert value(found, "sandboxes", host=host, state="stopped") == 1
    assert value(found, "sandboxes_left_at_host", host=host) == 1


def test_nothing_made_is_no_sample_rather_than_zero_seconds(admin: User) -> None:
    found = samples(scrape(admin))
    assert value(found, "workspaces_made_1h") == 0
    assert value(found, "request_to_ready_seconds", quantile="0.95") is None


def test_a_paused_server_is_told(admin: User, ready: Workspace) -> None:
    server = ready.site.perforce_server
    assert value(samples(scrape(admin)), "perforce_paused", server=server.name) is None
    perforce_server_pause(by=admin, server=server, reason="A checkpoint.")
    assert value(samples(scrape(admin)), "perforce_paused", server=server.name) == 1


def test_the_last_round_of_a_probe_is_told(admin: User, ready: Workspace) -> None:
    server = ready.site.perforce_server
    now = timezone.now()
    earlier = now - dt.timedelta(minutes=30)
    ProbeRun.objects.create(server=server, at=earlier, gap="Paused.")
    lately = now - dt.timedelta(minutes=15)
    ProbeRun.objects.create(server=server, at=lately, lapse_seconds=2.5, change=7)
    found = samples(scrape(admin))
    assert value(found, "probe_seconds", server=server.name) == 2.5
    assert value(found, "probe_failing", server=server.name) == 0

    ProbeRun.objects.create(server=server, at=now, gap="No host worker is running.")
    found = samples(scrape(admin))
    assert value(found, "probe_seconds", server=server.name) is None
    assert value(found, "probe_failing", server=server.name) == 1


def test_older_scrapers_get_plain_text(admin: User, ready: Workspace) -> None:
    plain = scrape(admin, accept="*/*")
    names = {family.name for family in parse_plain(plain)}
    assert "cloneyard_workspaces" in names
    assert "# EOF" not in plain


def test_no_label_names_a_person_a_template_or_a_workspace(
    admin: User, ready: Workspace
) -> None:
    text = scrape(admin)
    assert ready.name not in text
    assert ready.owner.username not in text
    assert f'"{ready.template.name}"' not in text


def test_a_scrape_takes_the_same_few_queries_however_many_there_are(
    admin: User, ready: Workspace
) -> None:
    _, secret = token_create(by=admin)
    counts = []
    for _ in range(3):  # the first also notes that the token was used
        with CaptureQueriesContext(connection) as queries:
            Client().get("/metrics", headers={"Authorization": f"Bearer {secret}"})
        counts.append(len(queries))
        TemplateFactory.create_batch(5)
    assert counts[1] == counts[2] <= 45


@pytest.mark.parametrize("who", ["alice", "carol"])
def test_it_is_for_administrators_tokens(
    who: str, request: pytest.FixtureRequest
) -> None:
    _, secret = token_create(by=request.getfixturevalue(who))
    answer = Client().get("/metrics", headers={"Authorization": f"Bearer {secret}"})
    assert answer.status_code == 403


def test_without_a_token_it_asks_for_one(as_nobody: Client) -> None:
    answer = as_nobody.get("/metrics")
    assert answer.status_code == 401
    assert "WWW-Authenticate" in answer.headers
