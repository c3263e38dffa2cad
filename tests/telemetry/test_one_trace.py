"""One request, over real processes: its spans are one tree, its lines have one id."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from provisioner.accounts.models import User
from provisioner.accounts.tokens import token_create
from provisioner.catalog.models import Template
from provisioner.cli import cloneyard
from provisioner.demo.processes import Child, manage
from provisioner.engine.models import Operation, Step
from provisioner.lib import request_ids
from provisioner.notify.models import Webhook, WebhookDelivery, WebhookEvent
from tests.support.factories import UserFactory
from tests.support.lab import Lab
from tests.support.otlp_receiver import OtlpReceiver, Received, otlp_receiver
from tests.support.web_servers import web_server
from tests.support.webhook_receiver import Listener, listening

pytestmark = [pytest.mark.integration, pytest.mark.django_db(transaction=True)]

WITHIN_SECONDS = 60.0
TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = f"00-{TRACE_ID}-00f067aa0ba902b7-01"
REQUEST_ID = "deploy-4711"
SECRET = "collector-secret"


@dataclass(frozen=True)
class Installation:
    port: int
    web: Child
    worker: Child
    receiver: OtlpReceiver
    listener: Listener

    def ask(
        self, method: str, path: str, *, by: User, body: Any = None, **headers: str
    ) -> tuple[Any, dict[str, str]]:
        _, token = token_create(by=by)
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/api/v1/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Authorization": f"Bearer {token}",
                "Content-Type": "application/json",
                **headers,
            },
        )
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return json.load(answer), dict(answer.headers)


def wait_for(is_so: Callable[[], Any]) -> None:
    ends = time.monotonic() + WITHIN_SECONDS
    while not is_so():
        assert time.monotonic() < ends
        time.sleep(0.05)


@pytest.fixture
def installation(
    lab: Lab, jobs_emptied: None, tmp_path: Path
) -> Iterator[Installation]:
    with otlp_receiver() as receiver, listening() as listener:
        environment = {
            "DATABASE_NAME": connection.settings_dict["NAME"],
            "ONTAP_PASSWORD": lab.ontap["password"],
            "P4PASSWD": lab.perforce["password"],
            "LOG_DIR": str(lab.root / "logs"),
            "LOG_FORMAT": "json",
            "WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8",
            "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint,
            "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer%20{SECRET}",
            "OTEL_BSP_SCHEDULE_DELAY": "100",
        }
        worker = Child(
            "worker", manage("worker"), log_dir=tmp_path, environment=environment
        )
        try:
            with web_server(tmp_path, environment) as (web, port):
                yield Installation(port, web, worker, receiver, listener)
        finally:
            worker.stop()


def lines_of(child: Child) -> list[dict[str, Any]]:
    text = child.log_path.read_text()
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def is_one_tree(spans: list[Received], *, root: str) -> bool:
    ids = {span.span_id for span in spans}
    return all(span.within in ids | {root} for span in spans)


def test_from_a_click_to_the_last_step(
    installation: Installation, published_template: Template, lab: Lab
) -> None:
    alice: User = UserFactory.create(username="alice", uid=20001, gid=20000)
    Webhook.objects.create(
        owner=alice,
        url=installation.listener.url,
        events=[WebhookEvent.WORKSPACE_READY],
    )
    lab.break_ontap(
        {"method": "POST", "path": "/api/storage/volumes", "status": 503, "times": 1}
    )

    made, headers = installation.ask(
        "POST",
        "workspaces",
        by=alice,
        body={"template": published_template.name, "name": "traced"},
        **{"traceparent": CALLER, "X-Request-ID": REQUEST_ID},
    )

    operation = Operation.objects.get(subject__workspace=made["id"])
    delivered = WebhookDelivery.objects.filter(state="delivered")
    wait_for(delivered.exists)
    steps = list(operation.steps.filter(state=Step.State.DONE))
    receiver = installation.receiver
    attempts = sum(step.attempt for step in steps)
    wait_for(lambda: len(steps_in(receiver.trace(TRACE_ID))) == attempts)
    wait_for(lambda: "deliver webhook" in names(receiver.trace(TRACE_ID)))
    installation.worker.stop()
    assert_the_command_line_is_in_the_trace_of_its_job(installation, alice)

    spans = receiver.trace(TRACE_ID)
    operation.refresh_from_db()
    assert operation.state == Operation.State.SUCCEEDED
    assert is_one_tree(spans, root="00f067aa0ba902b7")
    [asked] = [span for span in spans if span.name == "POST /api/v1/workspaces"]
    [started] = [span for span in spans if span.name == "start provision"]
    assert asked.facts["http.response.status_code"] == 202
    assert started.within == asked.span_id
    assert {span.within for span in steps_in(spans)} == {started.span_id}
    assert {span.facts["cloneyard.step"] for span in steps_in(spans)} == {
        step.name for step in steps
    }
    assert_a_retry_is_linked(spans)
    assert_remote_calls_are_inside_of_steps(spans)
    assert_nothing_private_is_in(receiver, alice, published_template)
    assert_lines_have_one_id(installation, operation)
    assert headers["X-Request-ID"] == REQUEST_ID == operation.request_id
    [heard] = installation.listener.heard
    [delivery] = [span for span in spans if span.name == "deliver webhook"]
    assert heard.headers["traceparent"] == f"00-{TRACE_ID}-{delivery.span_id}-01"


def assert_the_command_line_is_in_the_trace_of_its_job(
    installation: Installation, alice: User
) -> None:
    _, token = token_create(by=alice)
    trace_id = "0af7651916cd43dd8448eb211c80319c"
    subprocess.run(
        [sys.executable, cloneyard.__file__, "list"],
        env={
            "CLONEYARD_SERVER": f"http://127.0.0.1:{installation.port}",
            "CLONEYARD_TOKEN": token,
            "TRACEPARENT": f"00-{trace_id}-b7ad6b7169203331-01",
        },
        check=True,
        timeout=WITHIN_SECONDS,
        stdout=subprocess.DEVNULL,
    )
    receiver = installation.receiver
    wait_for(lambda: "GET /api/v1/workspaces" in names(receiver.trace(trace_id)))


def steps_in(spans: list[Received]) -> list[Received]:
    return [span for span in spans if span.name.startswith("step ")]


def names(spans: list[Received]) -> set[str]:
    return {span.name for span in spans}


def assert_a_retry_is_linked(spans: list[Received]) -> None:
    cloned = [span for span in steps_in(spans) if span.facts["cloneyard.attempt"] == 2]
    [again] = cloned
    [before] = [span for span in spans if span.span_id in again.links]
    assert before.facts["cloneyard.step"] == again.facts["cloneyard.step"] == "clone"
    assert before.facts["cloneyard.attempt"] == 1
    assert before.facts["cloneyard.outcome"] == "retrying"
    assert before.has_failed
    assert again.facts["cloneyard.outcome"] == "done"
    assert not again.has_failed
    assert again.facts["cloneyard.workflow"] == "provision"
    assert again.facts["cloneyard.queue"] == "storage"


def assert_remote_calls_are_inside_of_steps(spans: list[Received]) -> None:
    steps = {span.span_id: span for span in steps_in(spans)}
    calls = {
        (str(steps[span.within].facts["cloneyard.step"]), span.name)
        for span in spans
        if span.within in steps and span.name != "deliver webhook"
    }
    assert ("clone", "POST /storage/volumes") in calls
    assert ("client", "p4 client") in calls
    assert any(name == "PATCH /storage/volumes/{id}" for _, name in calls)


def assert_nothing_private_is_in(
    receiver: OtlpReceiver, owner: User, template: Template
) -> None:
    sent = b"".join(receiver.raw)
    volume = Operation.objects.latest("pk").subject.workspace.volume_name
    for private in (owner.username, template.name, "traced", volume, SECRET):
        assert private.encode() not in sent, private
    said = {headers["authorization"] for headers in receiver.headers}
    assert said == {f"Bearer {SECRET}"}


def assert_lines_have_one_id(installation: Installation, operation: Operation) -> None:
    by_worker = [
        line
        for line in lines_of(installation.worker)
        if line.get("operation_id") == operation.pk or "delivery_id" in line
    ]
    assert {"workspace_state_changed", "step_will_be_retried", "webhook_delivered"} <= {
        line["event"] for line in by_worker
    }
    for line in by_worker:
        assert line[request_ids.KEY] == REQUEST_ID, line
        assert line["trace_id"] == TRACE_ID, line
    by_web = [
        line
        for line in lines_of(installation.web)
        if line.get("request") == "POST /api/v1/workspaces"
    ]
    assert {"request_started", "request_finished"} <= {line["event"] for line in by_web}
    for line in by_web:
        assert line[request_ids.KEY] == REQUEST_ID, line
        assert line["trace_id"] == TRACE_ID, line
