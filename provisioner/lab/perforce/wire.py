"""The P4 RPC wire format, and a connection that reads while it writes.

A message is a five byte header and a body of named variables. Nothing here knows what
a message means.
"""

from __future__ import annotations

import logging
import select
import socket
import ssl
import struct
from collections.abc import Callable, Mapping
from functools import lru_cache

from provisioner.lab.perforce import octets

log = logging.getLogger("provisioner.lab.perforce.wire")

Value = str | bytes | int

_LENGTH = struct.Struct("<I")
_HEADER = struct.Struct("<BI")
_SMALLEST_BODY = 11
_LARGEST_BODY = 64 * 1024 * 1024
_LARGEST_BACKLOG = 256 * 1024 * 1024
_WRITE_BUFFER = 128 * 1024
_READ_SIZE = 256 * 1024
_COMPACT_AT = 1024 * 1024
_LOOKS_MS = 250
_WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class WireError(Exception):
    """The peer does not speak the P4 protocol."""


class ConnectionClosed(Exception):
    """The peer closed the connection or stopped answering."""


class Message:
    """One decoded message: positional arguments and named variables."""

    __slots__ = ("args", "func", "variables")

    def __init__(
        self, *, func: str, args: list[str], variables: dict[str, bytes]
    ) -> None:
        self.func = func
        self.args = args
        self.variables = variables

    def __contains__(self, name: str) -> bool:
        return name in self.variables

    def data(self, name: str) -> bytes:
        """Return a variable's bytes; b"" if it is absent."""
        return self.variables.get(name, b"")

    def text(self, name: str) -> str:
        """Return a variable as text; "" if it is absent."""
        return octets.text_of(self.variables.get(name, b""))

    def integer(self, name: str) -> int:
        """Return a variable as a number; 0 if it is absent or malformed."""
        value = self.variables.get(name, b"")
        return int(value) if value.isdigit() else 0


# Tables instead of calls: a flush of many files encodes each of them.
_TABLE_SIZE = 2048
_SIZES = [_LENGTH.pack(size) for size in range(_TABLE_SIZE)]


def _size_bytes(size: int) -> bytes:
    return _SIZES[size] if size < _TABLE_SIZE else _LENGTH.pack(size)


@lru_cache(maxsize=256)
def _end_bytes(func: str) -> bytes:
    """Return the bytes that end the last value and name the function."""
    name = func.encode()
    return b"\0func\0" + _size_bytes(len(name)) + name + b"\0"


class _Names(dict[str, bytes]):
    """Variable names, encoded as between two values."""

    def __missing__(self, name: str) -> bytes:
        encoded = b"\0" + name.encode() + b"\0"
        if len(self) < 10 * _TABLE_SIZE:
            self[name] = encoded
        return encoded


_NAMES = _Names()


def encode(func: str, variables: Mapping[str, Value]) -> bytes:
    """Return the bytes of one message."""
    parts: list[bytes] = []
    add = parts.append
    for name, value in variables.items():
        if isinstance(value, str):
            data = octets.bytes_of(value)
        elif isinstance(value, bytes):
            data = value
        else:
            data = b"%d" % value
        add(_NAMES[name])
        size = len(data)
        add(_SIZES[size] if size < _TABLE_SIZE else _LENGTH.pack(size))
        add(data)
    add(_end_bytes(func))
    body = b"".join(parts)[1:]
    header = _size_bytes(len(body))
    check = header[0] ^ header[1] ^ header[2] ^ header[3]
    return b"%c%b%b" % (check, header, body)


@lru_cache(maxsize=_TABLE_SIZE)
def _decoded(name: bytes) -> str:
    return name.decode(errors="replace")


def decode(body: bytes) -> Message:
    """Return the message in a body.

    The first of two variables with one name wins, because a reply has the client's
    own values before the echo of ours.

    Raises: WireError if the body is malformed or names no function.
    """
    args: list[str] = []
    variables: dict[str, bytes] = {}
    position = 0
    size = len(body)
    unpack_from = _LENGTH.unpack_from
    while position < size:
        name_end = body.find(b"\0", position)
        start = name_end + 5
        if name_end < 0 or start > size:
            raise WireError("a variable is cut short")
        stop = start + unpack_from(body, name_end + 1)[0]
        if stop >= size or body[stop]:
            raise WireError("a value is cut short")
        if name_end == position:
            args.append(octets.text_of(body[start:stop]))
        else:
            raw = body[position:name_end]
            # Names are few; what is long is none of them and is not kept.
            name = _decoded(raw) if len(raw) < 64 else _decoded.__wrapped__(raw)
            if name not in variables:
                variables[name] = body[start:stop]
        position = stop + 1
    func = variables.pop("func", b"").decode(errors="replace")
    if not func:
        raise WireError("a message names no function")
    return Message(func=func, args=args, variables=variables)


