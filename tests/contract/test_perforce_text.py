"""No text crashes the process: each gateway method gets every kind of text."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import inspect
import os
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from provisioner.gateways.errors import GatewayError
from provisioner.gateways.perforce.changes import Changes
from provisioner.gateways.perforce.clients import Clients
from provisioner.gateways.perforce.files import Files
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.shelves import Shelves
from provisioner.gateways.perforce.specs import SpecRefused
from tests.support.perforce_scene import PerforceScene

FACETS: dict[str, type] = {
    "": PerforceGateway,
    "clients": Clients,
    "files": Files,
    "changes": Changes,
    "shelves": Shelves,
}
LISTS = (list, tuple, set, frozenset, Sequence, Collection, Iterable)
# Names of clients: with one that is there, a verb comes to what else it was given.
CLIENTS = {"client", "name", "source"}
# Numbers of changes, as a server says them.
CHANGES: dict[str, Callable[[str], Any]] = {
    "change": lambda _: "1",
    "was": lambda _: "default",
    "empty_changes": lambda _: ("1",),
    "descriptions": lambda text: {"1": text},
}


def verbs() -> list[tuple[str, str]]:
    """Return facet and name of every public verb that takes anything."""
    return [
        (facet, name)
        for facet, kind in FACETS.items()
        for name, verb in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_") and len(inspect.signature(verb).parameters) > 1
    ]


def value_of(kind: Any, text: str, *, called: str = "") -> Any:
    """Return a value of a type in which every text is this one."""
    if called in CHANGES and kind is not int:
        return CHANGES[called](text)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (UnionType, typing.Union):
        return value_of(next(a for a in arguments if a is not NoneType), text)
    if origin in (Mapping, dict):
        return {value_of(arguments[0], text): value_of(arguments[1], text)}
    if origin is tuple and Ellipsis not in arguments:
        return tuple(value_of(argument, text) for argument in arguments)
    if origin in LISTS:
        return (value_of(arguments[0], text),)
    if origin is Callable:
        return lambda *_: True
    if kind is str:
        return text
    if isinstance(kind, type) and issubclass(kind, Enum):
        return next(iter(kind))
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        return kind(
            **{
                field.name: value_of(hints[field.name], text, called=field.name)
                for field in dataclasses.fields(kind)
            }
        )
    if kind is dt.datetime:
        return dt.datetime.now(dt.UTC)
    return kind(1)


def test_verbs_are_found() -> None:
    assert {("", "setting"), ("clients", "save"), ("shelves", "reopen")} < set(verbs())
    assert len(verbs()) > 35


@pytest.mark.parametrize(("facet", "name"), verbs())
@settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    text=st.one_of(
        st.text(st.characters(exclude_categories=())),
        st.binary().map(os.fsdecode),
    )
)
@example(text="\ud800")
@example(text="\udce9")
@example(text="a\0b")
@example(text="")
@example(text="-f")
@example(text="//depot/\udce9")
@example(text="\n0")
def test_no_text_ends_the_process(
    lab_perforce: PerforceScene, facet: str, name: str, text: str
) -> None:
    gateway = lab_perforce.gateway
    verb = getattr(getattr(gateway, facet) if facet else gateway, name)
    hints = typing.get_type_hints(verb)
    asked = {
        parameter: value_of(hints[parameter], text, called=parameter)
        for parameter in inspect.signature(verb).parameters
    }
    there = lab_perforce.client_name()
    if not lab_perforce.clients:
        Path(lab_perforce.make_client().root).mkdir(exist_ok=True)
    for given_names in ({}, dict.fromkeys(CLIENTS & set(asked), there)):
        try:
            verb(**asked | given_names)
        except (GatewayError, SpecRefused) as error:
            error.sentence.encode("utf-8", "surrogateescape")
    if (facet, name) == ("clients", "save"):
        with contextlib.suppress(GatewayError):
            gateway.clients.delete(text)  # the lab is for other tests, too
