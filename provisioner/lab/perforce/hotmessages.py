"""The messages that a command sends once for each file, encoded at a third of the cost.

A flush of a million files is a million of them, so records are made by the batch.
Each function gives the same bytes as `wire.encode` with the same variables in the same
order; a test holds them together.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import TypeVar

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


_BATCH = 256

T = TypeVar("T")


def batches(rows: Iterable[T]) -> Iterator[list[T]]:
    """Yield rows by the batch, none of them empty."""
    left = iter(rows)
    while batch := list(islice(left, _BATCH)):
        yield batch


def _end(func: str) -> str:
    return f"func\0{_SIZE[len(func)]}{func}\0"


_RECORD = _end("client-FstatInfo")
_OPEN = _end("client-OpenFile")
_ACK = _end("client-Ack")


def _message(body: str) -> bytes:
    """Return a message of ASCII text and sizes."""
    return (_HEADER[len(body)] + body).encode(_BYTES)


# Names below this length leave a record short enough for the tables.
_LARGEST_NAMES = _LARGEST - 300


def synced(rows: Iterable[tuple[str, str, int, str, int | None]]) -> bytes:
    """Return the records of files of a sync.

    A row is depot path, local path, revision, action and size (None of a deletion).
    """
    parts: list[str] = []
    for path, local, revision, action, size in rows:
        if (
            not path.isascii()
            or not local.isascii()
            or len(path) + len(local) > _LARGEST_NAMES
        ):
            variables: dict[str, str | int] = {
                **{"depotFile": path, "clientFile": local},
                **{"rev": revision, "action": action},
                **({} if size is None else {"fileSize": size}),
            }
            parts.append(encode("client-FstatInfo", variables).decode(_BYTES))
            continue
        number = str(revision)
        if size is None:
            end = _RECORD
        else:
            length = str(size)
            end = f"fileSize\0{_SIZE[len(length)]}{length}\0{_RECORD}"
        body = (
            f"depotFile\0{_SIZE[len(path)]}{path}\0"
            f"clientFile\0{_SIZE[len(local)]}{local}\0"
            f"rev\0{_SIZE[len(number)]}{number}\0"
            f"action\0{_SIZE[len(action)]}{action}\0{end}"
        )
        parts.append(_HEADER[len(body)] + body)
    return "".join(parts).encode(_BYTES)


def had(rows: Iterable[tuple[str, str, str, int, int]]) -> bytes:
    """Return the records of files of a have list.

    A row is depot path, client path, local path, revision and time of the sync.
    """
    parts: list[str] = []
    for path, place, local, revision, synced_at in rows:
        names = path + place + local
        if not names.isascii() or len(names) > _LARGEST_NAMES:
            variables: dict[str, str | int] = {
                **{"depotFile": path, "clientFile": place, "path": local},
                **{"haveRev": revision, "syncTime": synced_at},
            }
            parts.append(encode("client-FstatInfo", variables).decode(_BYTES))
            continue
        number, moment = str(revision), str(synced_at)
        body = (
            f"depotFile\0{_SIZE[len(path)]}{path}\0"
            f"clientFile\0{_SIZE[len(place)]}{place}\0"
            f"path\0{_SIZE[len(local)]}{local}\0"
            f"haveRev\0{_SIZE[len(number)]}{number}\0"
            f"syncTime\0{_SIZE[len(moment)]}{moment}\0{_RECORD}"
        )
        parts.append(_HEADER[len(body)] + body)
    return "".join(parts).encode(_BYTES)


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
