"""SnapMirror relationships and transfers: ``/api/snapmirror/relationships``."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from provisioner.lab.ontap.conventions.collection import (
    Resource,
    collection,
    instance,
    require_selection,
    select,
)
from provisioner.lab.ontap.conventions.fields import FieldSet, Flat, Wanted
from provisioner.lab.ontap.conventions.values import (
    Kind,
    anything,
    boolean,
    choice,
    integer,
    text,
)
from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.http import Call, Reply, Route, answer_job, answer_jobs
from provisioner.lab.ontap.operations import snapmirror, transfers
from provisioner.lab.ontap.peering import cluster_named
from provisioner.lab.ontap.records import (
    Destination,
    Relationship,
    SnapmirrorPolicy,
    Svm,
    Transfer,
    Volume,
)

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

_BASE = "/api/snapmirror/relationships"


def _end(array: Array, cluster: str, *, svm: str, volume: str, path: str) -> Flat:
    """Return one endpoint, as seen from this cluster."""
    home = cluster_named(array, cluster)
    svm_row, row = home.store.find(Svm, svm), home.store.find(Volume, volume)
    view: dict[str, object] = {"path": path}
    if svm_row is not None:
        view["svm"] = {"name": svm_row.name, "uuid": svm_row.uuid}
        if row is not None:
            view["path"] = f"{svm_row.name}:{row.name}"
    if home is not array.whole:
        view["cluster"] = {"name": cluster, "uuid": home.identity("cluster")}
    return view


def _duration(seconds: float) -> str:
    hours, rest = divmod(max(0, int(seconds)), 3600)
    minutes, left = divmod(rest, 60)
    parts = [(hours, "H"), (minutes, "M"), (left, "S")]
    return "PT" + ("".join(f"{n}{unit}" for n, unit in parts if n) or "0S")


def _view(array: Array, row: Relationship) -> Flat:
    with array.store.transaction():  # a transfer ends in one, too
        row = array.store.find(Relationship, row.uuid) or row
        transfer = array.store.find(Transfer, row.transfer_uuid)
    policy = array.store.get(SnapmirrorPolicy, row.policy_uuid)
    reasons = None
    if row.unhealthy_reason:
        reasons = [{"code": "13303844", "message": row.unhealthy_reason}]
    return {
        "uuid": row.uuid,
        "source": _end(
            array,
            row.source_cluster,
            svm=row.source_svm_uuid,
            volume=row.source_uuid,
            path=row.source_path,
        ),
        "destination": _end(
            array,
            array.config.cluster,
            svm=row.destination_svm_uuid,
            volume=row.destination_uuid,
            path=row.destination_path,
        ),
        "policy.name": policy.name,
        "policy.type": policy.type,
        "policy.uuid": policy.uuid,
        "transfer_schedule": row.transfer_schedule
        and {
            "name": row.transfer_schedule,
            "uuid": array.identity(f"schedule.{row.transfer_schedule}"),
        },
        "throttle": row.throttle,
        "state": row.state,
        "healthy": row.healthy,
        "unhealthy_reason": reasons,
        "exported_snapshot": row.exported_snapshot,
        "lag_time": row.exported_time and _lag(row.exported_time),
        "last_transfer_type": row.last_transfer_type,
        "total_transfer_bytes": row.total_transfer_bytes,
        "transfer": _latest(transfer),
    }


def _lag(exported_time: str) -> str:
    then = datetime.fromisoformat(exported_time)
    return _duration((datetime.now(UTC) - then).total_seconds())


def _latest(transfer: Transfer | None) -> object:
    if transfer is None:
        return None
    view: dict[str, object] = {
        "state": transfer.state,
        "bytes_transferred": transfer.bytes_transferred,
        "type": transfer.type,
    }
    if transfer.state in transfers.RUNNING:
        return {**view, "uuid": transfer.uuid}
    return {
        **view,
        "end_time": transfer.end_time,
        "total_duration": _duration(transfer.seconds),
    }


_KEYS = ("uuid", "source", "destination", "policy.name", "policy.type")
_TREES = (
    "backoff_level",
    "consistency_group_failover",
    "create_destination",
    "fabric_link",
    "group_type",
    "identity_preservation",
    "io_serving_copy",
    "last_transfer_network_compression_ratio",
    "master_bias_activated_site",
    "policy",
    "preferred_site",
    "preserve",
    "quick_resync",
    "recover_after_break",
    "restore",
    "restore_to_snapshot",
    "svmdr_volumes",
    "total_transfer_duration",
    "transfer_schedule",
)

RELATIONSHIPS: Resource[Relationship] = Resource(
    FieldSet(
        keys=_KEYS,
        standard=(
            "policy.uuid",
            "transfer_schedule",
            "throttle",
            "state",
            "healthy",
            "unhealthy_reason",
            "exported_snapshot",
            "lag_time",
            "last_transfer_type",
            "total_transfer_bytes",
            "transfer",
        ),
        trees=_TREES,
    ),
    view=_view,
    href=lambda array, row: f"{_BASE}/{row.uuid}",
)


def _source_view(array: Array, row: Destination) -> Flat:
    return {
        "uuid": row.uuid,
        "source": _end(
            array,
            array.config.cluster,
            svm=row.source_svm_uuid,
            volume=row.source_uuid,
            path=row.source_path,
        ),
        "destination": _end(
            array,
            row.destination_cluster,
            svm=row.destination_svm_uuid,
            volume="",
            path=row.destination_path,
        ),
        "policy.name": row.policy_name,
        "policy.type": row.policy_type,
    }


DESTINATIONS: Resource[Destination] = Resource(
    FieldSet(keys=_KEYS, trees=(*_TREES, *RELATIONSHIPS.fields.standard)),
    view=_source_view,
    href=lambda array, row: f"{_BASE}/{row.uuid}",
)

_CREATE: dict[str, Kind] = {
    "source.path": text,
    "source.cluster.name": text,
    "source.cluster.uuid": text,
    "source.svm.name": text,
    "source.svm.uuid": text,
    "destination.path": text,
    "destination.cluster.name": text,
    "destination.cluster.uuid": text,
    "destination.svm.name": text,
    "destination.svm.uuid": text,
    "policy": text,
    "policy.name": text,
    "policy.uuid": text,
    "transfer_schedule.name": text,
    "throttle": integer,
    "state": choice("snapmirrored", "in_sync"),
    "create_destination.enabled": boolean,
    "create_destination.*": anything,
    "identity_preservation": text,
}
_CHANGE: dict[str, Kind] = {
    "policy": text,
    "policy.name": text,
    "policy.uuid": text,
    "transfer_schedule.name": text,
    "throttle": integer,
    "state": choice("snapmirrored", "in_sync", "paused", "broken_off"),
    "quick_resync": boolean,
    "recover_after_break": boolean,
}
_READ_ONLY = ("uuid", "source", "destination", "healthy", "transfer", "lag_time")
_SIDE: dict[str, Kind] = {"list_destinations_only": boolean}
_SCOPES = ("destination_only", "source_only", "source_info_only")
_ALSO = ("force", "failover")


def _of_source(call: Call) -> bool:
    """Return whether the source's view is requested; the parameter is no filter."""
    asked = call.flag("list_destinations_only", default=False)
    call.filters.pop("list_destinations_only", None)
    return asked


