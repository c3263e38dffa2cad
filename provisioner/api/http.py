"""HTTP details beyond Django REST framework: bodies, headers, formats."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import IO, Any

from django.conf import settings
from rest_framework import status
from rest_framework.exceptions import APIException, ParseError
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.utils import json as strict_json

from provisioner.lib.refusals import InvalidRequest

REQUEST_KEY = re.compile(r"[\x20-\x7e]{1,200}")


class BodyTooLarge(APIException):
    """The body exceeds DATA_UPLOAD_MAX_MEMORY_SIZE."""

    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_code = "too_large"
    default_detail = "The body is larger than this API accepts."


class StrictJSONParser(BaseParser):
    """JSON by RFC 8259: UTF-8, no NaN, and not nested too deeply."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        body = stream.read(limit + 1)
        if len(body) > limit:
            raise BodyTooLarge
        try:
            return json.loads(body.decode(), parse_constant=strict_json.strict_constant)
        except (ValueError, RecursionError) as error:
            raise ParseError(f"The body is not JSON: {error}.") from error


class AlwaysJson(DefaultContentNegotiation):
    """Answer with JSON whatever the Accept header says."""

    def select_renderer(
        self,
        request: Request,
        renderers: Iterable[BaseRenderer],
        format_suffix: str | None = None,
    ) -> tuple[BaseRenderer, str]:
        renderer = next(iter(renderers))
        assert renderer.media_type is not None
        return renderer, renderer.media_type


def request_key(request: Request) -> str:
    """Return the Idempotency-Key header, "" without one.

    Raises: InvalidRequest if it is not 1 to 200 printable ASCII characters.
    """
    key = request.headers.get("Idempotency-Key")
    if key is None:
        return ""
    if not REQUEST_KEY.fullmatch(key):
        raise InvalidRequest(
            "An Idempotency-Key has 1 to 200 printable ASCII characters."
        )
    return key
