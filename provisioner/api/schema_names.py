"""Names in the schema that become classes of client libraries.

Settings name it, so it imports nothing of ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

MADE_UP = "Enum"
# They have one value, and say that a field may be empty or null.
SHARED = ("BlankEnum", "NullEnum")


def name_by_use(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Name choices and optional objects after what has them, such as `LeaseThen`.

    drf-spectacular names choices after their field alone, and otherwise once another
    feature has a field of that name: a library's class would have another name then.
    """
    schemas = result["components"]["schemas"]
    renamed = {
        name: _use_of(name, schemas)
        for name in schemas
        if name.endswith(MADE_UP) and name not in SHARED
    }
    for component, schema in schemas.items():
        for field, described in schema.get("properties", {}).items():
            if described.get("type") == "object" and described.get("nullable"):
                described["title"] = component + _camel(field)
    for reference in _references(result):
        name = reference["$ref"].rpartition("/")[2]
        reference["$ref"] = reference["$ref"].removesuffix(name) + renamed.get(
            name, name
        )
    named = {renamed.get(name, name): schema for name, schema in schemas.items()}
    if len(named) != len(schemas):
        raise ValueError(f"Two schemas would have one name: {sorted(renamed.values())}")
    result["components"]["schemas"] = dict(sorted(named.items()))
    return result


def _use_of(name: str, schemas: dict[str, Any]) -> str:
    """Return what has these choices, and in which field; of several, the shortest."""
    uses = [
        component + _camel(field)
        for component, schema in schemas.items()
        for field, described in schema.get("properties", {}).items()
        if any(r["$ref"].endswith(f"/{name}") for r in _references(described))
    ]
    return min(uses, key=lambda use: (len(use), use), default=name)


def _references(within: Any) -> Iterator[dict[str, str]]:
    if isinstance(within, dict):
        if isinstance(within.get("$ref"), str):
            yield within
        for each in within.values():
            yield from _references(each)
    elif isinstance(within, list):
        for each in within:
            yield from _references(each)


def _camel(field: str) -> str:
    return "".join(word.capitalize() for word in field.split("_"))
