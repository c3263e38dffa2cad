"""Volumes and FlexClones: ``/api/storage/volumes``."""

from __future__ import annotations

from typing import Any

from provisioner.lab.ontap.conventions.collection import (
    collection,
    instance,
    require_selection,
    select,
)
from provisioner.lab.ontap.conventions.fields import Wanted
from provisioner.lab.ontap.conventions.query import is_plain
from provisioner.lab.ontap.conventions.values import (
    Kind,
    anything,
    boolean,
    choice,
    identity,
    integer,
    list_of,
    octal_digits,
    record,
    size,
    text,
)
from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.http import (
    Call,
    Reply,
    Route,
    answer_job,
    answer_jobs,
    job_link,
)
from provisioner.lab.ontap.operations import moves, volume_changes, volumes
from provisioner.lab.ontap.records import LIVE, Svm, Volume
from provisioner.lab.ontap.routes.volume_view import VOLUMES

_SETTABLE: dict[str, Kind] = {
    "name": text,
    "comment": lambda value: _comment(value),
    "size": size,
    "space.size": size,
    "state": lambda value: text(value).lower(),
    "guarantee.type": choice("volume", "none"),
    "snapshot_policy.name": text,
    "snapshot_policy.uuid": text,
    "space.snapshot.reserve_percent": integer,
    "space.fractional_reserve": integer,
    "nas.path": text,
    "nas.uid": identity,
    "nas.gid": identity,
    "nas.unix_permissions": octal_digits,
    "nas.security_style": choice("unix", "ntfs", "mixed", "unified"),
    "nas.export_policy.name": text,
    "nas.export_policy.id": integer,
    "access_time_enabled": boolean,
    "snapshot_directory_access_enabled": boolean,
    "qos.*": anything,
    "qos": anything,
    "tiering.policy": choice("all", "auto", "backup", "none", "snapshot_only"),
    "tiering.*": anything,
    "analytics.*": anything,
    "autosize.mode": choice("off", "grow", "grow_shrink"),
    "autosize.grow_threshold": integer,
    "autosize.shrink_threshold": integer,
    "autosize.maximum": size,
    "autosize.minimum": size,
    "encryption.*": anything,
    "snaplock.*": anything,
    "files.maximum": integer,
    "quota.enabled": boolean,
    "language": text,
    "_tags": anything,
}

_SAVING = choice("none", "background", "inline", "both")
_SAVINGS: dict[str, Kind] = {
    "efficiency.dedupe": _SAVING,
    "efficiency.compression": _SAVING,
    "efficiency.cross_volume_dedupe": _SAVING,
    "efficiency.compaction": choice("none", "inline"),
    "efficiency.policy.name": text,
    "efficiency.state": text,
}

_CREATE: dict[str, Kind] = {
    **_SETTABLE,
    **_SAVINGS,
    "svm.name": text,
    "svm.uuid": text,
    "svm": text,
    "aggregates": list_of(record({"name": text, "uuid": text})),
    "type": choice("rw", "dp", "ls"),
    "style": choice("flexvol"),
    "clone.is_flexclone": boolean,
    "clone.parent_volume.name": text,
    "clone.parent_volume.uuid": text,
    "clone.parent_snapshot.name": text,
    "clone.parent_snapshot.uuid": text,
    "clone.parent_svm.name": text,
    "clone.parent_svm.uuid": text,
}

_AUTODELETE = "space.snapshot.autodelete"
_CHANGE: dict[str, Kind] = {
    **_SETTABLE,
    **_SAVINGS,
    f"{_AUTODELETE}_enabled": boolean,
    f"{_AUTODELETE}.enabled": boolean,
    f"{_AUTODELETE}.trigger": choice("volume", "snap_reserve"),
    f"{_AUTODELETE}.commitment": choice("try", "disrupt", "destroy"),
    f"{_AUTODELETE}.delete_order": choice("newest_first", "oldest_first"),
    f"{_AUTODELETE}.defer_delete": choice(
        "scheduled", "user_created", "prefix", "none"
    ),
    f"{_AUTODELETE}.prefix": text,
    f"{_AUTODELETE}.target_free_space": integer,
    "efficiency.scanner.state": choice("active", "idle"),
    "efficiency.scanner.scan_old_data": boolean,
    "efficiency.scanner.*": anything,
    "clone.split_initiated": boolean,
    "movement.destination_aggregate.name": text,
    "movement.destination_aggregate.uuid": text,
    "movement.state": choice(*moves.STATES),
    "movement.cutover_window": integer,
    "movement.tiering_policy": text,
    "restore_to.snapshot.name": text,
    "restore_to.snapshot.uuid": text,
}

_CHANGE_READ_ONLY = (
    "uuid",
    "svm",
    "aggregates",
    "type",
    "style",
    "clone",
    "create_time",
)
_CREATE_READ_ONLY = ("uuid", "create_time", "clone.split_initiated", "restore_to")

_CHANGE_QUERY: dict[str, Kind] = {
    "restore_to.snapshot.name": text,
    "restore_to.snapshot.uuid": text,
    "sizing_method": text,
    "validate_only": boolean,
}
_DELETE_QUERY: dict[str, Kind] = {"force": boolean}

_RESTORE = ("restore_to.snapshot.name", "restore_to.snapshot.uuid")


def _comment(value: object) -> str:
    comment = text(value)
    if len(comment) > 1023:
        raise ValueError("too long")
    return comment


def list_volumes(call: Call) -> Reply:
    """List the volumes that are complete and not deleted."""
    return collection(call, VOLUMES, _candidates(call))


