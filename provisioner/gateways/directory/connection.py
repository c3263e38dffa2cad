"""Connections to the servers of a directory, one after the other until one answers.

TLS is checked by Python itself: ldap3's own comparison of names is a copy of an older
one. Every wait has an end, and a server that was silent is asked last for a while.
"""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog
from ldap3 import (
    BASE,
    DEREF_NEVER,
    NONE,
    SAFE_SYNC,
    SIMPLE,
    SUBTREE,
    Connection,
    Server,
    Tls,
)
from ldap3.core.exceptions import (
    LDAPBusyResult,
    LDAPCommunicationError,
    LDAPException,
    LDAPInvalidCredentialsResult,
    LDAPNoSuchObjectResult,
    LDAPOperationResult,
    LDAPOperationsErrorResult,
    LDAPStartTLSError,
    LDAPTimeLimitExceededResult,
    LDAPUnavailableResult,
)

from provisioner.gateways.directory.configuration import Directory
from provisioner.gateways.errors import (
    AuthFailed,
    GatewayError,
    NotFound,
    Refused,
    Unreachable,
)

SYSTEM = "ldap"
# How long a server that did not answer is asked after the others.
LAST_FOR_SECONDS = 60.0
# Of one connection, in answers that are as late as they may be.
MOST_LATE_ANSWERS = 4
PAGE_ENTRIES = 500

_AWAY = (
    LDAPCommunicationError,
    LDAPBusyResult,
    LDAPUnavailableResult,
    LDAPTimeLimitExceededResult,
    LDAPStartTLSError,
)
_silent_since: dict[str, float] = {}

log = structlog.get_logger(__name__)

Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An entry with the values of its attributes, by their names in small letters."""

    dn: str
    values: Mapping[str, Sequence[bytes]]

    def texts(self, attribute: str) -> list[str]:
        """Return values as text; what is no UTF-8 has replacement characters."""
        found = self.values.get(attribute.lower(), ())
        return [value.decode(errors="replace") for value in found]

    def text(self, attribute: str) -> str:
        return next(iter(self.texts(attribute)), "")


class CheckedTls(Tls):  # type: ignore[misc]  # has no types
    """Certificate and name are checked by OpenSSL during the handshake."""

    def wrap_socket(self, connection: Any, do_handshake: bool = False) -> None:
        context = ssl.create_default_context(cafile=self.ca_certs_file)
        connection.socket = context.wrap_socket(
            connection.socket, server_hostname=connection.server.host
        )


class Link:
    """A connection to one server of the directory."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def bind(self, name: str, password: str) -> bool:
        """Bind; return whether name and password are right.

        Without a password a server would say yes to any name, and mean nobody.

        Source: RFC 4513, 5.1.2. Raises: GatewayError.
        """
        if not name or not password or "\0" in password:
            return False
        self._connection.user, self._connection.password = name, password
        try:
            with _translated("bind"):
                self._connection.bind(read_server_info=False)
        except AuthFailed:
            return False
        return True

    def search(
        self, base: str, filter_: str, *attributes: str, most: int = 0
    ) -> list[Entry]:
        """Return entries below a base; with `most`, no more than that.

        Raises: GatewayError.
        """
        with _translated("search"):
            found = self._connection.extend.standard.paged_search(
                search_base=base,
                search_filter=filter_,
                search_scope=SUBTREE,
                dereference_aliases=DEREF_NEVER,
                attributes=list(attributes),
                paged_size=min(PAGE_ENTRIES, most or PAGE_ENTRIES),
                generator=True,
            )
            entries: list[Entry] = []
            for answer in found:
                if answer["type"] == "searchResEntry":
                    entries.append(_entry(answer))
                if most and len(entries) >= most:
                    break
            return entries

    def read(self, dn: str, *attributes: str) -> Entry | None:
        """Return one entry, or None. Raises: GatewayError."""
        try:
            with _translated("read"):
                _, _, answers, _ = self._connection.search(
                    dn, "(objectClass=*)", BASE, attributes=list(attributes)
                )
        except NotFound:
            return None
        found = [each for each in answers if each["type"] == "searchResEntry"]
        return _entry(found[0]) if found else None


