"""Send one message: signed, to a checked address, with limits on everything.

Source: urllib3, "Custom SNI hostname",
https://urllib3.readthedocs.io/en/stable/advanced-usage.html#custom-sni-hostname
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from http.client import HTTPException

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError, NewConnectionError

from provisioner.gateways.webhooks.addresses import (
    AddressRefused,
    IPNetwork,
    Target,
    read_url,
    resolve,
)

CONNECT_SECONDS = 5.0
ALL_SECONDS = 15.0
MOST_RESPONSE_BYTES = 16 * 1024
SHOWN_CHARACTERS = 500
USER_AGENT = "Cloneyard-Webhook/1"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The outcome. Without a `code` nobody answered, and `error` says why.

    `retry_after` is the requested pause in seconds, or None.
    """

    code: int | None
    text: str
    error: str
    seconds: float
    retry_after: int | None = None

    @property
    def is_taken(self) -> bool:
        return self.code is not None and 200 <= self.code < 300 and not self.error


def signature(secret: str, *, timestamp: int, body: bytes) -> str:
    """Return a signature over the time and the body, which proves that we sent it.

    HMAC-SHA256 over the time in seconds, a dot, and the body, as hexadecimal digits.
    """
    signed = f"{timestamp}.".encode() + body
    digest = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    return f"v1={digest}"


def post(
    url: str,
    *,
    body: bytes,
    secret: str,
    event: str,
    message_id: str,
    timestamp: int,
    traceparent: str = "",
    allowed: Sequence[IPNetwork] = (),
    ca_file: str = "",
    all_seconds: float = ALL_SECONDS,
) -> Answer:
    """Send a message; the answer reports whatever goes wrong.

    Without a secret it is not signed. It follows no redirect, uses no proxy, and reads
    at most 16 KiB of the response. All of it takes at most `all_seconds`, however slow
    their name servers and their answer are.
    """
    began = time.monotonic()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": USER_AGENT,
        "Cloneyard-Event": event,
        "Cloneyard-Delivery": message_id,
    }
    if traceparent:
        headers["traceparent"] = traceparent
    if secret:
        signed = signature(secret, timestamp=timestamp, body=body)
        headers["Cloneyard-Timestamp"] = str(timestamp)
        headers["Cloneyard-Signature"] = signed
    try:
        code, text, retry_after = _post(
            read_url(url),
            body=body,
            headers=headers,
            allowed=allowed,
            ca_file=ca_file,
            ends_at=began + all_seconds,
        )
    except (AddressRefused, _TooLate) as refusal:
        error = str(refusal)
    except ssl.SSLError as failure:
        error = f"Its certificate or TLS is not right: {failure.reason or failure}"
    except (OSError, HTTPError, HTTPException, ValueError) as failure:
        error = _said(failure)
    else:
        error = ""
        if 300 <= code < 400:
            error = "It answered with a redirect, and none is followed."
        elif not 200 <= code < 300:
            error = f"It answered {code}."
        return Answer(
            code=code,
            text=text,
            error=error,
            seconds=time.monotonic() - began,
            retry_after=retry_after,
        )
    return Answer(
        code=None, text="", error=error[:500], seconds=time.monotonic() - began
    )


class _TooLate(Exception):
    pass


def _post(
    target: Target,
    *,
    body: bytes,
    headers: Mapping[str, str],
    allowed: Sequence[IPNetwork],
    ca_file: str,
    ends_at: float,
) -> tuple[int, str, int | None]:
    address = _looked_up(target, allowed=allowed, ends_at=ends_at)
    # Connecting takes up to so long, and then so does the handshake of TLS.
    timeout = min(CONNECT_SECONDS, max(ends_at - time.monotonic(), 0.01) / 2)
    connection = _connection(target, address=address, ca_file=ca_file, timeout=timeout)
    with (
        contextlib.closing(connection),
        _cut_off(connection, ends_at=ends_at) as is_over,
    ):
        connection.connect()
        if is_over.is_set():  # before there was a connection to break off
            raise TimeoutError
        connection.request(
            "POST",
            target.path,
            body=body,
            headers={"Host": target.host_header, "Accept-Encoding": "identity"}
            | dict(headers),
            preload_content=False,
        )
        response = connection.getresponse()
        text = response.read(MOST_RESPONSE_BYTES, decode_content=False)
        shown = text.decode("utf-8", "replace").replace("\0", "\ufffd")
        retry_after = _seconds(response.headers.get("Retry-After", ""))
        return response.status, shown[:SHOWN_CHARACTERS], retry_after


def _looked_up(target: Target, *, allowed: Sequence[IPNetwork], ends_at: float) -> str:
    """Return the address of a host, unless its name servers take too long.

    The system's look-up cannot be stopped: its thread ends by itself, unnoticed.

    Raises: _TooLate; as `resolve`.
    """
    found: Future[str] = Future()

    def look_up() -> None:
        try:
            found.set_result(resolve(target, allowed=allowed))
        except Exception as error:
            found.set_exception(error)

    threading.Thread(target=look_up, daemon=True).start()
    try:
        return found.result(timeout=max(ends_at - time.monotonic(), 0.0))
    except TimeoutError as error:
        raise _TooLate("Its name was not looked up in time.") from error


def _seconds(header: str) -> int | None:
    """Return a number of seconds; None for a date, which nobody sends to programs."""
    is_number = header.isascii() and header.isdigit() and len(header) < 7
    return int(header) if is_number else None


def _connection(
    target: Target, *, address: str, ca_file: str, timeout: float
) -> HTTPConnection:
    """Return a connection to the checked address, under the name of the host."""
    if target.scheme == "http":
        return HTTPConnection(address, target.port, timeout=timeout)
    return HTTPSConnection(
        address,
        target.port,
        timeout=timeout,
        server_hostname=target.host,
        ssl_context=ssl.create_default_context(cafile=ca_file or None),
    )


@contextlib.contextmanager
def _cut_off(
    connection: HTTPConnection, *, ends_at: float
) -> Iterator[threading.Event]:
    """Abort a connection when its time is over, even if each byte comes in time.

    Yields whether it is over.

    Raises: _TooLate.
    """
    is_over = threading.Event()

    def cut() -> None:
        is_over.set()
        plain = connection.sock
        if plain is not None:
            with contextlib.suppress(OSError):
                # That of TLS would take its own state from under who reads.
                socket.socket.shutdown(plain, socket.SHUT_RDWR)

    timer = threading.Timer(max(ends_at - time.monotonic(), 0.0), cut)
    timer.daemon = True
    timer.start()
    try:
        yield is_over
    except Exception as failure:
        if is_over.is_set():
            raise _TooLate("It did not answer in time.") from failure
        raise
    finally:
        timer.cancel()
    if is_over.is_set():
        raise _TooLate("It did not answer in time.")


def _said(failure: Exception) -> str:
    """Return what went wrong as a sentence, without the library's objects."""
    cause: BaseException | None = failure
    while cause is not None and not isinstance(cause, OSError):
        cause = cause.__cause__ or cause.__context__
    if isinstance(cause, socket.gaierror):
        return "Its name is not known."
    if isinstance(cause, TimeoutError) or "timed out" in str(failure):
        return "It did not answer in time."
    if isinstance(cause, ssl.SSLError):
        return f"Its certificate or TLS is not right: {cause.reason or cause}"
    if isinstance(failure, NewConnectionError) or isinstance(cause, OSError):
        return f"No connection: {(cause.strerror if cause else '') or 'refused'}."
    return "It did not answer as a web server does."
