"""The messages that a command sends once for each file, encoded at a third of the cost.

A flush of a million files is a million of them. Each function gives the same bytes as
`wire.encode` with the same variables in the same order; a test holds them together.
"""

from __future__ import annotations

import struct
from functools import lru_cache

from provisioner.lab.perforce.wire import encode

# Bytes as text of the same code points: one conversion at the end instead of many.
_BYTES = "latin-1"
_LARGEST = 4096
_PACKED = [struct.pack("<I", size) for size in range(_LARGEST)]
_SIZE = [packed.decode(_BYTES) for packed in _PACKED]
_HEADER = [
    bytes([p[0] ^ p[1] ^ p[2] ^ p[3]]).decode(_BYTES) + p.decode(_BYTES)
    for p in _PACKED
]


def _end(func: str) -> str:
    return f"func\0{_SIZE[len(func)]}{func}\0"


_RECORD = _end("client-FstatInfo")
_OPEN = _end("client-OpenFile")
_ACK = _end("client-Ack")


def _message(body: str) -> bytes:
    """Return a message of ASCII text and sizes."""
    return (_HEADER[len(body)] + body).encode(_BYTES)


def synced(path: str, local: str, revision: int, action: str, size: int) -> bytes:
    """Return the record of one file of a sync."""
    if path.isascii() and local.isascii() and len(path) + len(local) < _LARGEST - 200:
        number, length = str(revision), str(size)
        return _message(
            f"depotFile\0{_SIZE[len(path)]}{path}\0"
            f"clientFile\0{_SIZE[len(local)]}{local}\0"
            f"rev\0{_SIZE[len(number)]}{number}\0"
            f"action\0{_SIZE[len(action)]}{action}\0"
            f"fileSize\0{_SIZE[len(length)]}{length}\0{_RECORD}"
        )
    return encode(
        "client-FstatInfo",
        {
            "depotFile": path,
            "clientFile": local,
            "rev": revision,
            "action": action,
            "fileSize": size,
        },
    )


def had(path: str, place: str, local: str, revision: int, synced_at: int) -> bytes:
    """Return the record of one file of a have list."""
    names = path + place + local
    if names.isascii() and len(names) < _LARGEST - 200:
        number, moment = str(revision), str(synced_at)
        return _message(
            f"depotFile\0{_SIZE[len(path)]}{path}\0"
            f"clientFile\0{_SIZE[len(place)]}{place}\0"
            f"path\0{_SIZE[len(local)]}{local}\0"
            f"haveRev\0{_SIZE[len(number)]}{number}\0"
            f"syncTime\0{_SIZE[len(moment)]}{moment}\0{_RECORD}"
        )
    return encode(
        "client-FstatInfo",
        {
            "depotFile": path,
            "clientFile": place,
            "path": local,
            "haveRev": revision,
            "syncTime": synced_at,
        },
    )


def opening(local: str, digest: str, size: int, *, more: tuple[str, ...]) -> bytes:
    """Return the message that opens a file; `more` are names and values of its like."""
    if local.isascii() and len(local) < _LARGEST - 500:
        length = str(size)
        return _message(
            f"path\0{_SIZE[len(local)]}{local}\0"
            f"digest\0{_SIZE[len(digest)]}{digest}\0"
            f"fileSize\0{_SIZE[len(length)]}{length}\0{_variables(more)}{_OPEN}"
        )
    rest = dict(zip(more[::2], more[1::2], strict=True))
    variables: dict[str, str | int]
    variables = {"path": local, "digest": digest, "fileSize": size, **rest}
    return encode("client-OpenFile", variables)


@lru_cache(maxsize=1024)
def _variables(pairs: tuple[str, ...]) -> str:
    return "".join(
        f"{name}\0{_SIZE[len(value)]}{value}\0"
        for name, value in zip(pairs[::2], pairs[1::2], strict=True)
    )


_WRITE = encode("client-WriteFile", {"handle": "sync", "data": b""})
# What stands before and after the size and the bytes of the content.
_WRITE_HEAD = _WRITE[5 : _WRITE.index(b"data\0") + 5]
_WRITE_TAIL = _WRITE[_WRITE.index(b"\0func\0") :]
_WRITE_SIZE = len(_WRITE) - 5


def writing(data: bytes) -> bytes:
    """Return the message that writes a piece of a file."""
    size = _WRITE_SIZE + len(data)
    header = struct.pack("<I", size)
    check = header[0] ^ header[1] ^ header[2] ^ header[3]
    length = struct.pack("<I", len(data))
    return b"".join((b"%c" % check, header, _WRITE_HEAD, length, data, _WRITE_TAIL))


# The message that ends a file.
CLOSING = encode("client-CloseFile", {"handle": "sync", "commit": ""})


def acknowledging(name: str, value: int, *, more: tuple[str, ...]) -> bytes:
    """Return the message that asks if a file is done; the client gives all back."""
    number = str(value)
    return _message(f"{name}\0{_SIZE[len(number)]}{number}\0{_variables(more)}{_ACK}")
