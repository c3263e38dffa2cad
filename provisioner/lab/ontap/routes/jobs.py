"""Jobs: ``/api/cluster/jobs``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.lab.ontap.conventions.collection import Resource, collection, instance
from provisioner.lab.ontap.conventions.fields import FieldSet, Flat
from provisioner.lab.ontap.conventions.values import choice
from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.http import Call, Reply, Route
from provisioner.lab.ontap.records import Job, Svm

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array


def _view(array: Array, job: Job) -> Flat:
    svm = array.store.find(Svm, job.svm_uuid)
    return {
        "uuid": job.uuid,
        "description": job.description,
        "state": job.state,
        "message": job.message,
        "code": job.code,
        "error": job.error,
        "start_time": job.start_time,
        "end_time": job.end_time,
        "svm.name": svm.name if svm else None,
        "svm.uuid": svm.uuid if svm else None,
        "node.name": array.config.node,
    }


JOBS: Resource[Job] = Resource(
    FieldSet(
        keys=("uuid",),
        standard=(
            "description",
            "state",
            "message",
            "code",
            "error",
            "start_time",
            "end_time",
            "svm.name",
            "svm.uuid",
            "node.name",
        ),
    ),
    view=_view,
    href=lambda array, job: f"/api/cluster/jobs/{job.uuid}",
    order=("start_time", "uuid"),
)


def _find(call: Call, uuid: str) -> Job:
    if call.array.jobs.find(uuid) is None:
        raise OntapError("4", target="uuid")
    return call.row(Job, uuid)  # an SVM's account sees only those of its SVM


def list_jobs(call: Call) -> Reply:
    """List running jobs, and those that ended recently."""
    call.array.jobs.forget_old()
    return collection(call, JOBS, call.array.store.select(Job))


def get_job(call: Call, uuid: str) -> Reply:
    """Return one job; one that ended long ago is not found."""
    return instance(call, JOBS, _find(call, uuid))


def change_job(call: Call, uuid: str) -> Reply:
    """Cancel, pause or resume a job that has done nothing yet."""
    job = _find(call, uuid)
    action = call.parameter("action")
    if action not in ("cancel", "pause", "resume"):
        raise OntapError("262197", target="action", field="action", value=action or "")
    call.array.jobs.control(job, action)
    return Reply()


ROUTES = (
    Route("GET", "/api/cluster/jobs", list_jobs, fields=JOBS.fields),
    Route("GET", "/api/cluster/jobs/<uuid>", get_job, fields=JOBS.fields),
    Route(
        "PATCH",
        "/api/cluster/jobs/<uuid>",
        change_job,
        query={"action": choice("cancel", "pause", "resume")},
    ),
)
