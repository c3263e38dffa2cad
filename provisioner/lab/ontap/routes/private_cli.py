"""The private CLI passthrough, as far as known clients call it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.lab.ontap.conventions.values import Kind, integer, text
from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.http import Call, Reply, Route
from provisioner.lab.ontap.operations import snapmirror
from provisioner.lab.ontap.records import LIVE, Relationship, Svm, Volume

if TYPE_CHECKING:
    pass

_VOLUME_CHANGE: dict[str, Kind] = {"vserver_dr_protection": text, "comment": text}
_SNAPMIRROR_CHANGE: dict[str, Kind] = {
    "policy": text,
    "schedule": text,
    "throttle": integer,
}
_NAMED: dict[str, Kind] = {"vserver": text, "volume": text}
_CLI_SECONDS = 30


def change_volume(call: Call) -> Reply:
    """Accept ``volume modify`` of settings that the lab does not simulate."""
    call.body(_VOLUME_CHANGE)
    store = call.array.store
    matches = [
        row
        for row in store.select(Volume, phase=LIVE, name=call.parameter("volume"))
        if store.get(Svm, row.svm_uuid).name == call.parameter("vserver")
    ]
    if not matches:
        raise OntapError("4", target="volume")
    return Reply({"num_records": len(matches)})


def change_snapmirror(call: Call) -> Reply:
    """Accept ``snapmirror modify`` of policy, schedule and throttle."""
    fields = call.body(_SNAPMIRROR_CHANGE)
    path = call.parameter("destination_path")
    rows = call.array.store.select(Relationship, destination_path=path)
    if path is None or not rows:
        raise OntapError("4", target="destination_path")
    names = {"policy": "policy.name", "schedule": "transfer_schedule.name"}
    changes = {names.get(name, name): value for name, value in fields.items()}
    job = snapmirror.request_change(call.array, rows[0], changes)
    call.array.jobs.start(job)
    ended = call.array.jobs.wait(job, timeout_seconds=_CLI_SECONDS)
    if ended.state == "failure":
        return Reply({"error": dict(ended.error or {})}, status=400)
    return Reply({"num_records": 1})


ROUTES = (
    Route(
        "PATCH",
        "/api/private/cli/snapmirror",
        change_snapmirror,
        body=_SNAPMIRROR_CHANGE,
        query={"destination_path": text},
    ),
    Route(
        "PATCH",
        "/api/private/cli/volume",
        change_volume,
        body=_VOLUME_CHANGE,
        query=_NAMED,
    ),
)
