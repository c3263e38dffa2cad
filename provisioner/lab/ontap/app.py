"""The WSGI application: authentication, routing, and errors."""

from __future__ import annotations

import hmac
import json
import re
import socket
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from wsgiref.types import StartResponse, WSGIEnvironment

from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound
from werkzeug.routing import Map, Rule
from werkzeug.wrappers import Request, Response

from provisioner.lab.ontap.accounts import Login
from provisioner.lab.ontap.conventions.body import BODY_LIMIT_BYTES
from provisioner.lab.ontap.description import openapi
from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.faults import Fault
from provisioner.lab.ontap.http import Call, Handler, Reply, Route
from provisioner.lab.ontap.routes import (
    aggregates,
    cluster,
    command_line,
    consistency_groups,
    efficiency_policies,
    export_policies,
    files,
    interfaces,
    jobs,
    lab,
    peers,
    private_cli,
    qos_policies,
    quotas,
    recovery_queue,
    snapmirror,
    snapmirror_policies,
    snapshot_policies,
    snapshots,
    svm_peers,
    svms,
    volumes,
)

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array


def describe(call: Call) -> Reply:
    """Describe every route as OpenAPI does."""
    return Reply(openapi(ROUTES))


ROUTES: tuple[Route, ...] = (
    *cluster.ROUTES,
    *svms.ROUTES,
    *aggregates.ROUTES,
    *volumes.ROUTES,
    *snapshots.ROUTES,
    *consistency_groups.ROUTES,
    *files.ROUTES,
    *snapshot_policies.ROUTES,
    *efficiency_policies.ROUTES,
    *export_policies.ROUTES,
    *jobs.ROUTES,
    *interfaces.ROUTES,
    *peers.ROUTES,
    *svm_peers.ROUTES,
    *snapmirror.ROUTES,
    *snapmirror_policies.ROUTES,
    *qos_policies.ROUTES,
    *quotas.ROUTES,
    *private_cli.ROUTES,
    *command_line.ROUTES,
    *recovery_queue.ROUTES,
    *lab.ROUTES,
    Route("GET", "/lab/openapi", describe),
)

_DRAIN_LIMIT_BYTES = 64 << 20

# Where the server leaves the client's socket, for the faults that cut it.
SOCKET_KEY = "cloneyard.socket"


BY_METHOD: dict[tuple[str, str], Route] = {
    (route.path, route.method): route for route in ROUTES
}


def _url_map() -> Map:
    """Map each path to itself; the method decides afterwards (405 or 404)."""
    paths = dict.fromkeys(route.path for route in ROUTES)
    return Map([Rule(path, endpoint=path) for path in paths], merge_slashes=False)


