"""People who ask through the HTTP API, and ask again where nothing answers."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections import Counter
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any

from provisioner.accounts.models import User
from provisioner.accounts.tokens import token_create
from provisioner.demo.seed import GID
from tests.chaos.patience import insist

FIRST_UID = 21000
TIMEOUT_SECONDS = 30


class NoAnswer(Exception):
    """The web server is away, or its database is."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    status: int
    body: Any


class Person:
    """An account with a token."""

    def __init__(self, username: str, *, number: int, is_staff: bool = False) -> None:
        self.username = username
        self.uid = FIRST_UID + number
        self.gid = GID
        self._is_staff = is_staff
        self.answers: Counter[str] = Counter()
        self._url = ""
        self._token = ""

    def sign_up(self) -> None:
        """Create the account and its token."""
        user = User.objects.create(
            username=self.username,
            uid=self.uid,
            gid=self.gid,
            is_staff=self._is_staff,
            is_superuser=self._is_staff,
        )
        _, self._token = token_create(by=user, name="chaos")

    def speak_to(self, url: str) -> None:
        """Ask this web server from now on."""
        self._url = f"{url}/api/v1"

    def ask(
        self, method: str, path: str, body: Any = None, *, key: str = "", times: int = 1
    ) -> Answer:
        """Send a request, `times` copies of it at once; return the first one's answer.

        Raises: NoAnswer where nobody answers for long.
        """
        copies = [
            threading.Thread(
                target=self._unheard, args=[method, path, body, key], daemon=True
            )
            for _ in range(times - 1)
        ]
        for copy in copies:
            copy.start()
        answer = self._insist(method, path, body=body, key=key)
        for copy in copies:
            copy.join()
        return answer

    def _unheard(self, method: str, path: str, body: Any, key: str) -> None:
        self._insist(method, path, body=body, key=key)

    def _insist(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        key: str = "",
    ) -> Answer:
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": "application/json",
        }
        if key:
            headers["Idempotency-Key"] = key
        request = urllib.request.Request(  # noqa: S310 - our own loopback URL
            f"{self._url}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers=headers,
        )
        return insist(lambda: self._send(request), on=(NoAnswer,))

    def _send(self, request: urllib.request.Request) -> Answer:
        try:
            with urllib.request.urlopen(  # noqa: S310 - our own loopback URL
                request, timeout=TIMEOUT_SECONDS
            ) as answer:
                said = json.loads(answer.read() or b"null")
                self.answers[str(answer.status)] += 1
                return Answer(status=answer.status, body=said)
        except urllib.error.HTTPError as error:
            try:
                with error:
                    said = error.read()
            except (OSError, HTTPException) as cut:
                raise NoAnswer(str(cut)) from cut
            self.answers[str(error.code)] += 1
            if error.code >= 500:
                raise NoAnswer(f"{error.code} {said[:200]!r}") from error
            return Answer(status=error.code, body=json.loads(said or b"null"))
        except (OSError, HTTPException, ValueError) as error:
            self.answers["none"] += 1
            raise NoAnswer(str(error)) from error
