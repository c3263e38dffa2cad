"""Answers of HTTP servers that end, whatever the server sends and however slowly.

The timeout of requests is for each packet, and it reads a body of any length.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import requests
from requests.adapters import HTTPAdapter

READ_BYTES = 64 * 1024


class AnswerTooLong(requests.RequestException):
    """The server sent more bytes than were allowed."""


class AnswerTooSlow(requests.Timeout):
    """The server did not send all of its answer in time."""


class _Body:
    """A response of urllib3 that is read to a bound; all else is as it was."""

    def __init__(self, raw: Any, *, most_bytes: int, ends_at: float) -> None:
        self._raw = raw
        self._most_bytes = most_bytes
        self._ends_at = ends_at

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def stream(self, *_: Any, **__: Any) -> Iterator[bytes]:
        """Yield what arrives, decompressed: requests reads a body by this alone."""
        taken = 0
        # Each packet counts, where `read` waits for a whole buffer.
        while data := self._raw.read1(READ_BYTES, decode_content=True):
            taken += len(data)
            if taken > self._most_bytes:
                self._raw.close()
                raise AnswerTooLong
            if time.monotonic() > self._ends_at:
                self._raw.close()
                raise AnswerTooSlow
            yield data


class BoundedAnswers(HTTPAdapter):
    """Bounds all answers of a session: mount it for the schemes or hosts it is for."""

    most_bytes: int
    within_seconds: float

    def build_response(
        self, request: requests.PreparedRequest, response: Any
    ) -> requests.Response:
        answer = super().build_response(request, response)
        answer.raw = _Body(
            response,
            most_bytes=self.most_bytes,
            ends_at=time.monotonic() + self.within_seconds,
        )
        return answer