class Application:
    """ONTAP REST over one array."""

    def __init__(
        self, array: Array, *, logins: Mapping[str, Login], password: str
    ) -> None:
        """Serve the accounts, all with this `password`."""
        self._array = array
        self._logins = {name.encode(): login for name, login in logins.items()}
        self._password = password.encode()
        self._urls = _url_map()

    def __call__(
        self, environ: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        """Answer one request."""
        request = Request(environ)
        response = self._answer(request)
        if response is None:
            _hang_up(environ)
            response = Response(status=500)
        return response(environ, start_response)

    def _answer(self, request: Request) -> Response | None:
        """Return the response; None to cut the connection."""
        fault = None
        if request.path.startswith("/api"):
            fault = self._array.faults.draw(method=request.method, path=request.path)
        if fault is not None:
            time.sleep(fault.latency_seconds)
            if fault.when == "before" and (fault.drop or fault.status):
                return _as_told(fault)
        reply = self._reply(request, fault)
        if fault is not None and (fault.drop or fault.status):
            return _as_told(fault)
        return _response(reply)

    def _reply(self, request: Request, fault: Fault | None) -> Reply:
        try:
            login = self._authenticate(request)
            call, handler, arguments = self._route(request)
            login.check(request.method, call.path)
            call.array = login.view_of(self._array)
            if fault is not None and fault.concerns_job:
                call.job_fault = fault
            return handler(call, **arguments)
        except OntapError as error:
            headers = {}
            if error.status == 401:
                headers = {"WWW-Authenticate": 'Basic realm="Secure Area"'}
            return Reply(error.body(), status=error.status, headers=headers)
        except HTTPException as error:
            reason = {"code": "2", "message": error.description or error.name}
            return Reply({"error": reason}, status=error.code or 400)
        except Exception as error:
            self._array.log.exception("%s %s failed", request.method, request.path)
            failure = OntapError("393271", reason=type(error).__name__)
            return Reply(failure.body(), status=failure.status)

    def _authenticate(self, request: Request) -> Login:
        """Return the account of a request. Raises: OntapError 6691623."""
        try:
            given = request.authorization
        except ValueError:
            given = None  # it is not even text
        if given is not None and given.type == "basic":
            user = (given.username or "").encode("utf-8", "surrogateescape")
            password = (given.password or "").encode("utf-8", "surrogateescape")
            if hmac.compare_digest(password, self._password) and user in self._logins:
                return self._logins[user]
        raise OntapError("6691623")

    def _route(self, request: Request) -> tuple[Call, Handler, dict[str, Any]]:
        path = re.sub("/+", "/", request.path).rstrip("/") or "/"
        adapter = self._urls.bind("lab")
        try:
            endpoint, arguments = adapter.match(path)
        except (NotFound, MethodNotAllowed):
            raise OntapError("3") from None
        method = "GET" if request.method == "HEAD" else request.method
        route = BY_METHOD.get((endpoint, method))
        if method == "OPTIONS":
            route = Route("OPTIONS", endpoint, _methods_of(endpoint))
        if route is None:
            raise OntapError("262198", method=request.method, path=path)
        call = Call(
            array=self._array,
            method=request.method,
            path=path,
            query=_query(request),
            data=_body(request),
            wants_links=request.headers.get("Accept") != "application/json",
            own_name=route.own_name,
        )
        return call, route.handler, dict(arguments)


def _methods_of(path: str) -> Handler:
    """Return an endpoint that answers OPTIONS with the methods of a path."""
    methods = {method for known, method in BY_METHOD if known == path} | {"OPTIONS"}
    if "GET" in methods:
        methods.add("HEAD")
    return lambda call, **arguments: Reply(
        headers={"Allow": ", ".join(sorted(methods))}
    )


def _body(request: Request) -> bytes:
    """Read the body. One that is too large is read to its end, so that the client sees
    why.
    """
    data: bytes = request.stream.read(BODY_LIMIT_BYTES + 1)
    if len(data) > BODY_LIMIT_BYTES:
        for _ in range(_DRAIN_LIMIT_BYTES // BODY_LIMIT_BYTES):
            if not request.stream.read(BODY_LIMIT_BYTES):
                break
        raise OntapError("262199", limit=BODY_LIMIT_BYTES)
    return data


def _query(request: Request) -> Any:
    for name, value in request.args.items(multi=True):
        if "\x00" in name + value:
            raise OntapError("262197", target=name, field=name, value="NUL")
    return request.args


def _as_told(fault: Fault) -> Response | None:
    if fault.drop:
        return None
    body = {"error": {"code": fault.code, "message": fault.message}}
    return _response(Reply(body, status=fault.status or 500))


def _response(reply: Reply) -> Response:
    return Response(
        json.dumps(reply.body),
        status=reply.status,
        content_type="application/hal+json",
        headers={
            "Cache-Control": "no-cache,no-store,must-revalidate",
            "X-Content-Type-Options": "nosniff",
            **reply.headers,
        },
    )


def _hang_up(environ: WSGIEnvironment) -> None:
    """Cut the connection, so that the client gets no answer."""
    connection: socket.socket | None = environ.get(SOCKET_KEY)
    if connection is not None:
        connection.shutdown(socket.SHUT_RDWR)
