"""Examples for the schema: the first requests of a script, and their answers.

Refusals are built from the exceptions, so that their text is that of real answers.
`tests/api/test_schema_examples.py` checks all against the schema.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from drf_spectacular.utils import OpenApiExample

from provisioner.accounts.throttling import TooManyRequests
from provisioner.api.errors import (
    DATABASE_AWAY,
    NOT_SIGNED_IN,
    OTHER_CODES,
    refusal_shape,
)
from provisioner.lib.refusals import ActionRefused, NotAllowed

REQUEST_ID = "7c9e6679-7425-40de-944b-e07fc1f90ae7"


def request_body(name: str, value: dict[str, Any]) -> OpenApiExample:
    """Return an example of a request body."""
    return OpenApiExample(name, value=value, request_only=True)


def answer(name: str, value: Any, *, status: int = 200) -> OpenApiExample:
    """Return an example of an answer with a status."""
    if status >= 400:
        value = {**value, "request_id": REQUEST_ID}
    return OpenApiExample(
        name, value=value, response_only=True, status_codes=[str(status)]
    )


def refusal(name: str, refused: ActionRefused) -> OpenApiExample:
    """Return an example of a refusal."""
    return answer(name, refusal_shape(refused), status=refused.http_status)


def _other(name: str, code: str, *, status: int, detail: str = "") -> OpenApiExample:
    body = {"detail": detail or OTHER_CODES[code], "code": code}
    return answer(name, body, status=status)


WRONG_PASSWORD = _other("Wrong password", "authentication_failed", status=401)
_ANYWHERE = {
    400: answer(
        "A field is wrong",
        {
            "detail": "lease: A valid integer is required.",
            "code": "invalid",
            "fields": {"lease": "A valid integer is required."},
        },
        status=400,
    ),
    401: _other("Not signed in", "not_authenticated", status=401, detail=NOT_SIGNED_IN),
    403: refusal("Not yours", NotAllowed()),
    404: _other("Not there", "not_found", status=404),
    429: answer(
        "Too many requests",
        {
            "detail": str(TooManyRequests(allowed=1200, what="requests", seconds=20)),
            "code": "throttled",
        },
        status=429,
    ),
    503: _other("Database away", "database_away", status=503, detail=DATABASE_AWAY),
}


def refusals_of(statuses: Collection[int]) -> list[OpenApiExample]:
    """Return an example of each of these refusals that any operation may give."""
    return [example for status, example in _ANYWHERE.items() if status in statuses]
