"""Names that would mean more than themselves never reach a query."""

from __future__ import annotations

import pytest

from provisioner.gateways.errors import Refused
from provisioner.gateways.ontap.names import (
    check_junction_path,
    exact_name,
    path_uuid,
)

UUID = "e3cb2bef-0f1c-11f0-8de9-0242ac120002"


@pytest.mark.parametrize("name", ["ws_alice", "cl_81234", "hourly.2026-11-21_1005"])
def test_a_plain_name_passes(name: str) -> None:
    assert exact_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "ws_*",
        "a|b",
        "!a",
        "<a",
        ">a",
        "a..b",
        '"a"',
        "null",
        " a",
        "a ",
        "a\nb",
    ],
)
def test_a_name_that_is_a_query_is_refused(name: str) -> None:
    with pytest.raises(Refused) as refused:
        exact_name(name)
    assert refused.value.operation == "name"


@pytest.mark.parametrize("path", ["/a", "/ws/alice_main", "/" + "a" * 254])
def test_a_junction_path_passes(path: str) -> None:
    check_junction_path(path)


@pytest.mark.parametrize(
    "path", ["", "/", "ws", "/ws/", "/a*", "/a?", "/a\\b", "/a|b", "/" + "a" * 255]
)
def test_what_cannot_be_a_junction_path_is_refused(path: str) -> None:
    with pytest.raises(Refused):
        check_junction_path(path)


def test_a_uuid_passes() -> None:
    assert path_uuid(UUID) == UUID


@pytest.mark.parametrize("uuid", ["", "*", UUID + "/snapshots", UUID[:-1], "a/../b"])
def test_anything_else_never_stands_in_a_path(uuid: str) -> None:
    with pytest.raises(ValueError):
        path_uuid(uuid)
