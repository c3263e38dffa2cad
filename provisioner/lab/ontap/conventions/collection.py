"""Collections and instances: filters, order, pages and the form of the answer."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cmp_to_key
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import quote

from provisioner.lab.ontap.conventions.fields import FieldSet, Flat, Wanted, values_of
from provisioner.lab.ontap.conventions.query import (
    Predicate,
    Scalar,
    filter_of,
    parse_filter,
)
from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.http import Call, Reply

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

T = TypeVar("T")

MAXIMUM_RECORDS = 10_000
_GET_SECONDS = 15


@dataclass(frozen=True)
class Resource(Generic[T]):
    """How rows of one kind become records.

    order: the fields to sort by if the request names none.
    """

    fields: FieldSet
    view: Callable[[Array, T], Flat]
    href: Callable[[Array, T], str]
    order: tuple[str, ...] = ("uuid",)

    def record(self, call: Call, row: T, *, wanted: Wanted) -> dict[str, Any]:
        """Return the record of a row with the wanted fields and its link."""
        return self.link(call, wanted.select(self.view(call.array, row)), row)

    def link(self, call: Call, record: dict[str, Any], row: T) -> dict[str, Any]:
        """Add the link to the record, unless the client requested plain JSON."""
        if call.wants_links:
            record["_links"] = {"self": {"href": self.href(call.array, row)}}
        return record


def require_selection(
    call: Call, fields: FieldSet, *, besides: tuple[str, ...] = ()
) -> None:
    """Refuse a change or deletion whose query selects nothing or has unknown fields.

    `besides` are parameters of the method; they are no filters.

    Raises: OntapError 262204, 262179.
    """
    for name in besides:
        call.filters.pop(name, None)
    if not call.filters:
        raise OntapError("262204")
    for name in call.filters:
        if not fields.knows(name):
            raise OntapError("262179", target=name, field=name)


def instance(call: Call, resource: Resource[T], row: T) -> Reply:
    """Answer a GET of one record; query filters are accepted and ignored."""
    _check_filters(call, resource.fields)
    wanted = Wanted.parse(
        call.parameter("fields"),
        fields=resource.fields,
        whole=True,
        ignores_unknown=call.ignores_unknown,
    )
    return Reply(resource.record(call, row, wanted=wanted))


def collection(call: Call, resource: Resource[T], rows: Iterable[T]) -> Reply:
    """Answer a GET of many records."""
    limit = call.number("max_records", default=MAXIMUM_RECORDS, low=1, high=2**63 - 1)
    seconds = call.number("return_timeout", default=_GET_SECONDS, low=0, high=120)
    deadline = time.monotonic() + (seconds or _GET_SECONDS)
    _check_filters(call, resource.fields)
    wanted = Wanted.parse(
        call.parameter("fields"),
        fields=resource.fields,
        extra=call.filters,
        ignores_unknown=call.ignores_unknown,
    )
    order = _Order.parse(
        call.parameter("order_by"), resource, ignores_unknown=call.ignores_unknown
    )
    matching: list[tuple[_Key, T, Flat]] = [
        (order.key(flat), row, flat) for row, flat in select(call, resource, rows)
    ]
    if not call.flag("return_records", default=True):
        return Reply({"num_records": len(matching), **_links(call)})
    placed = cmp_to_key(order.compare)
    matching.sort(key=lambda item: placed(item[0]))
    start = _start_key(call, order)
    records: list[dict[str, Any]] = []
    more, last = False, start
    for key, row, flat in matching:
        if start is not None and order.compare(key, start) <= 0:
            continue
        if len(records) >= min(limit, MAXIMUM_RECORDS) or (
            records and time.monotonic() > deadline
        ):
            more = True
            break
        records.append(resource.link(call, wanted.select(flat), row))
        last = key
    body: dict[str, Any] = {"records": records, "num_records": len(records)}
    return Reply({**body, **_links(call, more_after=last if more else None)})


def select(
    call: Call, resource: Resource[T], rows: Iterable[T]
) -> Iterable[tuple[T, Flat]]:
    """Yield the rows that match the query, with their flat records."""
    tests = [(name, filter_of(name, value)) for name, value in call.filters.items()]
    search = _Search.parse(call, resource)
    for row in rows:
        flat = resource.view(call.array, row)
        if all(matches(values_of(flat, name)) for name, matches in tests) and (
            search is None or search.finds(flat)
        ):
            yield row, flat


@dataclass(frozen=True)
class _Search:
    """``query=VALUE&query_fields=a,b``: one filter on several fields, any of which
    matches.
    """

    matches: Predicate
    fields: tuple[str, ...]

    @classmethod
    def parse(cls, call: Call, resource: Resource[Any]) -> _Search | None:
        value, names = call.parameter("query"), call.parameter("query_fields")
        if not value and not names:
            return None
        for name, given in (("query", value), ("query_fields", names)):
            if not given:
                raise OntapError("262194", target=name, field=name)
        fields = [name.strip() for name in (names or "").split(",") if name.strip()]
        for name in fields:
            if not resource.fields.knows(name):
                raise OntapError(
                    "262197", target="query_fields", field="query_fields", value=name
                )
        return cls(parse_filter(value or ""), tuple(fields))

    def finds(self, flat: Flat) -> bool:
        return any(self.matches(values_of(flat, name)) for name in self.fields)


def _check_filters(call: Call, fields: FieldSet) -> None:
    for name, value in list(call.filters.items()):
        if not fields.knows(name):
            if call.is_strict:
                raise OntapError("262179", target=name, field=name)
            if call.ignores_unknown:
                del call.filters[name]
        elif value == "":
            raise OntapError("262194", target=name, field=name)


def _links(call: Call, *, more_after: _Key | None = None) -> dict[str, Any]:
    """Return the collection's links; plain JSON only has the one to the next page."""
    links: dict[str, Any] = {}
    if call.wants_links:
        links["self"] = {"href": _href(call, start=None)}
    if more_after is not None:
        links["next"] = {"href": _href(call, start=more_after)}
    return {"_links": links} if links else {}


