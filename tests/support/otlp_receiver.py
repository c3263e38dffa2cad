"""A receiver of traces by OTLP over HTTP: it keeps the spans that are sent to it.

Source: https://opentelemetry.io/docs/specs/otlp/#otlphttp
"""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


@dataclass(frozen=True, kw_only=True)
class Received:
    """A span; ids are hexadecimal, `within` is "" for the first of a trace."""

    trace_id: str
    span_id: str
    within: str
    name: str
    facts: dict[str, str | int]
    links: tuple[str, ...]
    has_failed: bool


@dataclass
class OtlpReceiver:
    port: int
    spans: list[Received] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def take(self, body: bytes, headers: dict[str, str]) -> None:
        self.raw.append(body)
        self.headers.append(headers)
        sent = ExportTraceServiceRequest.FromString(body)
        for resource in sent.resource_spans:
            for scope in resource.scope_spans:
                self.spans.extend(map(_received, scope.spans))

    def trace(self, trace_id: str) -> list[Received]:
        return [span for span in list(self.spans) if span.trace_id == trace_id]


def _received(span: Any) -> Received:
    return Received(
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        within=span.parent_span_id.hex(),
        name=span.name,
        facts={
            each.key: each.value.string_value or each.value.int_value
            for each in span.attributes
        },
        links=tuple(link.span_id.hex() for link in span.links),
        has_failed=span.status.code == span.status.STATUS_CODE_ERROR,
    )


def _handler(receiver: OtlpReceiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            receiver.take(body, dict(self.headers))
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler


@contextmanager
def otlp_receiver() -> Iterator[OtlpReceiver]:
    receiver = OtlpReceiver(port=0)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(receiver))
    receiver.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