def list_relationships(call: Call) -> Reply:
    """List the relationships that end here, or the ones that begin here."""
    store = call.array.store
    if _of_source(call):
        return collection(call, DESTINATIONS, store.select(Destination))
    return collection(call, RELATIONSHIPS, store.select(Relationship))


def get_relationship(call: Call, uuid: str) -> Reply:
    """Return one relationship."""
    if _of_source(call):
        return instance(call, DESTINATIONS, call.row(Destination, uuid))
    return instance(call, RELATIONSHIPS, call.row(Relationship, uuid))


def create_relationship(call: Call) -> Reply:
    """Create a relationship, and its destination if requested."""
    call.refuse_query(allowed=())
    fields = call.body(_CREATE, read_only=("uuid",))
    if "policy" in fields:
        fields["policy.name"] = fields.pop("policy")
    row, job = snapmirror.create(call.array, fields)

    def created() -> dict[str, object] | None:
        now = call.array.store.find(Relationship, row.uuid)
        if now is None:
            return None
        return RELATIONSHIPS.record(call, now, wanted=Wanted(RELATIONSHIPS.fields, ()))

    return answer_job(call, job, created=created, location=f"{_BASE}/{row.uuid}")


def change_relationship(call: Call, uuid: str) -> Reply:
    """Change policy or schedule, or trigger a transition."""
    row = call.row(Relationship, uuid)
    call.refuse_query(allowed=("force", "failover", "validate_only"))
    fields = call.body(_CHANGE, read_only=_READ_ONLY)
    if "policy" in fields:
        fields["policy.name"] = fields.pop("policy")
    return answer_job(call, snapmirror.request_change(call.array, row, fields))


def delete_relationship(call: Call, uuid: str) -> Reply:
    """Delete a relationship, at one end or both."""
    store = call.array.store
    row, known = store.find(Relationship, uuid), store.find(Destination, uuid)
    call.refuse_query(allowed=(*_SCOPES, *_ALSO))
    scope = _scope(call)
    if row is not None:
        svm_uuid = row.destination_svm_uuid
    elif known is not None and scope.startswith("source"):
        svm_uuid = known.source_svm_uuid
    else:
        raise OntapError("4", target="uuid")
    job = snapmirror.delete(call.array, uuid, scope=scope, svm_uuid=svm_uuid)
    return answer_job(call, job)


def _scope(call: Call) -> str:
    """Return which ends are meant. Raises: OntapError 2 for a contradiction."""
    given = [name for name in _SCOPES if call.flag(name, default=False)]
    if len(given) > 1:
        raise OntapError("2", target=given[1], field=given[1], value="true")
    return given[0].removesuffix("_only") if given else "both"