def on_a_server(
    directory: Directory,
    call: Callable[[Link], Result],
    *,
    answers: int = MOST_LATE_ANSWERS,
) -> Result:
    """Call with a connection; if a server does not answer, with one to the next.

    Reading again and binding again change nothing. A connection is cut after the time
    of so many late answers.

    Raises: GatewayError; the last one, if no server answers.
    """
    trouble: GatewayError | None = None
    for url in _in_turn(directory.urls):
        try:
            with connected(directory, url, answers=answers) as link:
                result = call(link)
        except Unreachable as error:
            log.warning("directory_server_silent", url=url, **error.log_context())
            _silent_since[url] = time.monotonic()
            trouble = error
        else:
            _silent_since.pop(url, None)
            return result
    assert trouble is not None
    raise trouble


@contextlib.contextmanager
def connected(
    directory: Directory, url: str, *, answers: int = MOST_LATE_ANSWERS
) -> Iterator[Link]:
    """Yield a connection to one server, which is cut once it takes far too long.

    Raises: GatewayError.
    """
    seconds = directory.timeout_seconds
    server = Server(
        url,
        get_info=NONE,
        allowed_referral_hosts=[],
        tls=CheckedTls(ca_certs_file=directory.ca_file or None),
        connect_timeout=seconds,
    )
    connection = Connection(
        server,
        authentication=SIMPLE,
        user="nobody yet",
        password="none yet",  # noqa: S106 - nothing is bound with it
        client_strategy=SAFE_SYNC,
        auto_referrals=False,
        check_names=False,
        raise_exceptions=True,
        read_only=True,
        receive_timeout=seconds,
    )
    cut = threading.Timer(answers * seconds, _cut, args=[connection])
    cut.daemon = True
    cut.start()
    try:
        with _translated("connect", url=url):
            connection.open(read_server_info=False)
            if not server.ssl and directory.start_tls:
                connection.start_tls(read_server_info=False)
        yield Link(connection)
    finally:
        cut.cancel()
        with contextlib.suppress(LDAPException, OSError):
            connection.unbind()
        # The library leaves it open where nobody answered.
        with contextlib.suppress(OSError, AttributeError):
            connection.socket.close()


def _cut(connection: Any) -> None:
    with contextlib.suppress(OSError, AttributeError):
        connection.socket.shutdown(socket.SHUT_RDWR)


def _in_turn(urls: Sequence[str]) -> list[str]:
    """Return the servers, those that were silent lately after the others."""
    lately = time.monotonic() - LAST_FOR_SECONDS
    return sorted(urls, key=lambda url: _silent_since.get(url, 0.0) > lately)


@contextlib.contextmanager
def _translated(operation: str, *, url: str = "") -> Iterator[None]:
    """Raise our errors for the library's."""
    at = f" {url}" if url else ""
    try:
        yield
    except LDAPInvalidCredentialsResult as error:
        raise AuthFailed(
            "The directory does not accept this name and password.",
            **_facts(operation, error),
        ) from error
    except LDAPNoSuchObjectResult as error:
        raise NotFound(
            "The directory has no such entry.", **_facts(operation, error)
        ) from error
    except _AWAY as error:
        raise Unreachable(
            f"The directory{at} does not answer: {_said(error)}",
            **_facts(operation, error),
        ) from error
    except LDAPOperationsErrorResult as error:
        raise Refused(
            "The directory answers only who has bound: set LDAP_BIND_DN.",
            **_facts(operation, error),
        ) from error
    except LDAPException as error:
        raise Refused(
            f"The directory{at} refused: {_said(error)}", **_facts(operation, error)
        ) from error


def _facts(operation: str, error: LDAPException) -> dict[str, str]:
    code = error.description if isinstance(error, LDAPOperationResult) else ""
    return {"system": SYSTEM, "operation": operation, "remote_code": str(code or "")}


def _said(error: LDAPException) -> str:
    """Return what the library says, in one line and without its own places."""
    said = " ".join(str(error).split()) or type(error).__name__
    return re.sub(r" \(_ssl\.c:\d+\)", "", said)[:300]


def _entry(answer: Mapping[str, Any]) -> Entry:
    return Entry(
        dn=answer["dn"],
        values={
            name.partition(";")[0].lower(): values
            for name, values in answer["raw_attributes"].items()
        },
    )
