"""Names of the schema, which are names of classes and functions in client libraries."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

from provisioner.api.schema import whole_schema
from provisioner.api.schema_names import SHARED, name_by_use


def reference(name: str) -> dict[str, Any]:
    return {"allOf": [{"$ref": f"#/components/schemas/{name}"}]}


def component(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields}


def test_choices_are_named_after_the_shortest_that_has_them() -> None:
    schemas = {
        "ModeEnum": {"enum": ["manual", "cron"]},
        "NullEnum": {"enum": [None]},
        "Refresh": component(how_often=reference("ModeEnum")),
        "RefreshSaveRequest": component(
            how_often={"oneOf": [{"$ref": "#/components/schemas/ModeEnum"}]},
            until={"oneOf": [{"$ref": "#/components/schemas/NullEnum"}]},
        ),
    }

    named = name_by_use({"components": {"schemas": schemas}})["components"]["schemas"]

    assert set(named) == {
        *("NullEnum", "Refresh", "RefreshHowOften", "RefreshSaveRequest")
    }
    refresh, saved = named["Refresh"], named["RefreshSaveRequest"]
    assert refresh["properties"]["how_often"] == reference("RefreshHowOften")
    [by_choice] = saved["properties"]["how_often"]["oneOf"]
    assert by_choice["$ref"].endswith("/RefreshHowOften")


def test_an_object_that_may_be_null_has_a_name() -> None:
    snapshot = {"type": "object", "nullable": True}
    schemas = {"Template": component(snapshot=snapshot, path={"type": "string"})}

    name_by_use({"components": {"schemas": schemas}})

    assert snapshot["title"] == "TemplateSnapshot"


def test_two_schemas_of_one_name_are_refused() -> None:
    schemas = {
        "ThenEnum": {"enum": ["trash"]},
        "Lease": component(then=reference("ThenEnum")),
        "LeaseThen": component(),
    }

    with pytest.raises(ValueError, match="would have one name"):
        name_by_use({"components": {"schemas": schemas}})


def test_no_name_depends_on_the_fields_of_others() -> None:
    schema = whole_schema()
    made_up = {name for name in schema["components"]["schemas"] if "Enum" in name}
    ids = Counter(
        operation["operationId"]
        for path in schema["paths"].values()
        for operation in path.values()
    )

    assert made_up <= set(SHARED)
    assert set(ids.values()) == {1}
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", name) for name in ids)
