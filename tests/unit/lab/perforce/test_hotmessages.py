"""Messages encoded in a hurry are those that `encode` makes."""

from __future__ import annotations

import pytest

from provisioner.lab.perforce import hotmessages
from provisioner.lab.perforce.wire import encode

NAMES = ["//depot/a b/c.txt", "//depot/Grüße/名", "//depot/" + "n" * 5000, "/a%25b"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("number", [0, 7, 2**40])
def test_records_are_the_same(name: str, number: int) -> None:
    assert hotmessages.synced([(name, name, number, "added", number)]) == encode(
        "client-FstatInfo",
        {
            "depotFile": name,
            "clientFile": name,
            "rev": number,
            "action": "added",
            "fileSize": number,
        },
    )
    assert hotmessages.synced([(name, name, 1, "deleted", None)] * 2) == 2 * encode(
        "client-FstatInfo",
        {"depotFile": name, "clientFile": name, "rev": 1, "action": "deleted"},
    )
    assert hotmessages.had([(name, name, name, number, number)]) == encode(
        "client-FstatInfo",
        {
            "depotFile": name,
            "clientFile": name,
            "path": name,
            "haveRev": number,
            "syncTime": number,
        },
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


def test_what_asks_if_a_file_is_done_is_the_same() -> None:
    assert hotmessages.acknowledging("step", 12, more=("handle", "sync")) == encode(
        "client-Ack", {"step": 12, "handle": "sync"}
    )


@pytest.mark.parametrize("size", [0, 1, 5000, 200_000])
def test_what_writes_a_file_is_the_same(size: int) -> None:
    data = b"x" * size

    assert hotmessages.writing(data) == encode(
        "client-WriteFile", {"handle": "sync", "data": data}
    )
