"""The one way to ONTAP's REST API: requests out, answers or our errors back.

Nothing else imports netapp_ontap. Its HostConnection provides the session with account,
TLS and connection pool. Its resource classes are not used: `post()` hides the UUID and
code of a failed ONTAP job, polls every five seconds, and mistakes a volume of the same
name in another SVM for the new one.

Source: https://docs.netapp.com/us-en/ontap-automation/rest/rest_web_services_foundation.html
"""

from __future__ import annotations

import math
import re
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any

import requests
from netapp_ontap.host_connection import HostConnection, LoggingAdapter, LoggingRetry

from provisioner.gateways.errors import (
    AuthFailed,
    Busy,
    GatewayError,
    NotFound,
    Refused,
    TransientGatewayError,
    Unreachable,
)
from provisioner.gateways.fence import require_leave
from provisioner.gateways.ontap.errors import problem, refusal
from provisioner.gateways.ontap.polling import wait_until
from provisioner.gateways.ontap.types import OntapAccount
from provisioner.gateways.tracing import recording
from provisioner.gateways.tracing.exchanges import OntapExchange
from provisioner.lib import tracing
from provisioner.lib.bounded_answers import AnswerTooLong, BoundedAnswers

CONNECT_TIMEOUT_SECONDS = 6.0
POOL_SIZE = 32
# A page of ONTAP's has 10,000 records at most, of a few kilobytes each.
LONGEST_ANSWER_BYTES = 256 << 20
LONGEST_ANSWER_SECONDS = 600.0
MISSED_LOOKS_ALLOWED = 3
# How long ONTAP keeps a change waiting for its job. Most jobs end within it: then
# nobody asks for them again. Whoever dies meanwhile has not heard of the job.
RETURN_WITHIN_SECONDS = 2

# A part of a path that is no word of ONTAP's.
_ID = re.compile(r"/(?![a-z][a-z-]*(?:/|$))[^/]*")

_FORGOTTEN = "forgotten"
_CUT_SHORT = ("cancelled", "expired")
_END_STATES = ("success", "failure", *_CUT_SHORT, _FORGOTTEN)

Query = Mapping[str, str | int]
Body = Mapping[str, Any]


class _Adapter(BoundedAnswers, LoggingAdapter):  # type: ignore[misc]  # has no types
    most_bytes = LONGEST_ANSWER_BYTES
    within_seconds = LONGEST_ANSWER_SECONDS