class Connection:
    """A duplex link that reads whatever it can while it writes.

    Both ends send without waiting for each other. If we blocked in a write without
    reading, the two would fill each other's buffers and stop for good.
    """

    def __init__(self, sock: socket.socket, *, timeout_seconds: float) -> None:
        sock.setblocking(False)
        self._socket = sock
        self._timeout_ms = int(timeout_seconds * 1000)
        self._outgoing: list[bytes] = []
        self._outgoing_size = 0
        self._incoming = bytearray()
        # Used again for each read: to get such a piece again costs more than the read.
        self._piece = memoryview(bytearray(_READ_SIZE))
        self._parsed = 0
        self._poll = select.poll()
        # Called now and then while much is sent, or the peer is waited for; what it
        # raises ends that.
        self.between_writes: Callable[[], None] | None = None

    def send(self, func: str, variables: Mapping[str, Value]) -> None:
        """Queue a message; it leaves with the next flush or when the buffer is full."""
        if log.isEnabledFor(logging.DEBUG):
            log.debug("server to client: %s %s", func, _shown(variables))
        self._queue(encode(func, variables))

    @property
    def is_logged(self) -> bool:
        """Return whether every message is logged; then none may be sent raw."""
        return log.isEnabledFor(logging.DEBUG)

    def send_raw(self, data: bytes) -> None:
        """Queue messages that are already encoded."""
        self._queue(data)

    def _queue(self, data: bytes) -> None:
        self._outgoing.append(data)
        self._outgoing_size += len(data)
        if self._outgoing_size >= _WRITE_BUFFER:
            self.flush()
            if self.between_writes is not None:
                self.between_writes()

    def flush(self) -> None:
        """Write everything queued.

        Raises: ConnectionClosed if the peer is gone or accepts nothing in time.
        """
        if not self._outgoing:
            return
        pending = memoryview(b"".join(self._outgoing))
        self._outgoing.clear()
        self._outgoing_size = 0
        try:
            while pending:
                try:
                    pending = pending[self._socket.send(pending) :]
                except _WOULD_BLOCK:
                    if self._wait(select.POLLOUT | select.POLLIN) & select.POLLIN:
                        self._read_some()
                except OSError as error:
                    raise ConnectionClosed(str(error)) from error
        finally:
            # What has begun to leave is sent whole, even if its command has ended.
            if pending:
                self._outgoing.insert(0, bytes(pending))
                self._outgoing_size += len(pending)

    def receive(self, *, forever: bool = False) -> Message:
        """Return the next message, after flushing our own.

        With `forever`, it waits for an idle peer without end (between commands).

        Raises: ConnectionClosed, WireError.
        """
        message = decode(self.receive_body(forever=forever))
        if log.isEnabledFor(logging.DEBUG):
            log.debug(
                "client to server: %s %s %s",
                message.func,
                message.args,
                _shown(message.variables),
            )
        return message

    def receive_body(self, *, forever: bool = False) -> bytes:
        """Return the next message as `decode` takes it; see `receive`."""
        self.flush()
        while (body := self._next_body()) is None:
            # Who began a message has to end it.
            has_begun = len(self._incoming) > self._parsed
            self._wait(select.POLLIN, forever=forever and not has_begun)
            self._read_some()
        return body

    def close(self) -> None:
        """Close the socket, dropping what was not flushed. Safe to repeat."""
        self._outgoing.clear()
        self._socket.close()

    def _next_body(self) -> bytes | None:
        incoming, parsed = self._incoming, self._parsed
        start = parsed + 5
        if len(incoming) < start:
            return None
        check, size = _HEADER.unpack_from(incoming, parsed)
        one, two, three, four = incoming[parsed + 1 : start]
        if check != one ^ two ^ three ^ four:
            raise WireError("bad header: not a Perforce client")
        if not _SMALLEST_BODY <= size <= _LARGEST_BODY:
            raise WireError(f"unacceptable message length {size}")
        stop = start + size
        if len(incoming) < stop:
            return None
        body = bytes(incoming[start:stop])
        self._parsed = stop
        if stop == len(incoming) or stop > _COMPACT_AT:
            del incoming[:stop]
            self._parsed = 0
        return body

    def _read_some(self) -> None:
        while True:
            try:
                size = self._socket.recv_into(self._piece)
            except _WOULD_BLOCK:
                return
            except OSError as error:
                raise ConnectionClosed(str(error)) from error
            if not size:
                raise ConnectionClosed("the client closed the connection")
            self._incoming += self._piece[:size]
            if len(self._incoming) > _LARGEST_BACKLOG:
                raise WireError("the client sends more than it was asked for")
            # What was decrypted already is not waited for: no descriptor tells of it.
            if not (isinstance(self._socket, ssl.SSLSocket) and self._socket.pending()):
                return

    def _wait(self, events: int, *, forever: bool = False) -> int:
        waited_ms = 0
        while True:
            longest_ms = None if forever else self._timeout_ms - waited_ms
            look = self.between_writes
            if look is not None:
                longest_ms = min(longest_ms or _LOOKS_MS, _LOOKS_MS)
            try:
                self._poll.register(self._socket, events)
                ready = self._poll.poll(longest_ms)
            except (OSError, ValueError) as error:
                raise ConnectionClosed(str(error)) from error
            if ready:
                return ready[0][1]
            waited_ms += longest_ms or 0
            if not forever and waited_ms >= self._timeout_ms:
                raise ConnectionClosed("the client did not answer in time")
            if look is not None:
                look()


def _shown(variables: Mapping[str, Value]) -> str:
    """Return variables for the log, long values cut and secrets left out."""
    shown = []
    for name, value in variables.items():
        text = "<hidden>" if name in _SECRET else repr(value)
        shown.append(f"{name}={text if len(text) < 200 else text[:200] + '…'}")
    return " ".join(shown)


_SECRET = frozenset({"data", "token", "token2", "digest2"})
