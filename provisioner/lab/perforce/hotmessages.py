"""The messages that a command sends once per file, encoded at a fifth of the cost.

A flush of a million files sends a million of them, so records are made in batches. Each
function returns the same bytes as `wire.encode` with the same variables in the same
order, and `Numbers` reads what `wire.decode` would; tests compare them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import TypeVar

from provisioner.lab.perforce import octets
from provisioner.lab.perforce.clients import Client
from provisioner.lab.perforce.messages import MESSAGES
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
    """Yield rows in batches, none of them empty."""
    left = iter(rows)
    while batch := list(islice(left, _BATCH)):
        yield batch


@lru_cache(maxsize=1024)
def _variables(pairs: tuple[str, ...]) -> str:
    """Return names and values as they alternate in a message."""
    return "".join(
        f"{name}\0{_SIZE[len(value)]}{value}\0"
        for name, value in zip(pairs[::2], pairs[1::2], strict=True)
    )


def _end(func: str) -> str:
    return _variables(("func", func))


_RECORD = _end("client-FstatInfo")
_LINE = _end("client-Message")
_OPEN = _end("client-OpenFile")
_ACK = _end("client-Ack")
# Names below this length leave a record short enough for the tables.
_LARGEST_NAMES = _LARGEST - 500


# Action of a sync -> the message of its line, for clients without tags.
LINES = {
    "added": 6484,
    "updated": 6489,
    "refreshed": 6490,
    "replaced": 6486,
    "deleted": 6485,
}


@lru_cache
def _start_of_line(message_id: int) -> str:
    code, text = MESSAGES[message_id]
    return _variables(("code0", str(code), "fmt0", text))


@lru_cache(maxsize=4096)
def _about_synced(
    action: str, revision: int, size: int | None, is_tagged: bool
) -> tuple[str, str, str]:
    """Return the parts of a record: before the names, the local key, the rest."""
    number = str(revision)
    if not is_tagged:
        shown = ("depotRev", f"#{number}", "haveRev", f"#{number}")
        end = f"\0{_variables.__wrapped__(shown)}{_LINE}"
        return _start_of_line(LINES[action]), "localPath", end
    sized = () if size is None else ("fileSize", str(size))
    rest = ("rev", number, "action", action, *sized)
    return "", "clientFile", f"\0{_variables.__wrapped__(rest)}{_RECORD}"


def synced(
    steps: Iterable[tuple[str, str, str, int, int | None]],
    *,
    client: Client,
    is_tagged: bool = True,
) -> bytes:
    """Return the records, or without tags the lines, of files of a sync.

    A step is action, depot path, client path, revision and size (None of a deletion).
    """
    root, cut = client.local_root, client.cut
    parts: list[str] = []
    add = parts.append
    for action, path, place, revision, size in steps:
        start, name, end = _about_synced(action, revision, size, is_tagged)
        local = root + place[cut:]
        if _is_hard(path + local):
            names = (("depotFile", path), (name, client.local_path(place)))
            add(_hard(start, names, end))
            continue
        body = (
            f"{start}depotFile\0{_SIZE[len(path)]}{path}\0"
            f"{name}\0{_SIZE[len(local)]}{local}{end}"
        )
        add(_HEADER[len(body)])
        add(body)
    return "".join(parts).encode(_BYTES)


def _is_hard(names: str) -> bool:
    """Return whether names are long, escaped, or not ASCII."""
    return not names.isascii() or "%" in names or len(names) > _LARGEST_NAMES


def _hard(start: str, names: tuple[tuple[str, str], ...], end: str) -> str:
    """Return a message, as code points, with names of any kind."""
    values = []
    for name, text in names:
        data = octets.bytes_of(text)
        values.append(f"{name}\0{(_PACK(len(data)) + data).decode(_BYTES)}")
    body = "\0".join(values)
    body = f"{start}{body}{end}"
    return _header(len(body)).decode(_BYTES) + body


@lru_cache(maxsize=4096)
def _about_had(revision: int, synced_at: int, is_tagged: bool) -> tuple[str, str]:
    """Return the parts of a record: before the names, and the rest."""
    if not is_tagged:
        end = f"\0{_variables.__wrapped__(('haveRev', f'#{revision}'))}{_LINE}"
        return _start_of_line(_HAD_LINE), end
    rest = ("haveRev", str(revision), "syncTime", str(synced_at))
    return "", f"\0{_variables.__wrapped__(rest)}{_RECORD}"


_HAD_LINE = 6391


def had(
    rows: Iterable[tuple[str, str, int, int]], *, client: Client, is_tagged: bool = True
) -> bytes:
    """Return the records, or without tags the lines, of files of a have list.

    A row is depot path, client path, revision and time of the sync.
    """
    root, cut = client.local_root, client.cut
    parts: list[str] = []
    add = parts.append
    for path, place, revision, synced_at in rows:
        start, end = _about_had(revision, synced_at, is_tagged)
        local = root + place[cut:]
        if _is_hard(path + place + local):
            local = client.local_path(place)
            add(_hard(start, _names_of_had(path, place, local, is_tagged), end))
            continue
        if is_tagged:
            between = f"clientFile\0{_SIZE[len(place)]}{place}\0path"
        else:
            between = "lp"
        body = (
            f"{start}depotFile\0{_SIZE[len(path)]}{path}\0"
            f"{between}\0{_SIZE[len(local)]}{local}{end}"
        )
        add(_HEADER[len(body)])
        add(body)
    return "".join(parts).encode(_BYTES)


def _names_of_had(
    path: str, place: str, local: str, is_tagged: bool
) -> tuple[tuple[str, str], ...]:
    if not is_tagged:
        return (("depotFile", path), ("lp", local))
    return (("depotFile", path), ("clientFile", place), ("path", local))


_PACK = struct.Struct("<I").pack
_WRITE = encode("client-WriteFile", {"handle": "sync", "data": b""})
# What stands before and after the size and the bytes of the content.
_WRITE_HEAD = _WRITE[5 : _WRITE.index(b"data\0") + 5]
_WRITE_TAIL = _WRITE[_WRITE.index(b"\0func\0") :]
_WRITE_SIZE = len(_WRITE) - 5
_CLOSE = encode("client-CloseFile", {"handle": "sync", "commit": ""})


def opening(local: str, digest: str, size: int, *, more: tuple[str, ...]) -> bytes:
    """Return the message that opens a file; `more` are further names and values."""
    if _is_hard(local):
        rest = dict(zip(more[::2], more[1::2], strict=True))
        named: dict[str, Value] = {"path": local, "digest": digest, "fileSize": size}
        return encode("client-OpenFile", {**named, **rest})
    return _opening(local, digest, size, more).encode(_BYTES)


def _opening(local: str, digest: str, size: int, more: tuple[str, ...]) -> str:
    length = str(size)
    text = (
        f"path\0{_SIZE[len(local)]}{local}\0digest\0{_SIZE[len(digest)]}{digest}\0"
        f"fileSize\0{_SIZE[len(length)]}{length}\0{_variables(more)}{_OPEN}"
    )
    return f"{_HEADER[len(text)]}{text}"


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

    The client returns the number and the rest unchanged.
    """
    return _CLOSE + _asking(name, value, more).encode(_BYTES)


