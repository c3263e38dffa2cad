"""Records spans with OpenTelemetry's SDK, and sends them by OTLP over HTTP.

They are sent in batches by a thread of their own. An endpoint that is away delays
nothing: what does not fit in the queue is dropped.

Source: https://opentelemetry.io/docs/specs/otel/trace/sdk/
"""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from provisioner import __version__
from provisioner.lib.tracing import Facts, Kind

SEND_WITHIN_SECONDS = 10
_KINDS = {kind: trace.SpanKind[kind.name] for kind in Kind}
_HEADER = "traceparent"
_id_to_come: ContextVar[int | None] = ContextVar("id_to_come", default=None)


class Ids(RandomIdGenerator):
    """Random ids, except of spans that others name before they have seen them."""

    def generate_span_id(self) -> int:
        return _id_to_come.get() or super().generate_span_id()


def provider_of(
    endpoint: str, *, headers: Mapping[str, str], part_sampled: float
) -> TracerProvider:
    """Return what records spans and sends them to an endpoint.

    A part of the traces that begin here is sampled; one that began elsewhere, if it
    was there.
    """
    provider = TracerProvider(
        resource=Resource.create(
            {
                "service.name": "cloneyard",
                "service.version": __version__,
                "host.name": socket.gethostname(),
            }
        ),
        sampler=ParentBased(TraceIdRatioBased(part_sampled)),
        id_generator=Ids(),
    )
    exporter = OTLPSpanExporter(
        endpoint=f"{endpoint.rstrip('/')}/v1/traces",
        headers=dict(headers),
        timeout=SEND_WITHIN_SECONDS,
    )
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


class OpenTelemetryRecorder:
    """Records each span of `lib.tracing`."""

    def __init__(self, provider: TracerProvider) -> None:
        self._tracer = provider.get_tracer("cloneyard", __version__)
        self._w3c = TraceContextTextMapPropagator()

    @contextmanager
    def span(
        self,
        name: str,
        *,
        kind: Kind,
        facts: Facts,
        within: str,
        key: str,
        after: str,
    ) -> Iterator[Recorded]:
        context = self._w3c.extract({_HEADER: within}, Context()) if within else None
        outer = trace.get_current_span(context).get_span_context()
        is_first = not outer.is_valid  # no trace, so no ids in it
        links = [] if is_first or not after else [trace.Link(_context_of(after, outer))]
        token = _id_to_come.set(None if is_first or not key else _id_of(key, outer))
        try:
            span = self._tracer.start_span(
                name,
                context=context,
                kind=_KINDS[kind],
                attributes=facts,
                links=links,
                record_exception=False,  # its text may name files
                set_status_on_exception=False,
            )
        finally:
            _id_to_come.reset(token)
        with trace.use_span(
            span,
            end_on_exit=True,
            record_exception=False,
            set_status_on_exception=False,
        ):
            try:
                yield Recorded(span)
            except BaseException as error:
                kind_of_error = type(error).__name__
                span.set_attribute("error.type", kind_of_error)
                span.set_status(trace.StatusCode.ERROR, kind_of_error)
                raise

    def traceparent(self) -> str:
        carrier: dict[str, str] = {}
        self._w3c.inject(carrier)
        return carrier.get(_HEADER, "")

    def trace_id(self) -> str:
        context = trace.get_current_span().get_span_context()
        return trace.format_trace_id(context.trace_id) if context.is_valid else ""


class Recorded:
    """A span that is recorded."""

    def __init__(self, span: trace.Span) -> None:
        self._span = span

    def note(self, facts: Facts, *, name: str = "", failed: bool = False) -> None:
        self._span.set_attributes(facts)
        if name:
            self._span.update_name(name)
        if failed:
            self._span.set_status(trace.StatusCode.ERROR)


def _id_of(key: str, outer: trace.SpanContext) -> int:
    """Return the id of the span with a key in a trace."""
    text = f"{outer.trace_id:032x}.{key}"
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest) or 1


def _context_of(key: str, outer: trace.SpanContext) -> trace.SpanContext:
    return trace.SpanContext(
        trace_id=outer.trace_id,
        span_id=_id_of(key, outer),
        is_remote=True,
        trace_flags=outer.trace_flags,
    )
