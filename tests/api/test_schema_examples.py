"""The examples of the schema are what the API takes and answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from provisioner.api.schema import whole_schema
from provisioner.lib.refusals import ActionRefused

# What a script writer meets first: sign in, request, poll, extend, retire, choose.
SHOWN_FIRST = {
    "tokens_create": {"request", "201", "400", "401", "403", "429", "503"},
    "templates_list": {"200", "400", "401", "429", "503"},
    "workspaces_create": {"request", "201", "202", "400", "401", "403", "409"},
    "workspaces_list": {"200", "400", "401", "429", "503"},
    "workspaces_retrieve": {"200", "202", "400", "401", "404", "429", "503"},
    "workspaces_extend": {"request", "200", "400", "403", "404", "409", "503"},
    "workspaces_destroy": {"202", "400", "403", "404", "409", "429", "503"},
    "workspaces_check": {"202"},
    "workspaces_heartbeat": {"200", "409"},
    "workspaces_keep": {"request", "200"},
    "workspaces_restore": {"202"},
    "workspaces_retry": {"202"},
    "workspaces_shares_create": {"request", "201"},
    "operations_retrieve": {"200"},
    "snapshots_list": {"200"},
    "templates_retrieve": {"200"},
    "templates_build": {"request", "202"},
    "pools_list": {"200"},
    "pools_create": {"request", "201", "409"},
    "pools_retrieve": {"200"},
    "pools_partial_update": {"request", "200"},
    "mirrors_list": {"200"},
    "mirrors_create": {"request", "202", "409"},
    "mirrors_retrieve": {"200"},
    "mirrors_partial_update": {"request", "200"},
    "mirrors_retry": {"202"},
    "mirrors_transfer": {"request", "202", "409"},
    "mirrors_snapshots": {"200"},
    "mirrors_destroy": {"202", "409"},
    "mirrors_promotion": {"200"},
    "mirrors_promote": {"202", "409"},
    "mirrors_way_back": {"200"},
    "mirrors_re_establish": {"202", "409"},
    "mirrors_give_up": {"202", "409"},
    "checkpoints_list": {"200"},
    "checkpoints_create": {"request", "202", "409"},
    "checkpoint_plans_list": {"200"},
    "checkpoint_plans_partial_update": {"request", "200", "409"},
    "drills_list": {"200"},
    "drills_retrieve": {"200"},
    "drills_create": {"request", "202", "409"},
    "drill_plans_list": {"200"},
    "drill_plans_partial_update": {"request", "200", "409"},
    "verification_plans_list": {"200"},
    "verification_plans_partial_update": {"request", "200", "409"},
    "verifications_list": {"200"},
    "verifications_create": {"request", "202", "409"},
    "verifications_retrieve": {"200"},
    "verifications_damaged": {"200"},
    "sandboxes_list": {"200"},
    "sandboxes_create": {"request", "202", "409"},
    "sandboxes_retrieve": {"200"},
    "sandboxes_extend": {"request", "200", "409"},
    "sandboxes_retire": {"request", "202", "409"},
    "sandboxes_start": {"202", "409"},
    "p4d_versions_list": {"200"},
    "p4d_versions_create": {"request", "200"},
    "sandbox_hosts_list": {"200"},
    "sandbox_hosts_create": {"request", "200", "409"},
    "sandbox_hosts_destroy": {"409"},
    "sandbox_policies_list": {"200"},
    "sandbox_policies_create": {"request", "200"},
    "sandboxes_retry": {"202", "409"},
    "qualification_runs_list": {"200"},
    "qualification_runs_create": {"request", "202", "409"},
    "qualification_runs_baseline": {"request", "202", "403"},
    "qualification_runs_retrieve": {"200"},
    "qualification_runs_retry": {"202", "409"},
    "server_volumes_list": {"200"},
    "storage_advice_list": {"200"},
    "support_matrix_list": {"200"},
    "workers_list": {"200"},
    "server_volumes_create": {"request", "200", "400"},
    "webhooks_list": {"200"},
    "webhooks_create": {"request", "201"},
    "webhooks_retrieve": {"200"},
    "webhooks_partial_update": {"request", "200"},
    "webhooks_test": {"202"},
    "webhooks_secret": {"200"},
    "webhooks_deliveries_list": {"200"},
    "webhooks_deliveries_retrieve": {"200"},
    "webhooks_deliveries_again": {"202", "409"},
    "bisections_list": {"200"},
    "bisections_create": {"request", "202"},
    "bisections_retrieve": {"200", "202"},
    "bisections_verdict": {"request", "200", "409"},
    "bisections_stop": {"200"},
    "storage_snapshots_list": {"200"},
    "storage_plan_get": {"200"},
    "storage_plan_request": {"request", "202", "409"},
    "workspaces_split": {"202", "409"},
    "workspaces_split_get": {"200"},
    "workspaces_split_stop": {"202", "409"},
    "workspaces_transfer": {"request", "202", "409"},
    "workspaces_transfer_get": {"200"},
    "workspaces_transfer_abort": {"202", "409"},
}


class Shown(NamedTuple):
    """An example, where it stands (`request` or a status), and its schema."""

    operation: str
    where: str
    name: str
    value: Any
    schema: dict[str, Any]


def examples() -> Iterator[Shown]:
    for methods in whole_schema()["paths"].values():
        for operation in methods.values():
            contents = {"request": operation.get("requestBody", {})}
            contents.update(operation["responses"])
            for where, content in contents.items():
                media = content.get("content", {}).get("application/json", {})
                for name, example in media.get("examples", {}).items():
                    yield Shown(
                        operation["operationId"],
                        where,
                        name,
                        example["value"],
                        media["schema"],
                    )


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema whose reference, or only part, is followed."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/components/schemas/")
        return resolved(whole_schema()["components"]["schemas"][name])
    parts = schema.get("allOf", ())
    if len(parts) == 1:
        return {**resolved(parts[0]), **schema, "allOf": ()}
    return schema


TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def wrong(value: Any, schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """Yield what a value has that its schema does not, and the other way round."""
    schema = resolved(schema)
    if value is None and schema.get("nullable"):
        return
    choices = schema.get("oneOf") or schema.get("anyOf")
    if choices:
        if all(list(wrong(value, choice, path)) for choice in choices):
            yield f"{path}: {value!r} is none of its choices"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} is not one of {schema['enum']}"
    expected = TYPES.get(schema.get("type", ""))
    if expected is None:
        return
    if not isinstance(value, expected) or (
        isinstance(value, bool) and bool not in expected
    ):
        yield f"{path}: {value!r} is no {schema['type']}"
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from wrong(item, schema.get("items", {}), f"{path}[{index}]")
    elif isinstance(value, dict):
        yield from wrong_fields(value, schema, path)


def wrong_fields(
    value: dict[str, Any], schema: dict[str, Any], path: str
) -> Iterator[str]:
    fields = schema.get("properties", {})
    for name in set(schema.get("required", ())) - set(value):
        yield f"{path}.{name} is missing"
    for name, inner in value.items():
        if name in fields:
            yield from wrong(inner, fields[name], f"{path}.{name}")
        elif "additionalProperties" not in schema:
            yield f"{path}.{name} does not exist"


def test_every_example_has_the_shape_that_the_schema_says() -> None:
    problems = {
        (shown.operation, shown.where, shown.name): found
        for shown in examples()
        if (found := list(wrong(shown.value, shown.schema)))
    }

    assert problems == {}


def test_an_example_that_rots_is_found() -> None:
    schema = {"$ref": "#/components/schemas/Lease"}

    assert list(wrong({"ends_on": "2026-11-24"}, schema))
    error = {"code": "not_found", "detail": "", "request_id": ""}
    assert list(wrong({**error, "code": "no_such_code"}, error_schema()))
    assert not list(wrong(error, error_schema()))


def error_schema() -> dict[str, Any]:
    return {"$ref": "#/components/schemas/Error"}


def test_a_refusal_stands_under_its_status() -> None:
    statuses = {refusal.code: refusal.http_status for refusal in refusals()}
    for shown in examples():
        code = isinstance(shown.value, dict) and shown.value.get("code")
        if code in statuses and shown.where != "request":
            assert shown.where == str(statuses[code]), shown


def refusals(
    base: type[ActionRefused] = ActionRefused,
) -> Iterator[type[ActionRefused]]:
    yield base
    for refusal in base.__subclasses__():
        yield from refusals(refusal)


@pytest.mark.parametrize("operation", SHOWN_FIRST)
def test_what_a_script_writer_meets_first_has_examples(operation: str) -> None:
    found = {shown.where for shown in examples() if shown.operation == operation}

    assert found >= SHOWN_FIRST[operation]
