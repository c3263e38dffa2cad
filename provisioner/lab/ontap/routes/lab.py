"""The lab's own endpoints, outside ``/api``: faults, settings and the mount check."""

from __future__ import annotations

import ipaddress
from dataclasses import asdict, replace
from typing import Any

from provisioner.lab.ontap.config import Settings
from provisioner.lab.ontap.conventions.body import parse_json
from provisioner.lab.ontap.conventions.values import Kind, text
from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.faults import Fault
from provisioner.lab.ontap.http import Call, Reply, Route
from provisioner.lab.ontap.operations.export_rules import lets_in
from provisioner.lab.ontap.operations.junctions import ancestors_of
from provisioner.lab.ontap.operations.volumes import policy_of
from provisioner.lab.ontap.records import LIVE, Volume

MOST_SECONDS_AHEAD = 10 * 366 * 86_400


def get_faults(call: Call) -> Reply:
    """Show the active rules."""
    return Reply(call.array.faults.describe())


def put_faults(call: Call) -> Reply:
    """Replace the rules by ``{"seed": 0, "rules": […]}``."""
    document = parse_json(call.data)
    rules, seed = document.get("rules", []), document.get("seed", 0)
    if not isinstance(rules, list) or not isinstance(seed, int):
        raise OntapError("262197", target="rules", field="rules", value=rules)
    try:
        faults = [Fault.parse(rule) for rule in rules]
    except (ValueError, TypeError, AttributeError) as error:
        raise OntapError(
            "262197", target="rules", field="rules", value=str(error)
        ) from None
    call.array.faults.replace(faults, seed=seed)
    return Reply(call.array.faults.describe())


def delete_faults(call: Call) -> Reply:
    """Remove all faults."""
    call.array.faults.replace([], seed=0)
    return Reply(call.array.faults.describe())


def get_settings(call: Call) -> Reply:
    """Show the current settings."""
    return Reply(asdict(call.array.settings))


def change_settings(call: Call) -> Reply:
    """Change the named settings until the lab stops."""
    document = parse_json(call.data)
    known = asdict(Settings())
    changes: dict[str, Any] = {}
    for name, value in document.items():
        if name not in known:
            raise OntapError("262179", target=name, field=name)
        if not _fits(value, known[name]):
            raise OntapError("262197", target=name, field=name, value=value)
        if name == "clock_ahead_seconds" and not _can_be_ahead(value):
            raise OntapError("262197", target=name, field=name, value=value)
        if name == "aggregate_bytes" and not _are_sizes(value, call.array.aggregates()):
            raise OntapError("262197", target=name, field=name, value=value)
        changes[name] = value
    call.array.settings = replace(call.array.settings, **changes)
    if "clock_ahead_seconds" in changes:
        call.array.whole.clock.run_schedules()
    return Reply(asdict(call.array.settings))


def _can_be_ahead(seconds: Any) -> bool:
    return bool(abs(seconds) < MOST_SECONDS_AHEAD)  # not so for NaN


def _are_sizes(value: object, aggregates: tuple[str, ...]) -> bool:
    """Return whether it names some of these aggregates, each with a size in bytes."""
    assert isinstance(value, dict)
    are_numbers = all(type(size) is int and size >= 0 for size in value.values())
    return are_numbers and value.keys() <= set(aggregates)


def _fits(value: object, default: object) -> bool:
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(default, bool) and isinstance(value, bool)
    if isinstance(default, float):
        return isinstance(value, int | float)
    return isinstance(value, type(default))


def check_mount(call: Call) -> Reply:
    """Return whether a host may mount a junction: ``?client=ADDRESS&path=/junction``.

    Every volume on the way down, the SVM root included, must let the host in.
    """
    array = call.array
    client, path = call.parameter("client") or "", call.parameter("path") or "/"
    try:
        ipaddress.ip_address(client)
    except ValueError:
        raise OntapError(
            "262197", target="client", field="client", value=client
        ) from None
    svm = call.parameter("svm") or array.config.svm
    way = ancestors_of(array, path, svm=svm)
    if not way or way[-1].junction_path != path:
        return Reply({"allowed": False, "reason": f"nothing is mounted at {path}"})
    for volume in way:
        policy = policy_of(array, volume)
        if not lets_in(policy.rules, client):
            reason = f"export policy {policy.name} of {volume.name} lets nobody in"
            return Reply({"allowed": False, "reason": reason + f" from {client}"})
    return Reply({"allowed": True, "directory": str(array.place_of(way[-1]))})


def get_status(call: Call) -> Reply:
    """Return what the lab runs on."""
    array = call.array
    return Reply(
        {
            "copy_method": array.plane.method,
            "junction_method": array.namespace.method,
            "root": str(array.root),
            "volumes": array.store.count(Volume, phase=LIVE),
        }
    )


_MOUNT: dict[str, Kind] = {"client": text, "path": text, "svm": text}

ROUTES = (
    Route("GET", "/lab/faults", get_faults),
    Route("PUT", "/lab/faults", put_faults),
    Route("DELETE", "/lab/faults", delete_faults),
    Route("GET", "/lab/settings", get_settings),
    Route("PATCH", "/lab/settings", change_settings),
    Route("PUT", "/lab/settings", change_settings),
    Route("GET", "/lab/mounts", check_mount, query=_MOUNT),
    Route("GET", "/lab/status", get_status),
)
