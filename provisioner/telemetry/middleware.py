"""A span for each request."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from provisioner.lib import request_ids, tracing

METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}


class SpanMiddleware:
    """Record each request, inside the span that its caller names in `traceparent`.

    Source: https://opentelemetry.io/docs/specs/semconv/http/http-spans/
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        method = request.method if request.method in METHODS else "_OTHER"
        with tracing.span(
            str(method),
            kind=tracing.Kind.SERVER,
            facts={
                "http.request.method": str(method),
                "cloneyard.request_id": request_ids.current(),
            },
            within=request.META.get("HTTP_TRACEPARENT", ""),
        ) as span:
            answer = self.get_response(request)
            found = request.resolver_match
            route = f"/{found.route}" if found else ""
            span.note(
                {
                    "http.route": route,
                    "http.response.status_code": answer.status_code,
                },
                name=f"{method} {route}".strip(),
                failed=answer.status_code >= 500,
            )
        return answer