def _candidates(call: Call) -> list[Volume]:
    """Return the rows that match plain filters, to make look-ups cheap."""
    store = call.array.store
    equals: dict[str, str] = {}
    name, svm = call.filters.get("name", ""), call.filters.get("svm.name", "")
    if name and is_plain(name):
        equals["name"] = name
    if svm and is_plain(svm):
        found = store.select(Svm, name=svm)
        if not found:
            return []
        equals["svm_uuid"] = found[0].uuid
    parent = call.filters.get("clone.parent_volume.uuid", "")
    if parent and is_plain(parent):
        equals["parent_uuid"] = parent
    return store.select(Volume, phase=LIVE, **equals)


def get_volume(call: Call, uuid: str) -> Reply:
    """Return one volume."""
    return instance(call, VOLUMES, find_volume(call, uuid))


def find_volume(call: Call, uuid: str) -> Volume:
    """Return the visible volume with the uuid. Raises: OntapError 4."""
    volume = call.array.store.find(Volume, uuid)
    if volume is None or volume.phase != LIVE:
        raise OntapError("4", target="uuid")
    return volume


def create_volume(call: Call) -> Reply:
    """Create a volume or a FlexClone."""
    call.refuse_query(allowed=("sizing_method",))
    fields = call.body(_CREATE, read_only=_CREATE_READ_ONLY)
    if "svm" in fields:
        fields["svm.name"] = fields.pop("svm")
    try:
        volume, job = volumes.create(call.array, fields)
    except OntapError as error:
        return refuse(call, error, description="POST /api/storage/volumes")
    location = f"/api/storage/volumes/?name={volume.name}"
    if call.array.settings.location == "uuid":
        location = f"/api/storage/volumes/{volume.uuid}"

    def created() -> dict[str, object] | None:
        row = call.array.store.find(Volume, volume.uuid)
        if row is None:
            return None
        return VOLUMES.record(call, row, wanted=Wanted(VOLUMES.fields, ()))

    return answer_job(call, job, created=created, location=location)


# Refusals that ONTAP may also give in the job, after it answered 202.
_LATE_CODES = {"1", "917526", "13107405", "524601", "1638400", "525059", "917536"}
_LATE_CODES |= {"918252", "917775", "9437885", "525062", "524479"}


def refuse(call: Call, error: OntapError, *, description: str) -> Reply:
    """Refuse in the answer, or in a job if the settings say so."""
    array = call.array
    if array.settings.refusals != "job" or error.code not in _LATE_CODES:
        raise error
    job = array.jobs.create_failed(
        error, description=description, svm_uuid=array.store.svm_uuid
    )
    return Reply(dict(job_link(job)), status=202)


def change_volume(call: Call, uuid: str) -> Reply:
    """Change one volume."""
    volume = find_volume(call, uuid)
    call.refuse_query(allowed=(*_RESTORE, "sizing_method", "validate_only"))
    fields = _change_fields(call)
    if call.flag("validate_only", default=False):
        volume_changes.check(call.array, volume, fields)
        return Reply()
    try:
        job = volume_changes.request(call.array, volume, fields)
    except OntapError as error:
        return refuse(call, error, description=f"PATCH /api/storage/volumes/{uuid}")
    return answer_job(call, job)


def _change_fields(call: Call) -> dict[str, Any]:
    fields = call.body(_CHANGE, read_only=_CHANGE_READ_ONLY, from_query=_RESTORE)
    if "space.size" in fields:
        fields.setdefault("size", fields.pop("space.size"))
    return fields


def delete_volume(call: Call, uuid: str) -> Reply:
    """Delete one volume; it may be online and mounted."""
    volume = find_volume(call, uuid)
    call.refuse_query(allowed=("force",))
    force = call.flag("force", default=False)
    return answer_job(call, volumes.delete(call.array, volume, force=force))


def change_volumes(call: Call) -> Reply:
    """Change every volume that matches the query."""
    fields = _change_fields(call)
    rows = _selected(call)
    jobs = [volume_changes.request(call.array, row, fields) for row in rows]
    return answer_jobs(call, jobs)


def delete_volumes(call: Call) -> Reply:
    """Delete every volume that matches the query."""
    force = call.flag("force", default=False)
    rows = _selected(call)
    return answer_jobs(
        call, [volumes.delete(call.array, row, force=force) for row in rows]
    )


def _selected(call: Call) -> list[Volume]:
    require_selection(call, VOLUMES.fields, besides=("force", "sizing_method"))
    return [row for row, _ in select(call, VOLUMES, _candidates(call))]


ROUTES = (
    Route(
        "GET",
        "/api/storage/volumes",
        list_volumes,
        fields=VOLUMES.fields,
        own_name="volume",
    ),
    Route("POST", "/api/storage/volumes", create_volume, body=_CREATE),
    Route(
        "PATCH",
        "/api/storage/volumes",
        change_volumes,
        fields=VOLUMES.fields,
        own_name="volume",
        body=_CHANGE,
    ),
    Route(
        "DELETE",
        "/api/storage/volumes",
        delete_volumes,
        fields=VOLUMES.fields,
        own_name="volume",
        query=_DELETE_QUERY,
    ),
    Route("GET", "/api/storage/volumes/<uuid>", get_volume, fields=VOLUMES.fields),
    Route(
        "PATCH",
        "/api/storage/volumes/<uuid>",
        change_volume,
        body=_CHANGE,
        query=_CHANGE_QUERY,
    ),
    Route("DELETE", "/api/storage/volumes/<uuid>", delete_volume, query=_DELETE_QUERY),
)
