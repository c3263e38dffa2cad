"""Documented behavior that clients by NetApp rely on, beyond the plain request."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.ontap_rest import Rest

VOLUMES = "/api/storage/volumes"
POLICIES = "/api/protocols/nfs/export-policies"
RULE = {"clients": [{"match": "10.0.0.0/8"}], "ro_rule": ["sys"], "rw_rule": ["sys"]}


def body(name: str, **fields: Any) -> dict[str, Any]:
    return {
        "name": name,
        "svm": {"name": "svm_dev"},
        "aggregates": [{"name": "aggr1"}],
        "guarantee": {"type": "none"},
        **fields,
    }


# --- requests


def test_unknown_fields_are_ignored_where_the_client_asks_for_it(rest: Rest) -> None:
    unknown = body("v", not_a_field=1)
    assert rest.code(rest("POST", VOLUMES, unknown)) == "262179"
    ignored = rest.done("POST", VOLUMES, unknown, ignore_unknown_fields="true")
    assert ignored["state"] == "success"
    found = rest.get(VOLUMES, not_a_field="x", name="v", ignore_unknown_fields="true")
    assert [row["name"] for row in found["records"]] == ["v"]
    assert rest.code(rest("GET", VOLUMES, fields="not_a_field")) == "262197"
    query = {"fields": "size,not_a_field", "ignore_unknown_fields": "true"}
    (row,) = rest.get(VOLUMES, name="v", **query)["records"]
    assert row["size"] > 0


@pytest.mark.parametrize(
    "aggregates",
    [
        {"aggregates.name": ["aggr1"]},
        {"aggregates.name": "aggr1"},
        {"aggregates": {"name": ["aggr1"]}},
        {"aggregates": {"name": "aggr1"}},
    ],
)
def test_fields_of_a_list_may_be_given_side_by_side(
    rest: Rest, aggregates: dict[str, Any]
) -> None:
    given = body("v")
    del given["aggregates"]
    assert rest.done("POST", VOLUMES, given | aggregates)["state"] == "success"


def test_export_clients_may_be_given_side_by_side(rest: Rest) -> None:
    policy = {"name": "side", "svm.name": "svm_dev"}
    path = rest("POST", POLICIES, policy).headers["Location"]
    try:
        rule = {**RULE, "clients.match": ["10.1.0.0/16", "10.2.0.0/16"]}
        del rule["clients"]
        assert rest("POST", f"{path}/rules", rule).status_code == 201
        clients = rest.get(f"{path}/rules/1")["clients"]
        assert [row["match"] for row in clients] == ["10.1.0.0/16", "10.2.0.0/16"]
    finally:
        rest("DELETE", path)


def test_words_of_an_enumeration_come_in_any_case(rest: Rest) -> None:
    shouted = body("v", nas={"security_style": "UNIX"}, type="RW")
    assert rest.done("POST", VOLUMES, shouted)["state"] == "success"
    (volume,) = rest.get(VOLUMES, name="v", fields="nas.security_style,type")["records"]
    assert (volume["nas"]["security_style"], volume["type"]) == ("unix", "rw")


def test_slashes_that_are_doubled_mean_one(rest: Rest) -> None:
    assert rest("GET", "//api/cluster").status_code == 200
    assert rest("GET", "/api//storage/volumes").status_code == 200


def test_a_resource_may_be_filtered_by_its_own_name(rest: Rest) -> None:
    rest.volume("v")
    rest.volume("w")
    named = rest.get(VOLUMES, **{"volume.name": "v"})["records"]
    assert [row["name"] for row in named] == ["v"]
    svms = rest.get("/api/svm/svms", **{"svm.name": "svm_dev"})["records"]
    assert [row["name"] for row in svms] == ["svm_dev"]
    assert rest.get("/api/svm/svms", **{"svm.name": "other"})["records"] == []


def test_options_names_the_methods_of_a_path(rest: Rest) -> None:
    response = rest("OPTIONS", VOLUMES)
    assert response.status_code == 200
    assert response.headers["Allow"] == "DELETE, GET, HEAD, OPTIONS, PATCH, POST"
    assert rest("OPTIONS", "/api/nowhere").status_code == 404


# --- export rules


def test_an_equal_rule_is_refused(rest: Rest) -> None:
    policy = {"name": "twice", "svm.name": "svm_dev", "rules": [RULE]}
    path = rest("POST", POLICIES, policy).headers["Location"]
    try:
        response = rest("POST", f"{path}/rules", RULE)
        assert (response.status_code, rest.code(response)) == (409, "1704070")
        other = {**RULE, "rw_rule": ["never"]}
        assert rest("POST", f"{path}/rules", other).status_code == 201
        response = rest("PATCH", f"{path}/rules/2", {"rw_rule": ["sys"]})
        assert rest.code(response) == "1704070"
    finally:
        rest("DELETE", path)


def test_a_policy_with_equal_rules_is_not_made(rest: Rest) -> None:
    policy = {"name": "equal", "svm.name": "svm_dev", "rules": [RULE, RULE]}
    response = rest("POST", POLICIES, policy)
    assert (response.status_code, rest.code(response)) == (409, "1704071")
    assert rest.get(POLICIES, name="equal")["records"] == []


def test_a_rule_says_whether_it_wants_tls(rest: Rest) -> None:
    policy = {"name": "tls", "svm.name": "svm_dev", "rules": [RULE]}
    path = rest("POST", POLICIES, policy).headers["Location"]
    try:
        assert rest.get(f"{path}/rules/1")["allow_nfs_tls_only"] is False
        rest("PATCH", f"{path}/rules/1", {"allow_nfs_tls_only": True})
        assert rest.get(f"{path}/rules/1")["allow_nfs_tls_only"] is True
    finally:
        rest("DELETE", path)


# --- volumes


def test_efficiency_is_set_when_a_volume_is_created(rest: Rest) -> None:
    uuid = rest.volume("v", efficiency={"dedupe": "background"})
    efficiency = rest.get(f"{VOLUMES}/{uuid}", fields="efficiency")["efficiency"]
    assert (efficiency["dedupe"], efficiency["state"]) == ("background", "enabled")


@pytest.mark.parametrize("method", ["POST", "PATCH"])
@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"tiering": {"policy": "sometimes"}}, "262197"),
        ({"tiering": {"policy": "auto"}}, "918183"),
        ({"qos": {"policy": {"name": "gold"}}}, "2"),
        ({"qos": {"policy": {"uuid": "ab"}}}, "2"),
        ({"efficiency": {"policy": {"name": "gold"}}}, "2"),
    ],
)
def test_policies_that_do_not_exist_are_refused(
    rest: Rest, method: str, fields: dict[str, Any], code: str
) -> None:
    if method == "POST":
        response = rest("POST", VOLUMES, body("v", **fields))
    else:
        response = rest("PATCH", f"{VOLUMES}/{rest.volume('v')}", fields)
    assert (response.status_code, rest.code(response)) == (400, code)


def test_qos_policies_are_read_and_given_by_name_or_uuid(rest: Rest) -> None:
    policies = "/api/storage/qos/policies"
    found = {row["name"]: row for row in rest.get(policies, fields="*")["records"]}
    assert found["extreme"]["adaptive"]["expected_iops"] == 6144
    assert found["value-fixed"]["fixed"]["max_throughput_iops"] == 15_000
    uuids = {name: row["uuid"] for name, row in found.items()}
    uuid = rest.volume("v", qos={"policy": {"uuid": uuids["value"]}})
    path = f"{VOLUMES}/{uuid}"

    def policy() -> object:
        return rest.get(path, fields="qos.policy").get("qos", {}).get("policy")

    assert policy() == {"name": "value", "uuid": uuids["value"]}
    assert rest.get(f"{policies}/{uuids['value']}")["object_count"] == 1
    mismatch = {"name": "extreme", "uuid": uuids["value"]}
    assert rest.code(rest("PATCH", path, {"qos": {"policy": mismatch}})) == "2"
    rest.done("PATCH", path, {"qos": {"policy": {"name": "extreme"}}})
    assert policy() == {"name": "extreme", "uuid": uuids["extreme"]}
    rest.done("PATCH", path, {"qos": {"policy": {"name": "none"}}})
    assert policy() is None
    assert rest.code(rest("POST", policies, {"name": "gold"})) == "2621707"


@pytest.mark.parametrize(
    ("path", "query"),
    [
        (VOLUMES, {"state": "ONLINE", "name": "v"}),
        (VOLUMES, {"guarantee.type": "!Volume", "nas.security_style": "UNIX|NTFS"}),
        (VOLUMES, {"type": "R*", "name": "v"}),
        ("/api/storage/snapshot-policies", {"copies.schedule.name": "daily"}),
        ("/api/snapmirror/policies", {"type": "Async", "retention.label": "weekly"}),
    ],
)
def test_words_in_any_case_and_nested_lists_select(
    rest: Rest, path: str, query: dict[str, str]
) -> None:
    rest.volume("v")

    assert rest.get(path, **query)["num_records"] > 0
    opposite = {name: f"!{value}" for name, value in query.items() if "!" not in value}
    assert rest.get(path, **query | opposite)["num_records"] == 0 or path != VOLUMES


def test_names_are_compared_as_they_are_written(rest: Rest) -> None:
    rest.volume("v")
    assert rest.get(VOLUMES, name="V")["num_records"] == 0


def test_flavors_of_export_rules_are_words_in_any_case(rest: Rest) -> None:
    rule = {**RULE, "ro_rule": ["SYS"], "rw_rule": ["Krb5"], "superuser": ["NONE"]}
    policy = {"name": "shouted", "svm.name": "svm_dev", "rules": [rule]}
    path = rest("POST", POLICIES, policy).headers["Location"]
    try:
        said = rest.get(f"{path}/rules/1")
        assert (said["ro_rule"], said["rw_rule"]) == (["sys"], ["krb5"])
        assert rest.get(f"{path}/rules", ro_rule="Sys")["num_records"] == 1
        response = rest("PATCH", f"{path}/rules/1", {"ro_rule": ["loud"]})
        assert rest.code(response) == "262197"
    finally:
        rest("DELETE", path)


def test_an_order_by_what_is_unknown_is_passed_over_where_asked(rest: Rest) -> None:
    for name in ("b", "a"):
        rest.volume(name)
    query = {"order_by": "speed desc,name", "name": "a|b"}
    assert rest.code(rest("GET", VOLUMES, **query)) == "262197"

    found = rest.get(VOLUMES, ignore_unknown_fields="true", **query)["records"]
    assert [row["name"] for row in found] == ["a", "b"]


def test_settings_that_every_volume_has(rest: Rest) -> None:
    uuid = rest.volume("v")
    volume = rest.get(f"{VOLUMES}/{uuid}", fields="**")
    assert volume["access_time_enabled"] is True
    assert volume["space"]["metadata"] >= 0
    assert volume["space"]["snapshot"]["autodelete"]["enabled"] is False
    rest.done("PATCH", f"{VOLUMES}/{uuid}", {"access_time_enabled": False})
    changed = rest.get(f"{VOLUMES}/{uuid}", fields="access_time_enabled")
    assert changed["access_time_enabled"] is False


def test_autodelete_of_snapshots_is_kept(rest: Rest) -> None:
    uuid = rest.volume("v")
    wanted = {"enabled": True, "commitment": "try", "trigger": "volume"}
    rest.done(
        "PATCH",
        f"{VOLUMES}/{uuid}",
        {"space": {"snapshot": {"autodelete": wanted}}},
    )
    volume = rest.get(f"{VOLUMES}/{uuid}", fields="space.snapshot")
    snapshot = volume["space"]["snapshot"]
    assert snapshot["autodelete"]["enabled"] is True
    assert snapshot["autodelete_enabled"] is True
    (row,) = rest.get(
        "/api/private/cli/volume/snapshot/autodelete",
        fields="enabled",
        volume="v",
    )["records"]
    assert row["enabled"] is True


# --- what monitoring reads


def test_an_aggregate_says_what_it_is_made_of(rest: Rest) -> None:
    (row, _) = rest.get("/api/storage/aggregates", fields="block_storage,space")[
        "records"
    ]
    assert row["block_storage"]["primary"]["disk_type"] == "ssd"
    assert row["space"]["footprint"] >= 0


def test_a_node_says_how_long_it_is_up_and_how_it_is(rest: Rest) -> None:
    (node,) = rest.get("/api/cluster/nodes", fields="uptime,state")["records"]
    assert node["uptime"] >= 0
    (row,) = rest.get("/api/private/cli/node", fields="health,uptime")["records"]
    assert row["health"] is True


def test_a_license_has_a_serial_number(rest: Rest) -> None:
    licenses = rest.get("/api/cluster/licensing/licenses", fields="licenses")
    for row in licenses["records"]:
        assert row["licenses"][0]["serial_number"]


def test_relationships_are_deleted_by_query(rest: Rest) -> None:
    response = rest("DELETE", "/api/snapmirror/relationships")
    assert rest.code(response) == "262204"
    gone = rest(
        "DELETE",
        "/api/snapmirror/relationships",
        **{"destination.path": "svm_dev:nowhere"},
    )
    assert (gone.status_code, gone.json()["num_records"]) == (200, 0)
    unknown = rest("DELETE", "/api/snapmirror/relationships", bogus="1")
    assert rest.code(unknown) == "262179"
    # A parameter of the verb selects nothing.
    scope = rest("DELETE", "/api/snapmirror/relationships", destination_only="true")
    assert rest.code(scope) == "262204"


@pytest.mark.parametrize(
    ("path", "query", "expected"),
    [
        (
            "volume",
            {"fields": "aggr_list,size,used,clone_volume,junction_path"},
            {"vserver": "svm_dev", "volume": "c", "clone_volume": True},
        ),
        ("volume/footprint", {"fields": "total_footprint"}, {"volume": "c"}),
        ("volume/efficiency", {"fields": "state,policy"}, {"volume": "c"}),
        ("snapshot", {"fields": "owners,create_time"}, {"snapshot": "s"}),
        ("volume/snapshot", {"fields": "owners"}, {"snapshot": "s"}),
        ("vserver", {"fields": "operational_state,type"}, {"vserver": "svm_dev"}),
        ("network/interface", {"fields": "address,data_protocol"}, {"lif": "nfs_lif1"}),
        ("aggr", {"fields": "node,root,state"}, {"aggregate": "aggr1"}),
    ],
)
def test_the_command_line_is_read_as_a_poller_does(
    rest: Rest, path: str, query: dict[str, str], expected: dict[str, Any]
) -> None:
    template = rest.volume("t")
    rest.snapshot(template, "s")
    rest.clone("c", "t", clone={"parent_snapshot": {"name": "s"}})
    records = rest.get(f"/api/private/cli/{path}", **query)["records"]
    matching = [row for row in records if expected.items() <= row.items()]
    assert matching, records
    for name in query["fields"].split(","):
        if name not in ("junction_path", "owners"):  # unset: left out
            assert name in matching[0], matching[0]


def test_the_command_line_filters_and_pages(rest: Rest) -> None:
    for name in ("a", "b"):
        rest.volume(name)
    found = rest.get("/api/private/cli/volume", fields="size", volume="a")
    assert [row["volume"] for row in found["records"]] == ["a"]
    page = rest.get("/api/private/cli/volume", fields="size", max_records=1)
    assert (page["num_records"], "next" in page["_links"]) == (1, True)
