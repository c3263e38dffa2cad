"""The HTTPS server around the array, and how to start and stop it."""

from __future__ import annotations

import logging
import os
import secrets
import socket
import ssl
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import unquote

from cheroot import wsgi
from cheroot.server import HTTPConnection, HTTPRequest
from cheroot.ssl.builtin import BuiltinSSLAdapter

from provisioner.lab.ontap import given
from provisioner.lab.ontap.accounts import logins
from provisioner.lab.ontap.app import SOCKET_KEY, Application
from provisioner.lab.ontap.array import Array
from provisioner.lab.ontap.config import OntapConfig, Settings
from provisioner.lab.ontap.dataplane.loop import attach_image, detach_image
from provisioner.lab.ontap.dataplane.plane import CopyMethod
from provisioner.lab.ontap.faults import Faults
from provisioner.lab.ontap.namespace import JunctionMethod
from provisioner.lab.ontap.records import Svm
from provisioner.lab.ontap.tls import (
    Certificates,
    ensure_certificates,
    server_context,
)

__all__ = ["OntapConfig", "OntapLab", "Settings"]

_LOG = logging.getLogger("cloneyard.lab.ontap")

_START_SECONDS = 10.0
_IDLE_SECONDS = 30
_KEPT_CONNECTIONS = 256
_PORTS_TRIED = 100


class _Gateway(wsgi.Gateway_10):
    def get_environ(self) -> Any:
        """Add the client's socket to the WSGI environment."""
        environ: Any = super().get_environ()  # type: ignore[no-untyped-call]  # cheroot
        environ[SOCKET_KEY] = self.req.conn.socket
        uri = environ["REQUEST_URI"]
        if uri.startswith("//"):  # cheroot takes `//api/cluster` for a host named api
            environ["PATH_INFO"] = unquote(uri.partition("?")[0], "latin-1")
        return environ


class _Request(HTTPRequest):
    def __init__(self, server: Any, conn: Any) -> None:
        """Accept requests of the form `//api/…`, which NetApp's clients send."""
        super().__init__(server, conn, proxy_mode=True)


class _Connection(HTTPConnection):
    RequestHandlerClass = _Request


class _Server(wsgi.Server):
    ConnectionClass = _Connection

    @staticmethod
    def bind_socket(socket_: socket.socket, bind_addr: Any) -> socket.socket:
        """Bind; close a socket that cannot be bound, which cheroot does not."""
        try:
            socket_.bind(bind_addr)
        except OSError:
            socket_.close()
            raise
        return socket_

    def process_conn(self, conn: Any) -> None:
        """Give a connection to a worker once there is something to read."""
        if getattr(conn, "has_spoken", False):
            super().process_conn(conn)
        else:
            conn.has_spoken = True
            self._connections.put(conn)  # type: ignore[attr-defined]  # cheroot

    def error_log(
        self, msg: str = "", level: int = 20, traceback: bool = False
    ) -> None:
        """Log a connection's error, unless the client just vanished."""
        _LOG.debug("%s", msg, exc_info=traceback)


class _LazyTls(BuiltinSSLAdapter):
    """Do the handshake when a worker first reads, so that no client delays others."""

    def __init__(self, files: Certificates, faults: Faults) -> None:
        super().__init__(str(files.server), str(files.server))
        self.context = server_context(files.server)
        self._expired = server_context(files.expired)
        self._faults = faults

    def wrap(self, sock: socket.socket) -> tuple[ssl.SSLSocket, dict[str, Any]]:
        """Wrap the socket without using it yet."""
        is_expired = self._faults.has_expired_certificate()
        context = self._expired if is_expired else self.context
        wrapped = context.wrap_socket(
            sock, do_handshake_on_connect=False, server_side=True
        )
        return wrapped, {"wsgi.url_scheme": "https", "HTTPS": "on"}


