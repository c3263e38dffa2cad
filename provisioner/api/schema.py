"""Schema details beyond types: refusals, waiting, pages, authentication."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiJsonRenderer
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    OpenApiExample,
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
)
from drf_spectacular.views import SpectacularJSONAPIView
from rest_framework.serializers import BaseSerializer, Serializer

from provisioner.accounts.authentication import (
    PasswordAuthentication,
    TokenAuthentication,
)
from provisioner.api.examples import refusals_of
from provisioner.api.shapes import ErrorSerializer

REFUSALS = {
    400: "The request is malformed.",
    401: "Not signed in, or a wrong token or password.",
    403: "You may not do this.",
    404: "Nothing is here, or you may not see it.",
    409: "Not possible now; the code says why.",
    413: "The body is too large.",
    415: "The body is not application/json.",
    429: "Too many requests with this token, or attempts to sign in that failed; "
    "Retry-After says how long to wait.",
    503: "The database is not answering; Retry-After says when to retry.",
}
WITH_BODY = (400, 413, 415)

LOCATION = OpenApiParameter(
    "Location",
    OpenApiTypes.URI,
    OpenApiParameter.HEADER,
    description="The address to poll.",
    response=[201, 202],
)
RETRY_AFTER = OpenApiParameter(
    "Retry-After",
    OpenApiTypes.INT,
    OpenApiParameter.HEADER,
    description="Seconds to wait before retrying; after a 202 that was not held, "
    "before polling.",
    response=[202, 429, 503],
)
REPLAYED = OpenApiParameter(
    "Idempotency-Replayed",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    enum=["true"],
    description="An earlier request with this key created it; this one did nothing.",
    response=[201, 202],
)
REQUEST_KEY = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[ -~]+$"},
    OpenApiParameter.HEADER,
    description="Any string of yours. A request repeated with the same key within 7 "
    "days answers with what the first one made, also when both come at once; one that "
    "says something else is refused. A refused request made nothing: its key is free.",
)


def described(
    summary: str,
    description: str = "",
    *,
    ok: type[Serializer[Any]] | BaseSerializer[Any] | OpenApiTypes | None,
    status: int = 200,
    media_type: str = "",
    also: Mapping[int, type[Serializer[Any]]] | None = None,
    refused: Sequence[int] = (),
    parameters: Sequence[OpenApiParameter | type[Serializer[Any]]] = (),
    body: type[Serializer[Any]] | OpenApiTypes | None = None,
    body_type: str = "",
    operation_id: str | None = None,
    by_anybody: bool = False,
    examples: Sequence[OpenApiExample] = (),
) -> Callable[[Any], Any]:
    """Describe an operation of the API, with every answer that it can give.

    `body_type` is the media type of a body that is not JSON.

    With `examples`, the common refusals get examples, too.
    """
    is_json = body is not None and not body_type
    statuses = {401, 429, 503, *refused, *(WITH_BODY if is_json else ())}
    if examples:
        examples = [*examples, *refusals_of(statuses)]
    if status in (201, 202):
        parameters = (*parameters, LOCATION)
    parameters = (*parameters, RETRY_AFTER)
    return extend_schema(
        operation_id=operation_id,
        summary=summary,
        auth=[] if by_anybody else None,
        description=description or None,
        request={body_type: body} if body_type else body,
        parameters=list(parameters),
        examples=list(examples),
        responses={
            (status, media_type) if media_type else status: ok,
            **(also or {}),
            **{
                refusal: OpenApiResponse(ErrorSerializer, REFUSALS[refusal])
                for refusal in sorted(statuses)
            },
        },
    )


class TokenScheme(OpenApiAuthenticationExtension):
    """`Authorization: Bearer TOKEN`."""

    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {"type": "http", "scheme": "bearer"}


class PasswordScheme(OpenApiAuthenticationExtension):
    """HTTP basic, to get a token."""

    target_class = PasswordAuthentication
    name = "password"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {"type": "http", "scheme": "basic"}


@cache
def whole_schema() -> Any:
    """Return the schema, generated once, as that takes a second."""
    return SchemaGenerator().get_schema(request=None, public=True)


@cache
def rendered_schema() -> bytes:
    """Return its bytes: to write them anew takes a tenth of a second, for anybody."""
    return bytes(OpenApiJsonRenderer().render(whole_schema()))


class KeptRenderer(OpenApiJsonRenderer):
    """Answers with what was written once."""

    def render(self, data: Any, *args: Any, **context: Any) -> bytes:
        return rendered_schema()


class KeptSchema(SchemaGenerator):
    """Generates the schema on the first request only."""

    def get_schema(self, request: Any = None, public: bool = False) -> Any:
        return whole_schema()


class SchemaView(SpectacularJSONAPIView):
    """The schema as JSON."""

    generator_class = KeptSchema
    renderer_classes = [KeptRenderer]  # noqa: RUF012 - its base says so
