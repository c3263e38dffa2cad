"""The messages that a command sends once for each file, encoded at a fifth of the cost.

A flush of a million files is a million of them, so records are made by the batch.
Each function gives the same bytes as `wire.encode` with the same variables in the same
order, and `Numbers` reads what `wire.decode` would; tests hold them together.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import TypeVar

from provisioner.lab.perforce.clients import Client
from provisioner.lab.perforce.wire import Value, encode

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


@lru_cache(maxsize=1024)
def _variables(pairs: tuple[str, ...]) -> str:
    """Return names and values, in turn, as they stand in a message."""
    return "".join(
        f"{name}\0{_SIZE[len(value)]}{value}\0"
        for name, value in zip(pairs[::2], pairs[1::2], strict=True)
    )


def _end(func: str) -> str:
    return _variables(("func", func))


_RECORD = _end("client-FstatInfo")
_OPEN = _end("client-OpenFile")
_ACK = _end("client-Ack")
# Names below this length leave a record short enough for the tables.
_LARGEST_NAMES = _LARGEST - 500


@lru_cache(maxsize=4096)
def _end_of_synced(action: str, revision: int, size: int | None) -> str:
    sized = () if size is None else ("fileSize", str(size))
    rest = ("rev", str(revision), "action", action, *sized)
    return f"\0{_variables.__wrapped__(rest)}{_RECORD}"


def synced(
    steps: Iterable[tuple[str, str, str, int, int | None]], *, client: Client
) -> bytes:
    """Return the records of files of a sync.

    A step is action, depot path, client path, revision and size (None of a deletion).
    """
    root, cut = client.local_root, client.cut
    parts: list[str] = []
    add = parts.append
    for action, path, place, revision, size in steps:
        local = root + place[cut:]
        if _is_hard(path + local):
            record: dict[str, Value] = {
                **{"depotFile": path, "clientFile": client.local_path(place)},
                **{"rev": revision, "action": action},
                **({} if size is None else {"fileSize": size}),
            }
            add(encode("client-FstatInfo", record).decode(_BYTES))
            continue
        body = (
            f"depotFile\0{_SIZE[len(path)]}{path}\0clientFile\0{_SIZE[len(local)]}"
            f"{local}{_end_of_synced(action, revision, size)}"
        )
        add(_HEADER[len(body)])
        add(body)
    return "".join(parts).encode(_BYTES)


def _is_hard(names: str) -> bool:
    """Tell if names are long, escaped, or more than ASCII."""
    return not names.isascii() or "%" in names or len(names) > _LARGEST_NAMES


@lru_cache(maxsize=4096)
def _end_of_had(revision: int, synced_at: int) -> str:
    rest = ("haveRev", str(revision), "syncTime", str(synced_at))
    return f"\0{_variables.__wrapped__(rest)}{_RECORD}"


def had(rows: Iterable[tuple[str, str, int, int]], *, client: Client) -> bytes:
    """Return the records of files of a have list.

    A row is depot path, client path, revision and time of the sync.
    """
    root, cut = client.local_root, client.cut
    parts: list[str] = []
    add = parts.append
    for path, place, revision, synced_at in rows:
        local = root + place[cut:]
        if _is_hard(path + place + local):
            record: dict[str, Value] = {
                **{"depotFile": path, "clientFile": place},
                **{"path": client.local_path(place)},
                **{"haveRev": revision, "syncTime": synced_at},
            }
            add(encode("client-FstatInfo", record).decode(_BYTES))
            continue
        body = (
            f"depotFile\0{_SIZE[len(path)]}{path}\0clientFile\0{_SIZE[len(place)]}"
            f"{place}\0path\0{_SIZE[len(local)]}{local}"
            f"{_end_of_had(revision, synced_at)}"
        )
        add(_HEADER[len(body)])
        add(body)
    return "".join(parts).encode(_BYTES)


_WRITE = encode("client-WriteFile", {"handle": "sync", "data": b""})
# What stands before and after the size and the bytes of the content.
_WRITE_HEAD = _WRITE[5 : _WRITE.index(b"data\0") + 5]
_WRITE_TAIL = _WRITE[_WRITE.index(b"\0func\0") :]
_WRITE_SIZE = len(_WRITE) - 5
_PACK = struct.Struct("<I").pack
_CLOSE = encode("client-CloseFile", {"handle": "sync", "commit": ""})


def opening(local: str, digest: str, size: int, *, more: tuple[str, ...]) -> bytes:
    """Return the message that opens a file; `more` are names and values of its like."""
    if _is_hard(local):
        rest = dict(zip(more[::2], more[1::2], strict=True))
        named: dict[str, Value] = {"path": local, "digest": digest, "fileSize": size}
        return encode("client-OpenFile", {**named, **rest})
    length = str(size)
    text = (
        f"path\0{_SIZE[len(local)]}{local}\0digest\0{_SIZE[len(digest)]}{digest}\0"
        f"fileSize\0{_SIZE[len(length)]}{length}\0{_variables(more)}{_OPEN}"
    )
    return f"{_HEADER[len(text)]}{text}".encode(_BYTES)


def _header(size: int) -> bytes:
    packed = _PACK(size)
    return b"%c%b" % (packed[0] ^ packed[1] ^ packed[2] ^ packed[3], packed)


def writing(data: bytes) -> bytes:
    """Return the message that writes a piece of a file."""
    length = len(data)
    return b"".join(
        (_header(_WRITE_SIZE + length), _WRITE_HEAD, _PACK(length), data, _WRITE_TAIL)
    )


def closing(name: str, value: int, *, more: tuple[str, ...]) -> bytes:
    """Return the messages that end a file and ask if it is done.

    The client gives the number, as all the rest, back.
    """
    number = str(value)
    text = f"{name}\0{_SIZE[len(number)]}{number}\0{_variables(more)}{_ACK}"
    return _CLOSE + f"{_HEADER[len(text)]}{text}".encode(_BYTES)


@lru_cache(maxsize=4096)
def _start_of_writing(length: int) -> str:
    start = _header(_WRITE_SIZE + length) + _WRITE_HEAD + _PACK(length)
    return start.decode(_BYTES)


_AFTER_DATA = (_WRITE_TAIL + _CLOSE).decode(_BYTES)


def whole_file(
    step: tuple[str, str, str, int, int],
    digest: str,
    data: bytes,
    *,
    client: Client,
    is_told: bool,
    more: tuple[str, ...],
    closed: tuple[str, int],
    asked: tuple[str, ...],
) -> bytes:
    """Return the messages of a file in one piece; b"" where its names are hard.

    They are its record, if it `is_told` of, and what `opening` with `more`, `writing`
    and `closing` with `asked` return.
    """
    action, path, place, revision, size = step
    local = client.local_root + place[client.cut :]
    if _is_hard(path + local):
        return b""
    located = f"{_SIZE[len(local)]}{local}\0"
    length = str(size)
    opened = (
        f"path\0{located}digest\0{_SIZE[len(digest)]}{digest}\0"
        f"fileSize\0{_SIZE[len(length)]}{length}\0{_variables(more)}{_OPEN}"
    )
    record = ""
    if is_told:
        body = (
            f"depotFile\0{_SIZE[len(path)]}{path}\0clientFile\0{located[:-1]}"
            f"{_end_of_synced(action, revision, size)}"
        )
        record = f"{_HEADER[len(body)]}{body}"
    name, number = closed[0], str(closed[1])
    ended = f"{name}\0{_SIZE[len(number)]}{number}\0{_variables(asked)}{_ACK}"
    start = f"{record}{_HEADER[len(opened)]}{opened}{_start_of_writing(len(data))}"
    end = f"{_AFTER_DATA}{_HEADER[len(ended)]}{ended}"
    return b"".join((start.encode(_BYTES), data, end.encode(_BYTES)))


class Numbers:
    """Reads a number out of answers that are otherwise like the first one."""

    def __init__(self, name: str) -> None:
        self._name = name.encode()
        self._before = self._after = b""

    def learn(self, body: bytes) -> None:
        """Take an answer, which `wire.decode` has read, as the pattern for others."""
        position = 0
        while position < len(body):
            name_end = body.index(b"\0", position)
            start = name_end + 5
            stop = start + int.from_bytes(body[name_end + 1 : start], "little")
            if body[position:name_end] == self._name:
                self._before, self._after = body[: name_end + 1], body[stop:]
                return
            position = stop + 1

    def read(self, body: bytes) -> int | None:
        """Return the number of an answer; None where it is not like the pattern."""
        start, stop = len(self._before) + 4, len(body) - len(self._after)
        digits = body[start:stop]
        if (
            self._before
            and digits.isdigit()
            and body.startswith(self._before)
            and body.endswith(self._after)
            and body[start - 4 : start] == _PACK(stop - start)
        ):
            return int(digits)
        return None
