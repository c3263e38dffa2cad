"""Every refusal becomes {"detail": sentence, "code": stable word, "request_id"}."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.http import Http404, HttpRequest, JsonResponse
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import exception_handler as rest_framework_handler

from provisioner.lib import limits, request_ids
from provisioner.lib.refusals import ActionRefused, InvalidRequest

# What the domain refuses.
# What is refused before the domain sees it, and our own failure.
OTHER_CODES = {
    "parse_error": "The body is not JSON.",
    "not_authenticated": "Nobody is signed in.",
    "authentication_failed": "The token, or the username and password, are wrong.",
    "permission_denied": "A session needs its CSRF token.",
    "throttled": "Too many requests with this token, or failures to sign in. See "
    "Retry-After.",
    "not_found": "Nothing is here, or you may not see it.",
    "method_not_allowed": "This address does not accept this method.",
    "too_large": "The body is larger than this API accepts.",
    "unsupported_media_type": "The body is not application/json.",
    "database_away": "The database does not answer. See Retry-After.",
    "internal_error": "Something went wrong in Cloneyard itself.",
}


def _meanings() -> Iterator[tuple[str, str]]:
    yield from OTHER_CODES.items()
    refusals = [ActionRefused]
    while refusals:
        refusal = refusals.pop()
        refusals.extend(refusal.__subclasses__())
        yield refusal.code, " ".join((refusal.__doc__ or "").split())


# Those of LimitSerializer.
LIMIT_FIELDS = (
    *(
        "code",
        "title",
        "subject",
        "part",
        "used",
        "allowed",
        "percent",
        "unit",
        "as_of",
    ),
)
# Every code with its meaning, for the schema.
CODES = sorted(_meanings())

NOT_SIGNED_IN = (
    "Sign in first: send “Authorization: Bearer TOKEN”. "
    "POST /api/v1/tokens gives a token for your username and password."
)
DATABASE_AWAY = (
    "The database is not answering. Nothing is lost; retry in a few seconds. The "
    "request may have been carried out: with the same Idempotency-Key it is not "
    "repeated."
)


def exception_handler(exc: Exception, context: dict[str, Any]) -> Response | None:
    """Return the answer to a view's exception, None for an unexpected one."""
    if isinstance(exc, ActionRefused):
        return Response(traceable(refusal_shape(exc)), status=exc.http_status)
    if isinstance(exc, Http404):
        exc = exceptions.NotFound(OTHER_CODES["not_found"])
    elif isinstance(exc, DjangoPermissionDenied):
        exc = exceptions.PermissionDenied()
    elif isinstance(exc, exceptions.NotAuthenticated):
        exc.detail = exceptions.ErrorDetail(NOT_SIGNED_IN, exc.default_code)
    response = rest_framework_handler(exc, context)
    if response is not None:
        assert isinstance(exc, exceptions.APIException)
        response.data = traceable(_as_error(exc))
    return response


def traceable(body: dict[str, Any]) -> dict[str, Any]:
    """Return an error with the id by which the logs know its request."""
    return {**body, "request_id": request_ids.current()}


def refusal_shape(refused: ActionRefused) -> dict[str, Any]:
    """Return a refusal as ErrorSerializer describes it, without its request."""
    body: dict[str, Any] = {"detail": refused.sentence, "code": refused.code}
    if isinstance(refused, limits.LimitReached):
        body["limits"] = [
            {name: getattr(limit, name) for name in LIMIT_FIELDS}
            for limit in refused.limits
        ]
    if isinstance(refused, InvalidRequest) and refused.field:
        body["fields"] = {refused.field: refused.message}
    if "workspace" in refused.facts:
        body["workspace"] = refused.facts["workspace"]
    return body


def _as_error(exc: exceptions.APIException) -> dict[str, Any]:
    if isinstance(exc, exceptions.ValidationError):
        fields = dict(_by_field(exc.detail))
        sentences = (
            f"{field}: {sentence}" if field else sentence
            for field, sentence in fields.items()
        )
        return {"detail": " ".join(sentences), "code": "invalid", "fields": fields}
    assert isinstance(exc.detail, exceptions.ErrorDetail)
    return {"detail": str(exc.detail), "code": exc.detail.code}


def _by_field(detail: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the first sentence about each field; "" stands for the whole body."""
    if isinstance(detail, dict):
        for name, inner in detail.items():
            here = path if name == "non_field_errors" else f"{path}.{name}".lstrip(".")
            yield from _by_field(inner, here)
    elif isinstance(detail, list):
        yield from _by_field(detail[0], path)
    else:
        yield path, str(detail)


def server_error(request: HttpRequest) -> JsonResponse:
    """Answer an unexpected error. The details are in the log only."""
    detail = (
        "Internal error. Retrying may help. Administrators find the details in the log."
    )
    body = {"detail": detail, "code": "internal_error"}
    return JsonResponse(traceable(body), status=500)


def database_away() -> JsonResponse:
    """Answer while the database is unreachable or has aborted a transaction."""
    body = {"detail": DATABASE_AWAY, "code": "database_away"}
    return JsonResponse(traceable(body), status=503)