def delete_relationships(call: Call) -> Reply:
    """Delete every relationship that the query selects, at one end or both."""
    scope = _scope(call)
    require_selection(call, RELATIONSHIPS.fields, besides=(*_SCOPES, *_ALSO))
    rows = call.array.store.select(Relationship)
    jobs = [
        snapmirror.delete(
            call.array, row.uuid, scope=scope, svm_uuid=row.destination_svm_uuid
        )
        for row, _ in select(call, RELATIONSHIPS, rows)
    ]
    return answer_jobs(call, jobs)


# --- transfers


def _transfer_view(array: Array, row: Transfer) -> Flat:
    return {
        "uuid": row.uuid,
        "relationship.uuid": row.relationship_uuid,
        "state": row.state,
        "snapshot": row.source_snapshot,
        "bytes_transferred": row.bytes_transferred,
        "start_time": row.start_time,
        "end_time": row.end_time,
        "total_duration": row.end_time and _duration(row.seconds),
        "error_info.message": row.error,
    }


TRANSFERS: Resource[Transfer] = Resource(
    FieldSet(
        keys=("uuid",),
        standard=(
            "relationship.uuid",
            "state",
            "snapshot",
            "bytes_transferred",
            "start_time",
            "end_time",
            "total_duration",
            "error_info.message",
        ),
        trees=(
            "relationship",
            "error_info",
            "checkpoint_size",
            "last_updated_time",
            "network_compression_ratio",
            "on_demand_attrs",
            "throttle",
        ),
    ),
    view=_transfer_view,
    href=lambda array, row: f"{_BASE}/{row.relationship_uuid}/transfers/{row.uuid}",
    order=("start_time", "uuid"),
)

_TRANSFER: dict[str, Kind] = {
    "source_snapshot": text,
    "throttle": integer,
    "storage_efficiency_enabled": boolean,
}


_ABORT: dict[str, Kind] = {"state": choice("aborted", "hard_aborted")}


def list_transfers(call: Call, uuid: str) -> Reply:
    """List the transfers of a relationship."""
    row = call.row(Relationship, uuid)
    rows = call.array.store.select(Transfer, relationship_uuid=row.uuid)
    return collection(call, TRANSFERS, rows)


def _find_transfer(call: Call, uuid: str, transfer_uuid: str) -> Transfer:
    row = call.row(Relationship, uuid)
    transfer = call.array.store.find(Transfer, transfer_uuid)
    if transfer is None or transfer.relationship_uuid != row.uuid:
        raise OntapError("4", target="uuid")
    return transfer


def get_transfer(call: Call, uuid: str, transfer_uuid: str) -> Reply:
    """Return one transfer."""
    return instance(call, TRANSFERS, _find_transfer(call, uuid, transfer_uuid))


def create_transfer(call: Call, uuid: str) -> Reply:
    """Start a transfer; it has no job."""
    row = call.row(Relationship, uuid)
    call.refuse_query(allowed=())
    fields = call.body(_TRANSFER, read_only=("uuid", "state"))
    transfer = transfers.request(
        call.array,
        row,
        fields.get("source_snapshot"),
        throttle=fields.get("throttle", 0),
    )
    body = {}
    if call.flag("return_records", default=False):
        record = TRANSFERS.record(call, transfer, wanted=Wanted(TRANSFERS.fields, ()))
        body = {"num_records": 1, "records": [record]}
    location = f"{_BASE}/{row.uuid}/transfers/{transfer.uuid}"
    return Reply(body, status=201, headers={"Location": location})


def change_transfer(call: Call, uuid: str, transfer_uuid: str) -> Reply:
    """Abort a transfer."""
    transfer = _find_transfer(call, uuid, transfer_uuid)
    call.refuse_query(allowed=())
    fields = call.body(_ABORT, read_only=("uuid",))
    if "state" not in fields:
        raise OntapError("262194", target="state", field="state")
    transfers.abort(call.array, transfer, state=fields["state"])
    return Reply()


ROUTES = (
    Route("GET", _BASE, list_relationships, fields=RELATIONSHIPS.fields, query=_SIDE),
    Route("POST", _BASE, create_relationship, body=_CREATE),
    Route(
        "DELETE",
        _BASE,
        delete_relationships,
        fields=RELATIONSHIPS.fields,
        query=dict.fromkeys(_SCOPES, boolean),
    ),
    Route(
        "GET",
        f"{_BASE}/<uuid>",
        get_relationship,
        fields=RELATIONSHIPS.fields,
        query=_SIDE,
    ),
    Route("PATCH", f"{_BASE}/<uuid>", change_relationship, body=_CHANGE),
    Route(
        "DELETE",
        f"{_BASE}/<uuid>",
        delete_relationship,
        query=dict.fromkeys(_SCOPES, boolean),
    ),
    Route("GET", f"{_BASE}/<uuid>/transfers", list_transfers, fields=TRANSFERS.fields),
    Route("POST", f"{_BASE}/<uuid>/transfers", create_transfer, body=_TRANSFER),
    Route(
        "GET",
        f"{_BASE}/<uuid>/transfers/<transfer_uuid>",
        get_transfer,
        fields=TRANSFERS.fields,
    ),
    Route(
        "PATCH",
        f"{_BASE}/<uuid>/transfers/<transfer_uuid>",
        change_transfer,
        body=_ABORT,
    ),
)
