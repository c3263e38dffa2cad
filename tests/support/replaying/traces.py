"""Reading traces, and what a replay of one says."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from provisioner.gateways.tracing.exchanges import (
    FORMAT,
    Exchange,
    Message,
    OntapExchange,
    PerforceExchange,
)


class TraceRefused(ValueError):
    """This file is not a trace that can be read."""


@dataclass(frozen=True, kw_only=True)
class Trace:
    """`exchanges` are by the number of their line."""

    versions: Mapping[str, str]
    exchanges: Mapping[int, Exchange]


@dataclass(frozen=True, kw_only=True)
class Difference:
    """What was answered otherwise than in a trace. `line` is that of the request."""

    line: int
    request: str
    what: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.request}: {self.what}"


@dataclass(kw_only=True)
class Replay:
    """What came of replaying a trace.

    `differences` are of answers. `not_comparable` are requests about something that
    was there and is not here, or the other way round. `left_out` counts, by reason,
    what was not sent.
    """

    replayed: int = 0
    differences: list[Difference] = field(default_factory=list)
    not_comparable: list[Difference] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)


def read_trace(path: Path) -> Trace:
    """Read a trace.

    Raises: TraceRefused (with the line and what is wrong with it); OSError.
    """
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    header = _object(lines[0], number=1) if lines else {}
    if header.get("trace") != FORMAT:
        raise TraceRefused(
            f"{path} is not a trace of format {FORMAT}. Its first line says which "
            "format it has; record it with this release of Cloneyard."
        )
    exchanges = {}
    for number, line in enumerate(lines[1:], start=2):
        try:
            exchanges[number] = _exchange(_object(line, number=number))
        except (KeyError, TypeError, AttributeError) as error:
            raise TraceRefused(
                f"Line {number} is not an exchange: {error!r}."
            ) from error
    return Trace(versions=header.get("versions", {}), exchanges=exchanges)


def _object(line: str, *, number: int) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise TraceRefused(f"Line {number} is not JSON: {error}.") from error
    if not isinstance(value, dict):
        raise TraceRefused(f"Line {number} is not a JSON object.")
    return value


def _exchange(line: Mapping[str, Any]) -> Exchange:
    asked, answer = line["request"], line["response"]
    if line["system"] == "ontap":
        return OntapExchange(
            method=asked["method"],
            path=asked["path"],
            query=asked["query"],
            sent=asked["body"],
            status=answer["status"],
            content_type=answer["content_type"],
            body=answer["body"],
            milliseconds=line["ms"],
        )
    return PerforceExchange(
        user=asked["user"],
        client=asked["client"],
        host=asked["host"],
        command=tuple(asked["command"]),
        form=asked["form"],
        count=answer["count"],
        records=answer["records"],
        texts=answer["texts"],
        messages=[Message(**each) for each in answer["messages"]],
        is_lost=answer["is_lost"],
        milliseconds=line["ms"],
    )
