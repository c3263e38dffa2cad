"""The recovery queue: deleted volumes that can be recovered.

A queued volume is called ``name_dsid``, is of type DEL and in no list of volumes.

Source: ``volume recovery-queue show modify recover purge`` of the ONTAP command
reference, called through ``/api/private/cli/volume/recovery-queue`` (a purge answers
202).
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from provisioner.lab.ontap.conventions.collection import Resource, collection
from provisioner.lab.ontap.conventions.fields import FieldSet, Flat
from provisioner.lab.ontap.conventions.values import Kind, integer, text
from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.http import Call, Reply, Route, answer_job
from provisioner.lab.ontap.operations import recovery
from provisioner.lab.ontap.records import QUEUED, Svm, Volume

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

_BASE = "/api/private/cli/volume/recovery-queue"
_NAMED: dict[str, Kind] = {"vserver": text, "volume": text}
_HOUR = 3600
_HOURS_LIMIT = 4294967295


def _view(array: Array, volume: Volume) -> Flat:
    asked_at = datetime.fromtimestamp(volume.deleted_at or 0, UTC)
    seconds = recovery.retention_seconds(array, volume)
    return {
        "vserver": array.store.get(Svm, volume.svm_uuid).name,
        "volume": volume.name,
        "deletion_request_time": asked_at.isoformat(timespec="seconds"),
        "retention_hours": int(-(-seconds // _HOUR)),
    }


QUEUE: Resource[Volume] = Resource(
    FieldSet(
        keys=("vserver", "volume"),
        standard=("deletion_request_time", "retention_hours"),
    ),
    view=_view,
    href=lambda array, volume: _BASE,
    order=("vserver", "volume"),
)


def list_queue(call: Call) -> Reply:
    """List the recovery queue."""
    return collection(call, QUEUE, call.array.store.select(Volume, phase=QUEUED))


def _find(call: Call, *, vserver: str | None, volume: str | None) -> Volume:
    for name, value in (("vserver", vserver), ("volume", volume)):
        if not value:
            raise OntapError("262194", target=name, field=name)
    store = call.array.store
    for row in store.select(Volume, phase=QUEUED, name=volume):
        if store.get(Svm, row.svm_uuid).name == vserver:
            return row
    raise OntapError("4", target="volume")


def change_queue(call: Call) -> Reply:
    """Change how long a queued volume is kept."""
    fields = call.body(_KEEP)
    call.refuse_query(allowed=("vserver", "volume", "privilege_level"))
    volume = _find(
        call, vserver=call.parameter("vserver"), volume=call.parameter("volume")
    )
    if "retention_hours" in fields:
        recovery.keep(call.array, volume, seconds=fields["retention_hours"] * _HOUR)
    return Reply({"num_records": 1})


def _hours(value: object) -> int:
    hours = integer(value)
    if not 0 <= hours <= _HOURS_LIMIT:
        raise ValueError(value)
    return hours


_KEEP: dict[str, Kind] = {"retention_hours": _hours}


def recover(call: Call) -> Reply:
    """Recover a queued volume: offline, unmounted, under its name in the queue."""
    fields = call.body(_NAMED)
    volume = _find(call, vserver=fields.get("vserver"), volume=fields.get("volume"))
    return answer_job(call, recovery.recover(call.array, volume))


def purge(call: Call) -> Reply:
    """Purge a volume from the recovery queue."""
    fields = call.body(_NAMED)
    volume = _find(call, vserver=fields.get("vserver"), volume=fields.get("volume"))
    return answer_job(call, recovery.purge(call.array, volume))


ROUTES = (
    Route("GET", _BASE, list_queue, fields=QUEUE.fields),
    Route("PATCH", _BASE, change_queue, body=_KEEP, query=_NAMED),
    Route("POST", f"{_BASE}/recover", recover, body=_NAMED),
    Route("POST", f"{_BASE}/purge", purge, body=_NAMED),
)