class OntapLab:
    """One array behind HTTPS; also a context manager.

    Stopping unmounts everything; starting again on the same root continues.
    """

    def __init__(self, config: OntapConfig) -> None:
        """Store the configuration; nothing happens before `start`."""
        self.config = config
        self.port = config.port
        self.peer: OntapLab | None = None
        self._array: Array | None = None
        self._server: wsgi.Server | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> OntapLab:
        """Open the root and serve until `stop`; return itself.

        Raises: OSError if the port is taken; BlockingIOError if another lab uses the
        root.
        """
        try:
            self._open()
            if self.config.peer is not None:
                self.peer = OntapLab(self.config.peer)
                self.peer._open()
                self.array.peer, self.peer.array.peer = self.peer.array, self.array
            labs = [self] if self.peer is None else [self.peer, self]
            # No job of one may find the other half-open, nor a client either.
            for step in (
                OntapLab._prepare,
                OntapLab._relate,
                OntapLab._resume,
                OntapLab._serve,
            ):
                for lab in labs:
                    step(lab)
        except BaseException:
            self.stop()
            raise
        return self

    def _open(self) -> None:
        """Open the root: certificates, password, state and files."""
        root = self.config.root
        root.mkdir(parents=True, exist_ok=True)
        size = self.config.btrfs_bytes
        if size is not None and not attach_image(root, size_bytes=size):
            _LOG.warning("A btrfs image needs root and mkfs.btrfs; continuing without.")
        self.password = self.config.password or _kept_password(root / "password")
        self._certificates = ensure_certificates(root, host=self.config.host)
        self.ca_file = self._certificates.authority
        self._array = Array(self.config)

    def _relate(self) -> None:
        """Create the relationships that were given, once both clusters are open."""
        if self.config.volumes is not None:
            given.relate(self.array, self.config.volumes)

    def _prepare(self) -> None:
        """Bind the port, and reconcile files and state."""
        assert self._array is not None
        application = Application(
            self._array,
            logins=logins(
                user=self.config.user,
                readonly_user=self.config.readonly_user,
                svm=self.config.svm,
            ),
            password=self.password,
        )
        server = self._listening(application)
        self.port = server.bind_addr[1]
        self._server = server
        self._array.start()

    def _listening(self, application: Application) -> _Server:
        """Listen at the port, or at the next free one above if that is allowed.

        Raises: OSError if it is taken.
        """
        wanted = self.config.port
        last = wanted + (_PORTS_TRIED if self.config.or_above and wanted else 0)
        for port in range(wanted, last):
            server = self._server_at(port, application)
            with suppress(OSError):
                server.prepare()
                return server
        server = self._server_at(last, application)
        server.prepare()
        return server

    def _server_at(self, port: int, application: Application) -> _Server:
        assert self._array is not None
        server = _Server(
            (self.config.host, port),
            application,
            numthreads=self.config.threads,
            max=self.config.threads * 4,
            request_queue_size=512,
            timeout=_IDLE_SECONDS,
            shutdown_timeout=5,
        )
        # As an array: clients keep their connections, and need no new handshake.
        server.keep_alive_conn_limit = _KEPT_CONNECTIONS
        server.gateway = _Gateway
        server.ssl_adapter = _LazyTls(self._certificates, self._array.faults)
        return server

    def _resume(self) -> None:
        self.array.resume()

    def _serve(self) -> None:
        assert self._server is not None
        self._thread = threading.Thread(
            target=self._server.serve, name="ontap-lab", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Stop serving, let jobs end and unmount; safe to repeat."""
        if self._server is not None:
            self._server.stop()
            self._server = None
        if self._thread is not None:
            self._thread.join(_START_SECONDS)
            self._thread = None
        if self.peer is not None:
            # A job of one cluster may work with the other's state and files.
            for lab in (self, self.peer):
                if lab._array is not None:
                    lab._array.halt()
            self.peer.stop()
            self.peer = None
        if self._array is not None:
            self._array.stop()
            self._array = None
        if self.config.btrfs_bytes is not None:
            detach_image(self.config.root)

    def __enter__(self) -> OntapLab:
        """Start, unless it is running."""
        return self if self._array is not None else self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop."""
        self.stop()

    @property
    def array(self) -> Array:
        """The running array."""
        assert self._array is not None, "the lab is not running"
        return self._array

    @property
    def mount_root(self) -> Path:
        """Where hosts see the SVM's namespace."""
        return self.mount_root_of(self.config.svm)

    def mount_root_of(self, svm: str) -> Path:
        """Where hosts see the namespace of one of the SVMs."""
        return self.array.mount_root(self.array.store.select(Svm, name=svm)[0])

    @property
    def copy_method(self) -> CopyMethod:
        """How clones are made: btrfs, reflink or copy."""
        return self.array.plane.method

    @property
    def junction_method(self) -> JunctionMethod:
        """How volumes are joined: bind or symlink."""
        return self.array.namespace.method

    def describe(self) -> dict[str, Any]:
        """Return what a client needs to know, as in the ready line."""
        description: dict[str, Any] = {
            "host": self.config.host,
            "port": self.port,
            "user": self.config.user,
            "password": self.password,
            "ca_file": str(self.ca_file),
            "svm": self.config.svm,
            "aggregate": self.config.aggregate,
            "mount_root": str(self.mount_root),
            "copy_method": self.copy_method,
            "junction_method": self.junction_method,
        }
        if self.config.more_svms:
            description["more_svms"] = [
                {"svm": svm, "mount_root": str(self.mount_root_of(svm))}
                for svm in self.config.more_svms
            ]
        if self.peer is not None:
            description["peer"] = self.peer.describe()
        return description


def _kept_password(path: Path) -> str:
    """Return the password in the private file, creating one if necessary."""
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        password = secrets.token_urlsafe(18)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(password + "\n")
        return password
