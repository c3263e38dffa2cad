"""Request bodies: nested objects and dotted keys, mixed in any way."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

from provisioner.lab.ontap.conventions.values import Kind, ListOf, Record
from provisioner.lab.ontap.errors import OntapError

BODY_LIMIT_BYTES = 1 << 20
_DEPTH_LIMIT = 32


def parse_json(data: bytes) -> dict[str, object]:
    """Return the JSON object in `data`; empty data counts as ``{}``."""
    if not data.strip():
        return {}
    try:
        document = json.loads(
            data, object_pairs_hook=_pairs, parse_constant=_refuse_constant
        )
    except (ValueError, RecursionError) as error:
        raise OntapError("262180", reason=type(error).__name__) from None
    if not isinstance(document, dict):
        raise OntapError("262180", reason="it is not an object")
    return document


def _refuse_constant(name: str) -> object:
    raise ValueError(name)


def _pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result: dict[str, object] = {}
    for name, value in pairs:
        if name in result:
            raise OntapError("262188", target=name, field=name)
        result[name] = value
    return result


def flatten(document: Mapping[str, object]) -> dict[str, object]:
    """Return leaves by dotted name; lists are leaves, nulls are left out."""
    flat: dict[str, object] = {}
    _flatten_into(flat, document, prefix="", depth=0)
    return flat


def _flatten_into(
    flat: dict[str, object], document: Mapping[str, object], *, prefix: str, depth: int
) -> None:
    if depth > _DEPTH_LIMIT:
        raise OntapError("262180", reason="it is nested too deeply")
    for key, value in document.items():
        name = prefix + key
        if isinstance(value, dict):
            _flatten_into(flat, value, prefix=name + ".", depth=depth + 1)
        elif name in flat:
            raise OntapError("262188", target=name, field=name)
        elif value is not None:
            flat[name] = value


def read_fields(
    flat: Mapping[str, object],
    *,
    schema: Mapping[str, Kind],
    read_only: Collection[str] = (),
    strict: bool = True,
) -> dict[str, object]:
    """Return the values of `flat` that `schema` names, converted to their kinds.

    A schema name that ends in ``.*`` stands for everything below it. Unknown names are
    refused in strict mode and otherwise ignored.
    """
    result: dict[str, object] = {}
    for name, value in _with_lists(flat, schema).items():
        if name == "_links" or name.startswith("_links."):
            continue
        kind = schema.get(name) or _kind_of_tree(name, schema)
        if kind is not None:
            result[name] = _convert(name, value, kind)
        elif _is_below(name, read_only):
            raise OntapError("262196", target=name, field=name)
        elif strict:
            raise OntapError("262179", target=name, field=name)
    return result


def _with_lists(
    flat: Mapping[str, object], schema: Mapping[str, Kind]
) -> dict[str, object]:
    """Return the body with lists of records that were given field by field.

    ``"aggregates.name": ["a"]`` means ``"aggregates": [{"name": "a"}]``.
    """
    result: dict[str, object] = {}
    columns: dict[str, dict[str, list[object]]] = {}
    for name, value in flat.items():
        parent, _, leaf = name.rpartition(".")
        if name not in schema and _has_column(schema.get(parent), leaf):
            values = value if isinstance(value, list) else [value]
            columns.setdefault(parent, {})[leaf] = values
        else:
            result[name] = value
    for name, by_leaf in columns.items():
        if name in result:
            raise OntapError("262188", target=name, field=name)
        if len({len(values) for values in by_leaf.values()}) > 1:
            raise OntapError("262197", target=name, field=name, value=str(by_leaf)[:99])
        rows = zip(*by_leaf.values(), strict=True)
        result[name] = [dict(zip(by_leaf, row, strict=True)) for row in rows]
    return result


def _has_column(kind: Kind | None, leaf: str) -> bool:
    is_list = isinstance(kind, ListOf) and isinstance(kind.element, Record)
    return is_list and leaf in kind.element.fields  # type: ignore[union-attr]  # is one


def _kind_of_tree(name: str, schema: Mapping[str, Kind]) -> Kind | None:
    while "." in name:
        name = name.rpartition(".")[0]
        if kind := schema.get(name + ".*"):
            return kind
    return None


def _is_below(name: str, prefixes: Collection[str]) -> bool:
    return any(name == prefix or name.startswith(prefix + ".") for prefix in prefixes)


def _convert(name: str, value: object, kind: Kind) -> object:
    try:
        return kind(value)
    except (ValueError, OverflowError):
        raise OntapError(
            "262197", target=name, field=name, value=str(value)[:200]
        ) from None