def _asking(name: str, value: int, more: tuple[str, ...]) -> str:
    number = str(value)
    text = f"{name}\0{_SIZE[len(number)]}{number}\0{_variables(more)}{_ACK}"
    return f"{_HEADER[len(text)]}{text}"


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
    """Return the messages of a file in one piece; b"" if its names are hard.

    They are its record, if it `is_told` of, and what `opening` with `more`, `writing`
    and `closing` with `asked` return.
    """
    action, path, place, revision, size = step
    local = client.local_root + place[client.cut :]
    if _is_hard(path + local):
        return b""
    record = ""
    if is_told:
        body = (
            f"depotFile\0{_SIZE[len(path)]}{path}\0"
            f"clientFile\0{_SIZE[len(local)]}{local}"
            f"{_about_synced(action, revision, size, True)[2]}"
        )
        record = f"{_HEADER[len(body)]}{body}"
    opened, asks = _opening(local, digest, size, more), _asking(*closed, asked)
    start = f"{record}{opened}{_start_of_writing(len(data))}"
    return b"".join((start.encode(_BYTES), data, f"{_AFTER_DATA}{asks}".encode(_BYTES)))


class Numbers:
    """Reads a number from answers that are otherwise like the first one."""

    def __init__(self, name: str) -> None:
        self._name = name.encode()
        self._before = self._after = b""

    def learn(self, body: bytes) -> None:
        """Use an answer, decoded by `wire.decode`, as the pattern for others."""
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
        """Return the number in an answer; None if it does not match the pattern."""
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
