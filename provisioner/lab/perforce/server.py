"""The lab's Perforce server: a TCP listener, or one connection on a descriptor."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING

from provisioner.lab.perforce import faults
from provisioner.lab.perforce.database import Database
from provisioner.lab.perforce.replication import Replication
from provisioner.lab.perforce.session import Session
from provisioner.lab.perforce.state import PerforceConfig, initialize, open_state
from provisioner.lab.perforce.wire import Connection

__all__ = ["PerforceConfig", "PerforceLab", "serve_descriptor"]

if TYPE_CHECKING:
    from provisioner.lab.perforce.tls import Credentials

log = logging.getLogger("provisioner.lab.perforce")

_HANDSHAKE_SECONDS = 20
_PORTS_TRIED = 100


class PerforceLab:
    """A running server: one thread accepts, one serves each connection."""

    def __init__(self, config: PerforceConfig) -> None:
        self.config = config
        self._listener: socket.socket | None = None
        self._accepting: threading.Thread | None = None
        self._lock = threading.Lock()
        # Those of an `ssl:` port: the usual ones, and those a fault setting shows.
        self._credentials: tuple[Credentials, Credentials] | None = None
        self._sockets: set[socket.socket] = set()
        self._replication = Replication(config) if config.replicates else None
        # SQLite ends and begins its log anew with the last and first to use a file.
        self._kept_open: Database | None = None

    @property
    def port(self) -> int:
        """Return the port it listens on, while it runs."""
        assert self._listener is not None
        return int(self._listener.getsockname()[1])

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint of the key; "" for a port without one."""
        return self._credentials[0].fingerprint if self._credentials else ""

    def start(self) -> PerforceLab:
        """Start serving; return at once.

        Raises: OSError if the port is taken.
        """
        initialize(self.config)
        if self._replication is not None:
            self._replication.start()
        if self.config.is_encrypted:
            self._credentials = _credentials(self.config)
        listener = self._listener = self._listening()
        self._kept_open = open_state(self.config).database
        self._accepting = threading.Thread(
            target=self._accept, args=(listener,), name="perforce-lab", daemon=True
        )
        self._accepting.start()
        return self

    def _listening(self) -> socket.socket:
        """Listen at the port, or at the next free one above if that is allowed."""
        host, wanted = self.config.host, self.config.port
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        last = wanted + (_PORTS_TRIED if self.config.or_above and wanted else 0)
        for port in range(wanted, last):
            with contextlib.suppress(OSError):
                return socket.create_server((host, port), family=family, backlog=256)
        return socket.create_server((host, last), family=family, backlog=256)

    def stop(self) -> None:
        """Stop serving and end every connection. Safe to repeat."""
        if self._listener is None or self._accepting is None:
            return
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join(timeout=10)
        if self._replication is not None:
            self._replication.stop()
        with self._lock:
            for sock in self._sockets:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)
        self._accepting = None
        if self._kept_open is not None:
            self._kept_open.close()

    def __enter__(self) -> PerforceLab:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _accept(self, listener: socket.socket) -> None:
        host, port = listener.getsockname()[:2]
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        while True:
            try:
                sock, peer = listener.accept()
            except OSError:
                return  # stopped
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(
                target=self._serve,
                args=(sock, address, str(peer[0])),
                name=f"perforce-lab {peer[1]}",
                daemon=True,
            ).start()

    def _serve(self, sock: socket.socket, address: str, peer: str) -> None:
        try:
            with self._listed(sock):
                encrypted = self._encrypted(sock)
            with self._listed(encrypted):
                _serve_socket(
                    encrypted,
                    config=self.config,
                    server_address=address,
                    peer_address=peer,
                    certificate_expires=(
                        self._credentials[0].expires if self._credentials else ""
                    ),
                )
        except OSError as reason:
            log.debug("connection refused: %s", reason)
            sock.close()

    @contextlib.contextmanager
    def _listed(self, sock: socket.socket) -> Iterator[None]:
        """Let `stop` close this connection while the context lasts."""
        with self._lock:
            self._sockets.add(sock)
        try:
            yield
        finally:
            with self._lock:
                self._sockets.discard(sock)

    def _encrypted(self, sock: socket.socket) -> socket.socket:
        """Return the socket to use: the same, or an encrypting one.

        Raises: OSError if the peer does not speak TLS or does not trust us.
        """
        if self._credentials is None:
            return sock
        is_changed = faults.has_changed_fingerprint(self.config.root)
        sock.settimeout(_HANDSHAKE_SECONDS)
        return self._credentials[is_changed].context.wrap_socket(sock, server_side=True)


def _credentials(config: PerforceConfig) -> tuple[Credentials, Credentials]:
    # Here, because a server that does not encrypt runs without these packages.
    from provisioner.lab.perforce.tls import Credentials

    return (
        Credentials(config.root, name="server", host=config.host),
        Credentials(config.root, name="changed", host=config.host),
    )


def serve_descriptor(config: PerforceConfig, *, descriptor: int) -> None:
    """Serve the one connection that is open as a file descriptor, then return."""
    initialize(config)
    sock = socket.socket(fileno=os.dup(descriptor))
    _serve_socket(
        sock,
        config=config,
        server_address=f"localhost:{config.port or 1666}",
        peer_address="unknown",
    )


def _serve_socket(
    sock: socket.socket,
    *,
    config: PerforceConfig,
    server_address: str,
    peer_address: str,
    certificate_expires: str = "",
) -> None:
    connection = Connection(sock, timeout_seconds=config.peer_timeout_seconds)
    state = open_state(config)
    try:
        Session(
            connection,
            state=state,
            server_address=server_address,
            peer_address=peer_address,
            certificate_expires=certificate_expires,
        ).serve()
    except Exception:
        # A bug of ours: what the client would read next could be the wrong reply.
        log.exception("a session failed; its connection is closed")
    finally:
        connection.close()
        state.database.close()
