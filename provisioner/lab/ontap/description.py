"""An OpenAPI description of the lab, generated from its table of routes.

It lists paths, methods, parameters and body fields, for programs that generate
requests. The ONTAP REST reference says what the fields mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from provisioner.lab.ontap.conventions.collection import MAXIMUM_RECORDS
from provisioner.lab.ontap.conventions.values import (
    Choice,
    Kind,
    ListOf,
    Record,
    boolean,
    identity,
    integer,
    octal_digits,
    size,
    text,
)
from provisioner.lab.ontap.http import MAXIMUM_RETURN_TIMEOUT, Route

Schema = dict[str, Any]

_STRING: Schema = {"type": "string"}
_BOOLEAN: Schema = {"type": "boolean"}
_SCHEMAS: Mapping[Kind, Schema] = {
    text: _STRING,
    boolean: _BOOLEAN,
    integer: {"type": "integer"},
    identity: {"type": "integer", "minimum": 0},
    octal_digits: {"type": "integer", "minimum": 0, "maximum": 7777},
    size: {"type": "integer", "minimum": 0},
}
_WAIT: Schema = {"type": "integer", "minimum": 0, "maximum": MAXIMUM_RETURN_TIMEOUT}
_PART = re.compile(r"<(\w+)>")


def openapi(routes: Iterable[Route]) -> Schema:
    """Return the description of the routes."""
    paths: dict[str, Schema] = {}
    for route in routes:
        path = _PART.sub(r"{\1}", route.path)
        paths.setdefault(path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.0.3",
        "info": {"title": "Cloneyard's lab: ONTAP REST", "version": "9.16.1"},
        "paths": paths,
        "security": [{"basic": []}],
        "components": {
            "securitySchemes": {"basic": {"type": "http", "scheme": "basic"}},
            "schemas": {"Error": _ERROR},
        },
    }


_ERROR: Schema = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {
                "code": {"type": "string", "pattern": "^[0-9]+$"},
                "message": _STRING,
                "target": _STRING,
            },
        }
    },
}


def _operation(route: Route) -> Schema:
    operation: Schema = {
        "operationId": f"{route.method} {route.path}",
        "summary": (route.handler.__doc__ or "").partition("\n")[0],
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": _STRING}
            for name in _PART.findall(route.path)
        ]
        + [
            {"name": name, "in": "query", "schema": schema}
            for name, schema in _query(route).items()
        ],
        "responses": {
            "2XX": {"description": "done, or accepted with a job"},
            "default": {
                "description": "refused",
                "content": _json({"$ref": "#/components/schemas/Error"}),
            },
        },
    }
    if route.body is not None:
        properties = {name: schema_of(kind) for name, kind in route.body.items()}
        body: Schema = {"type": "object", "properties": properties}
        operation["requestBody"] = {"content": _json(body)}
    return operation


def _json(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}


def _query(route: Route) -> dict[str, Schema]:
    query = {name: schema_of(kind) for name, kind in route.query.items()}
    is_instance = route.path.endswith(">")
    if route.fields is not None and not is_instance:
        # A filter may hold operators, so it is text whatever the field is.
        names = (*route.fields.keys, *route.fields.standard)
        query |= {name: _STRING for name in names if not name.startswith("_")}
    if route.method == "GET" and route.fields is not None:
        query["fields"] = _STRING
        if not is_instance:
            limit = {"type": "integer", "minimum": 1, "maximum": MAXIMUM_RECORDS}
            query |= {
                "max_records": limit,
                "order_by": _STRING,
                "return_records": _BOOLEAN,
                "return_timeout": _WAIT,
            }
    if route.method != "GET" and route.path.startswith("/api"):
        query["return_timeout"] = _WAIT
        if route.method == "POST":
            query["return_records"] = _BOOLEAN
    return query


def schema_of(kind: Kind) -> Schema:
    """Return the JSON schema of a kind of value, without its lenient spellings."""
    if isinstance(kind, Choice):
        return {"type": "string", "enum": list(kind.allowed)}
    if isinstance(kind, ListOf):
        return {"type": "array", "items": schema_of(kind.element)}
    if isinstance(kind, Record):
        properties = {name: schema_of(inner) for name, inner in kind.fields.items()}
        return {
            "type": "object",
            "properties": properties,
            "additionalProperties": False,
        }
    return _SCHEMAS.get(kind, {})
