"""The private CLI passthrough, as far as the clients we know call it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.lab.ontap.conventions.collection import Resource, collection
from provisioner.lab.ontap.conventions.fields import FieldSet, Flat
from provisioner.lab.ontap.conventions.values import Kind, integer, text
from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.http import Call, Reply, Route, answer_job
from provisioner.lab.ontap.jobs import now_text
from provisioner.lab.ontap.operations import snapmirror, volumes
from provisioner.lab.ontap.records import LIVE, QUEUED, Relationship, Svm, Volume

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

_VOLUME_CHANGE: dict[str, Kind] = {"vserver_dr_protection": text, "comment": text}
_SNAPMIRROR_CHANGE: dict[str, Kind] = {
    "policy": text,
    "schedule": text,
    "throttle": integer,
}
_CLI_SECONDS = 30
_PURGE: dict[str, Kind] = {"vserver": text, "volume": text}


def _queue_view(array: Array, volume: Volume) -> Flat:
    return {
        "vserver": array.store.get(Svm, volume.svm_uuid).name,
        "volume": volume.name,
        "deletion_request_time": now_text(),
        "deletion_time_remaining": lambda: _remaining(array, volume),
    }


def _remaining(array: Array, volume: Volume) -> str:
    from time import time

    left = (volume.deleted_at or 0) + array.settings.recovery_queue_seconds - time()
    return f"PT{max(0, int(left))}S"


QUEUE: Resource[Volume] = Resource(
    FieldSet(
        keys=("vserver", "volume"),
        standard=("deletion_request_time", "deletion_time_remaining"),
    ),
    view=_queue_view,
    href=lambda array, volume: "/api/private/cli/volume/recovery-queue",
    order=("volume",),
)


def list_queue(call: Call) -> Reply:
    """List the recovery queue."""
    return collection(call, QUEUE, call.array.store.select(Volume, phase=QUEUED))


def purge_queue(call: Call) -> Reply:
    """Remove a volume from the recovery queue for good."""
    fields = call.body(_PURGE)
    for volume in call.array.store.select(
        Volume, phase=QUEUED, name=fields.get("volume")
    ):
        svm = call.array.store.get(Svm, volume.svm_uuid)
        if fields.get("vserver") in (None, svm.name):
            return answer_job(call, volumes.purge(call.array, volume))
    raise OntapError("4", target="volume")


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
    Route("PATCH", "/api/private/cli/snapmirror", change_snapmirror),
    Route("GET", "/api/private/cli/volume/recovery-queue", list_queue),
    Route("POST", "/api/private/cli/volume/recovery-queue/purge", purge_queue),
    Route("PATCH", "/api/private/cli/volume", change_volume),
)
