"""Messages encoded in a hurry are those that `encode` makes."""

from __future__ import annotations

import pytest

from provisioner.lab.perforce import hotmessages
from provisioner.lab.perforce.clients import Client, client_of
from provisioner.lab.perforce.messages import message_variables
from provisioner.lab.perforce.specs import Fields
from provisioner.lab.perforce.specstore import StoredSpec
from provisioner.lab.perforce.wire import Value, decode, encode

NAMES = ["a b/c.txt", "Grüße/名", "n" * 5000, "a%25b", "%E9", "é"]


@pytest.fixture
def client() -> Client:
    fields: Fields = {"Root": "/home/ws", "Owner": "cloneyard"}
    spec = StoredSpec(kind="client", name="ws", fields=fields, updated=0, accessed=0)
    return client_of(spec, view=["//depot/... //ws/..."])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("number", [0, 7, 2**40])
def test_records_are_the_same(client: Client, name: str, number: int) -> None:
    path, place = f"//depot/{name}", f"//ws/{name}"
    local = client.local_path(place)

    step = ("added", path, place, number, number)
    assert hotmessages.synced([step], client=client) == encode(
        "client-FstatInfo",
        {
            "depotFile": path,
            "clientFile": local,
            "rev": number,
            "action": "added",
            "fileSize": number,
        },
    )
    gone = ("deleted", path, place, 1, None)
    assert hotmessages.synced([gone, gone], client=client) == 2 * encode(
        "client-FstatInfo",
        {"depotFile": path, "clientFile": local, "rev": 1, "action": "deleted"},
    )
    assert hotmessages.had([(path, place, number, number)], client=client) == encode(
        "client-FstatInfo",
        {
            "depotFile": path,
            "clientFile": place,
            "path": local,
            "haveRev": number,
            "syncTime": number,
        },
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("action", "number"), [("added", 6484), ("deleted", 6485)])
def test_lines_are_the_same(
    client: Client, name: str, action: str, number: int
) -> None:
    path, place = f"//depot/{name}", f"//ws/{name}"
    local = client.local_path(place)

    step = (action, path, place, 12, 7)
    assert hotmessages.synced([step], client=client, is_tagged=False) == encode(
        "client-Message",
        message_variables(
            number,
            {
                "depotFile": path,
                "localPath": local,
                "depotRev": "#12",
                "haveRev": "#12",
            },
        ),
    )
    row = (path, place, 12, 1_800_000_000)
    assert hotmessages.had([row], client=client, is_tagged=False) == encode(
        "client-Message",
        message_variables(6391, {"depotFile": path, "lp": local, "haveRev": "#12"}),
    )


@pytest.mark.parametrize("name", NAMES)
def test_what_opens_a_file_is_the_same(name: str) -> None:
    more = ("type", "00", "handle", "sync", "perms", "ro", "noclobber", "")

    assert hotmessages.opening(name, "D" * 32, 12, more=more) == encode(
        "client-OpenFile",
        {
            "path": name,
            "digest": "D" * 32,
            "fileSize": 12,
            "type": "00",
            "handle": "sync",
            "perms": "ro",
            "noclobber": "",
        },
    )


def test_what_ends_a_file_is_the_same() -> None:
    assert hotmessages.closing("step", 12, more=("handle", "sync")) == (
        encode("client-CloseFile", {"handle": "sync", "commit": ""})
        + encode("client-Ack", {"step": 12, "handle": "sync"})
    )


@pytest.mark.parametrize("size", [0, 1, 5000, 200_000])
def test_what_writes_a_file_is_the_same(size: int) -> None:
    data = b"x" * size

    assert hotmessages.writing(data) == encode(
        "client-WriteFile", {"handle": "sync", "data": data}
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("data", [b"x", b"\0\xff" * 3000])
@pytest.mark.parametrize("is_told", [True, False])
def test_a_file_in_one_piece_is_the_same(
    client: Client, name: str, data: bytes, is_told: bool
) -> None:
    step = ("updated", f"//depot/{name}", f"//ws/{name}", 7, len(data))
    more, asked = ("type", "00", "perms", "ro"), ("handle", "sync", "confirm", "done")

    whole = hotmessages.whole_file(
        step,
        "D" * 32,
        data,
        client=client,
        is_told=is_told,
        more=more,
        closed=("step", 12345),
        asked=asked,
    )

    if len(name) > 4000 or not name.isascii() or "%" in name:
        assert whole == b""
        return
    local = client.local_path(step[2])
    assert whole == b"".join(
        (
            hotmessages.synced([step], client=client) if is_told else b"",
            hotmessages.opening(local, "D" * 32, len(data), more=more),
            hotmessages.writing(data),
            hotmessages.closing("step", 12345, more=asked),
        )
    )


def answer(func: str = "done", **variables: Value) -> bytes:
    return encode(func, variables)[5:]


def test_a_number_is_read_where_only_it_differs() -> None:
    numbers = hotmessages.Numbers("step")
    assert numbers.read(answer(handle="sync", step=1, more="x")) is None
    numbers.learn(answer(handle="sync", step=1, more="x"))

    for number in (0, 7, 12345, 10**12):
        body = answer(handle="sync", step=number, more="x")
        assert numbers.read(body) == number == decode(body).integer("step")


@pytest.mark.parametrize(
    "other",
    [
        answer("no", handle="sync", step=5, more="x"),
        answer(handle="sync", step=5, more="y"),
        answer(handle="sync", step="", more="x"),
        answer(handle="sync", step="-5", more="x"),
        answer(handle="sync", step="5x", more="x"),
        answer(handle="sync", more="x"),
        answer(step=5, handle="sync", more="x"),
        answer(handle="sync", step=5, more="x") + b"\0",
        b"",
    ],
)
def test_what_is_not_like_the_first_answer_is_left_to_others(other: bytes) -> None:
    numbers = hotmessages.Numbers("step")
    numbers.learn(answer(handle="sync", step=1, more="x"))

    assert numbers.read(other) is None


def test_a_name_within_a_value_is_no_variable() -> None:
    numbers = hotmessages.Numbers("step")
    tricky = "step\0\1\0\0\x008"
    numbers.learn(answer(first=tricky, step=1))

    assert numbers.read(answer(first=tricky, step=9)) == 9
    assert numbers.read(answer(first=tricky.replace("8", "7"), step=9)) is None
