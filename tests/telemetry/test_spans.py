"""What spans say, and that nobody pays for those that nobody records."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from django.conf import settings
from django.test import Client
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pytest_django import Settings

from provisioner.gateways.ontap.connection import template_of
from provisioner.lib import tracing
from provisioner.lib.tracing import Kind
from provisioner.telemetry.recorder import Ids, OpenTelemetryRecorder

HTTP = Kind.SERVER
TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = f"00-{TRACE_ID}-00f067aa0ba902b7-01"
MIDDLEWARE = "provisioner.telemetry.middleware.SpanMiddleware"


@pytest.fixture
def recorded() -> Iterator[InMemorySpanExporter]:
    kept = InMemorySpanExporter()
    provider = TracerProvider(id_generator=Ids(), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    tracing.record_with(OpenTelemetryRecorder(provider))
    try:
        yield kept
    finally:
        tracing.record_with(None)


def test_without_an_endpoint_nothing_is_recorded_or_asked() -> None:
    calls = []
    sys.setprofile(lambda frame, event, _: calls.append((event, frame.f_code.co_name)))
    try:
        with tracing.span("GET", kind=HTTP, facts={"a": 1}) as span:
            span.note({"b": 2})
        ids = tracing.traceparent(), tracing.trace_id()
    finally:
        sys.setprofile(None)

    assert ids == ("", "")
    names = [name for event, name in calls if event == "call"]
    expected = ["span", "__enter__", "note", "__exit__", "traceparent", "trace_id"]
    assert names == expected
    assert MIDDLEWARE not in settings.MIDDLEWARE
    assert "provisioner.telemetry" not in settings.INSTALLED_APPS


def test_inner_spans_are_inside_of_outer_ones(recorded: InMemorySpanExporter) -> None:
    with tracing.span("GET /a", kind=HTTP, within=CALLER):
        assert tracing.trace_id() == TRACE_ID
        with tracing.span("p4 sync", kind=Kind.CLIENT, facts={"n": 3}) as span:
            span.note({"m": "x"}, name="p4 sync", failed=True)

    inner, outer = recorded.get_finished_spans()
    assert outer.parent is not None
    assert f"{outer.parent.span_id:016x}" == "00f067aa0ba902b7"
    assert inner.parent == outer.context
    assert dict(inner.attributes or {}) == {"n": 3, "m": "x"}
    assert not inner.status.is_ok
    assert tracing.traceparent() == ""


def test_what_is_raised_is_told_by_its_kind_alone(
    recorded: InMemorySpanExporter,
) -> None:
    with (
        pytest.raises(ValueError, match="secret"),
        tracing.span("step a", kind=Kind.CONSUMER),
    ):
        raise ValueError("/depot/secret.c")

    [span] = recorded.get_finished_spans()
    assert dict(span.attributes or {}) == {"error.type": "ValueError"}
    assert "secret" not in span.to_json()


def test_a_later_span_links_to_one_that_it_never_saw(
    recorded: InMemorySpanExporter,
) -> None:
    with tracing.span("step a", kind=Kind.CONSUMER, within=CALLER, key="7.1"):
        pass
    with tracing.span(
        "step a", kind=Kind.CONSUMER, within=CALLER, key="7.2", after="7.1"
    ):
        pass

    first, second = recorded.get_finished_spans()
    assert first.context is not None
    assert second.context is not None
    assert [link.context.span_id for link in second.links] == [first.context.span_id]
    assert first.context.span_id != second.context.span_id


def test_spans_outside_of_any_trace_have_random_ids(
    recorded: InMemorySpanExporter,
) -> None:
    for _ in range(2):
        with tracing.span("a", kind=Kind.CONSUMER, key="7.1", after="7.0"):
            pass

    first, second = recorded.get_finished_spans()
    assert first.context is not None
    assert second.context is not None
    assert first.context.trace_id != second.context.trace_id
    assert first.context.span_id != second.context.span_id
    assert not first.links


@pytest.mark.parametrize("header", ["", "x", "00-0-0-01", f"00-{'0' * 32}-{'0' * 16}"])
def test_a_caller_who_names_no_trace_begins_one(
    header: str, recorded: InMemorySpanExporter
) -> None:
    with tracing.span("GET", kind=HTTP, within=header):
        pass

    [span] = recorded.get_finished_spans()
    assert span.parent is None


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "route", "status"),
    [("/help/cli/?q=secret", "/help/<name>/", 302), ("/nowhere/secret", "", 404)],
)
def test_a_request_is_told_by_its_route(
    path: str,
    route: str,
    status: int,
    recorded: InMemorySpanExporter,
    as_nobody: Client,
    settings: Settings,
) -> None:
    settings.MIDDLEWARE = [
        *settings.MIDDLEWARE[:2],
        MIDDLEWARE,
        *settings.MIDDLEWARE[2:],
    ]

    answer = as_nobody.get(path, headers={"X-Request-ID": "r-1"})

    [span] = recorded.get_finished_spans()
    assert answer.status_code == status
    assert span.name == f"GET {route}".strip()
    assert dict(span.attributes or {}) == {
        "http.request.method": "GET",
        "http.route": route,
        "http.response.status_code": status,
        "cloneyard.request_id": "r-1",
    }


@pytest.mark.parametrize(
    ("path", "template"),
    [
        ("/storage/volumes", "/storage/volumes"),
        ("/storage/volumes/0b1e-4/snapshots/9", "/storage/volumes/{id}/snapshots/{id}"),
        ("/cluster/jobs/4f", "/cluster/jobs/{id}"),
        ("/storage/volumes/a0/files/src%2Fkey.c", "/storage/volumes/{id}/files/{path}"),
        ("/storage/qtrees?start.name=x", "/storage/qtrees"),
    ],
)
def test_paths_of_ontap_are_told_without_ids_and_files(
    path: str, template: str
) -> None:
    assert template_of(path) == template


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318"}, "has to look like http:"),
        ({"OTEL_TRACES_SAMPLER_ARG": "2"}, "has to be at most 1"),
        ({"OTEL_EXPORTER_OTLP_HEADERS": "Bearer x"}, "has to be a list"),
    ],
)
def test_what_is_configured_wrongly_stops_the_process(
    variables: dict[str, str], sentence: str
) -> None:
    endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}
    ran = subprocess.run(
        [sys.executable, "-c", "import provisioner.settings"],
        cwd=settings.BASE_DIR,
        env={**os.environ, **endpoint, **variables},
        capture_output=True,
        text=True,
    )

    assert ran.returncode != 0
    assert sentence in ran.stderr.splitlines()[-1]
