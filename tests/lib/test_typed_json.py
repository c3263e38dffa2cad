"""Values that go to another process as JSON, and come back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import pytest

from provisioner.lib.typed_json import from_json, to_json


class Color(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Part:
    path: Path
    color: Color | None = None


@dataclass(frozen=True)
class Whole:
    parts: Sequence[Part]
    pairs: tuple[tuple[str, int], ...]
    counts: Mapping[str, float]
    data: bytes
    name: str


def test_a_value_comes_back_as_it_was() -> None:
    whole = Whole(
        parts=[Part(Path("/a"), Color.RED), Part(Path("b"))],
        pairs=(("one", 1), ("two", 2)),
        counts={"x": 0.5},
        data=b"\0\xff",
        name="not utf-8: \udce9",
    )

    assert from_json(Whole, json.loads(json.dumps(to_json(whole)))) == whole


def test_what_is_of_another_type_is_refused() -> None:
    with pytest.raises((TypeError, ValueError)):
        from_json(int, "many")
    with pytest.raises((TypeError, ValueError)):
        from_json(Color, "blue")