def _href(call: Call, *, start: _Key | None) -> str:
    """Return the request's path and query, root-relative, with another start."""
    pairs = [
        (name, value)
        for name, value in call.query.items(multi=True)
        if start is None or name != "start.key"
    ]
    if start is not None:
        token = base64.urlsafe_b64encode(json.dumps(start).encode()).decode()
        pairs.append(("start.key", token.rstrip("=")))
    text = "&".join(
        f"{quote(name, safe='.')}={quote(value, safe='*,./:<>!|')}"
        for name, value in pairs
    )
    return f"{call.path}?{text}" if text else call.path


# --- order and pages

_NUMBER, _TEXT, _ABSENT = 0, 1, 2
# Per field of the order: what kind of value there is, and the value.
_Key = list[tuple[int, float | str]]


@dataclass(frozen=True)
class _Order:
    """Fields with their directions, the uuid last so that no two rows are equal."""

    fields: tuple[tuple[str, bool], ...]

    @classmethod
    def parse(
        cls, parameter: str | None, resource: Resource[Any], *, ignores_unknown: bool
    ) -> _Order:
        parts: list[tuple[str, bool]] = []
        for element in (parameter or "").split(","):
            name, _, direction = element.strip().partition(" ")
            if not name:
                continue
            direction = direction.strip().lower() or "asc"
            if ignores_unknown and not resource.fields.knows(name):
                continue
            if not resource.fields.knows(name) or direction not in ("asc", "desc"):
                raise OntapError(
                    "262197", target="order_by", field="order_by", value=element[:200]
                )
            parts.append((name, direction == "desc"))
        return cls((*parts, *((name, False) for name in resource.order)))

    def key(self, record: Flat) -> _Key:
        """Return the position of a record in the order."""
        return [_part(values_of(record, name)) for name, _ in self.fields]

    def compare(self, left: _Key, right: _Key) -> int:
        """Return a negative number, zero or a positive one, for sorting."""
        for (_, descending), a, b in zip(self.fields, left, right, strict=True):
            if a != b:
                return (-1 if a < b else 1) * (-1 if descending else 1)
        return 0


def _part(values: list[Scalar]) -> tuple[int, float | str]:
    if not values:
        return (_ABSENT, "")
    value = values[0]
    if isinstance(value, str):
        return (_TEXT, value)
    return (_NUMBER, value)


def _start_key(call: Call, order: _Order) -> _Key | None:
    token = call.parameter("start.key")
    if token is None:
        return None
    try:
        raw = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        key: _Key = [
            (_NUMBER, float(value)) if rank == _NUMBER else (int(rank), str(value))
            for rank, value in raw
        ]
        if len(key) != len(order.fields):
            raise ValueError(token)
    except (ValueError, TypeError, RecursionError):
        raise OntapError(
            "262197", target="start.key", field="start.key", value=token[:200]
        ) from None
    return key