class OntapConnection:
    """Requests to one ONTAP cluster with one account. Threads may share it.

    It opens nothing before the first request.
    """

    def __init__(self, account: OntapAccount, *, job_limit_seconds: float) -> None:
        self._account = account
        self._job_limit_seconds = job_limit_seconds
        self._origin = ""
        self._session: requests.Session | None = None
        self._lock = threading.Lock()

    def get(self, path: str, *, query: Query) -> dict[str, Any]:
        """Return the response to a GET of one object.

        Raises: NotFound, Refused.
        """
        return self._request("GET", path, query=query)

    def get_records(self, path: str, *, query: Query) -> list[dict[str, Any]]:
        """Return all records of a collection, page by page.

        Raises: NotFound, Refused.
        """
        records: list[dict[str, Any]] = []
        page = self._request("GET", path, query=query)
        seen: set[str] = set()
        while True:
            records.extend(page.get("records", ()))
            next_page = page.get("_links", {}).get("next", {}).get("href", "")
            if not next_page or next_page in seen:
                return records
            seen.add(next_page)
            page = self._request("GET", next_page.removeprefix("/api"), query={})

    def write(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: Body | None = None,
        ontap_job_started: Callable[[str], None],
    ) -> str:
        """Send a change and wait until the ONTAP job that it started has ended.

        `ontap_job_started` gets the UUID of a job that is still under way when ONTAP
        answers. Of one that had ended by then the UUID is returned, else "": ONTAP may
        say so of a failed one, too, so call `require_success` unless a read shows the
        effect. The end of a job does not prove its effect: read afterwards.

        Raises: the error for a refusal, of the request or of the job; Busy (the job
        takes longer than the limit, and continues).
        Source: return_timeout of POST, PATCH and DELETE.
        """
        within = min(RETURN_WITHIN_SECONDS, int(self._account.timeout_seconds / 2))
        status, answer = self._exchange(
            method, path, query={**(query or {}), "return_timeout": within}, body=body
        )
        ontap_job_uuid: str = answer.get("job", {}).get("uuid", "")
        if ontap_job_uuid and status == HTTPStatus.ACCEPTED:
            ontap_job_started(ontap_job_uuid)
            self.require_success(ontap_job_uuid, operation=f"{method} {path}")
            return ""
        return ontap_job_uuid

    def write_at_once(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: Body | None,
    ) -> dict[str, Any]:
        """Send a change that ONTAP makes before it answers, and return the answer.

        Raises: the error for a refusal.
        """
        return self._request(method, path, query=query or {}, body=body)

    def close(self) -> None:
        """Close the pooled connections; a later request opens new ones."""
        with self._lock:
            session, self._session = self._session, None
        if session is not None:
            session.close()

    def require_success(self, uuid: str, *, operation: str) -> None:
        """Wait until an ONTAP job has ended, and raise the error of a failed one.

        Raises: as `write`.
        """
        missed = 0

        def ended_job() -> Mapping[str, Any] | None:
            nonlocal missed
            try:
                job = self._get_job(uuid)
            except TransientGatewayError:
                missed += 1
                if missed > MISSED_LOOKS_ALLOWED:
                    raise
                return None
            return job if job.get("state") in _END_STATES else None

        job = wait_until(ended_job, limit_seconds=self._job_limit_seconds)
        if job is None:
            raise problem(
                Busy,
                f"ONTAP is still working on it (ONTAP job {uuid}).",
                operation=operation,
            )
        _raise_if_failed(job, operation=operation)

    def _get_job(self, uuid: str) -> Mapping[str, Any]:
        """Return an ONTAP job, with state `_FORGOTTEN` if ONTAP no longer knows it.

        ONTAP forgets a job some minutes after its end, and after a takeover. Only a
        read can then show its effect.

        Source: GET /api/cluster/jobs/{uuid}.
        """
        try:
            return self._request(
                "GET",
                f"/cluster/jobs/{uuid}",
                query={"fields": "state,message,code,error"},
            )
        except NotFound:
            return {"state": _FORGOTTEN}

    def _request(
        self, method: str, path: str, *, query: Query, body: Body | None = None
    ) -> dict[str, Any]:
        return self._exchange(method, path, query=query, body=body)[1]

    def _exchange(
        self, method: str, path: str, *, query: Query, body: Body | None
    ) -> tuple[int, dict[str, Any]]:
        """Return the status and the body of a successful response."""
        session, operation = self._open(), f"{method} {path}"
        if method != "GET":
            require_leave()
        asked = _Asked(method=method, path=path, query=query, sent=body)
        with tracing.span(
            f"{method} {template_of(path)}",
            kind=tracing.Kind.CLIENT,
            facts={"http.request.method": method, "server.address": self._account.host},
        ) as span:
            try:
                response = session.request(
                    method,
                    f"{self._origin}/api{path}",
                    params=dict(query),
                    json=body,
                    allow_redirects=False,
                    timeout=self._timeouts(operation),
                )
            except (
                OSError
            ) as error:  # every error of requests is one, and so is a missing CA file
                asked.tell(None)
                raise self._no_answer(error, operation=operation) from error
            asked.tell(response)
            span.note(
                {"http.response.status_code": response.status_code},
                failed=response.status_code >= 400,
            )
            return response.status_code, _answer(response, operation=operation)

    def _timeouts(self, operation: str) -> tuple[float, float]:
        """Return how many seconds connecting and an answer may take.

        Raises: Unreachable (all of the account's time is over).
        """
        account = self._account
        left = math.inf
        if account.answers_until is not None:
            left = account.answers_until - time.monotonic()
        if left <= 0:
            where = f"ONTAP at {account.host}:{account.port}"
            raise problem(
                Unreachable, f"{where} did not answer in time.", operation=operation
            )
        return min(CONNECT_TIMEOUT_SECONDS, left), min(account.timeout_seconds, left)

    def _open(self) -> requests.Session:
        with self._lock:
            if self._session is None:
                self._session, self._origin = _open_session(self._account)
            return self._session

    def _no_answer(self, error: OSError, *, operation: str) -> GatewayError:
        where = f"ONTAP at {self._account.host}:{self._account.port}"
        kind: type[GatewayError] = Unreachable
        if not isinstance(error, requests.RequestException):
            kind = AuthFailed
            sentence = f"The CA file for {where} cannot be used."
        elif "CERTIFICATE_VERIFY_FAILED" in str(error):
            kind = AuthFailed
            sentence = f"The certificate of {where} could not be verified."
        elif isinstance(error, AnswerTooLong):
            sentence = (
                f"{where} answered with more than {LONGEST_ANSWER_BYTES:,} bytes."
            )
        elif isinstance(error, requests.Timeout):
            sentence = f"{where} did not answer in time."
        else:
            sentence = f"{where} could not be reached, or closed the connection."
        return problem(kind, sentence, operation=operation)


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """A request under way, for whoever records a trace."""

    method: str
    path: str
    query: Query
    sent: Body | None
    began: float = field(default_factory=time.monotonic)

    def tell(self, response: requests.Response | None) -> None:
        """Tell what came back; None: nothing did."""
        if not recording.is_on():
            return
        asked = OntapExchange(
            method=self.method,
            path=self.path,
            query=self.query,
            sent=self.sent,
            milliseconds=recording.milliseconds_since(self.began),
        )
        if response is not None:
            kind, _, _ = response.headers.get("Content-Type", "").partition(";")
            asked = replace(
                asked,
                status=response.status_code,
                content_type=kind.strip(),
                body=_json(response),
            )
        recording.tell(asked)


def template_of(path: str) -> str:
    """Return a path of ONTAP's API without ids, names of files, and query.

    A path from a link of ONTAP's has its query in it.
    """
    words, files, _ = path.partition("?")[0].partition("/files/")
    return _ID.sub("/{id}", words) + ("/files/{path}" if files else "")


def _open_session(account: OntapAccount) -> tuple[requests.Session, str]:
    connection = HostConnection(
        account.host,
        username=account.user,
        password=account.password,
        port=account.port,
        verify=account.ca_file or _system_ca(),
    )
    session: requests.Session = connection.session
    # Otherwise REQUESTS_CA_BUNDLE would replace our CA file, and requests could go
    # through a proxy.
    session.trust_env = False
    session.mount(
        connection.origin,
        _Adapter(
            connection,
            # An interrupted GET may be repeated. A write never is: it may have
            # happened, and the caller's next read decides. Connecting is not repeated
            # either: by then the permission to write may have ended.
            max_retries=LoggingRetry(
                total=1,
                read=None if account.answers_until is None else False,
                connect=0,
                redirect=0,
                status=0,
                other=0,
                allowed_methods={"GET"},
            ),
            pool_maxsize=POOL_SIZE,
        ),
    )
    return session, connection.origin


def _system_ca() -> str | bool:
    """Return the system's certificate authorities, or True for those of requests."""
    paths = ssl.get_default_verify_paths()
    return paths.cafile or paths.capath or True


def _answer(response: requests.Response, *, operation: str) -> dict[str, Any]:
    """Return the body of a successful response.

    Raises: the error for a refusal; Unreachable (the answer is not from ONTAP).
    """
    body = _json(response)
    if response.ok and not response.is_redirect:
        if body is None:
            raise problem(
                Unreachable,
                "The address answered, but not like ONTAP.",
                operation=operation,
            )
        return body
    error = (body or {}).get("error") or {}
    raise refusal(
        operation,
        code=str(error.get("code", "")),
        message=str(error.get("message", "")),
        http_status=response.status_code,
    )


def _json(response: requests.Response) -> dict[str, Any] | None:
    """Return the JSON object of the body, {} without a body, None for anything else."""
    if not response.content:
        return {}
    try:
        body = response.json()
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def _raise_if_failed(job: Mapping[str, Any], *, operation: str) -> None:
    """Raise the error for a failed job; only its state tells that it failed."""
    if job["state"] == "failure":
        error = job.get("error") or {}
        raise refusal(
            operation,
            code=str(error.get("code") or job.get("code") or ""),
            message=str(error.get("message") or job.get("message") or ""),
        )
    if job["state"] in _CUT_SHORT:
        raise problem(
            Refused, f"The ONTAP job ended early ({job['state']}).", operation=operation
        )
