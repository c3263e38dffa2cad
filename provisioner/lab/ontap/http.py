"""One request and one answer, by the conventions of the ONTAP REST API."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from werkzeug.datastructures import MultiDict

from provisioner.lab.ontap.conventions.body import flatten, parse_json, read_fields
from provisioner.lab.ontap.conventions.fields import FieldSet
from provisioner.lab.ontap.conventions.values import Kind, boolean, integer
from provisioner.lab.ontap.errors import ERRORS, OntapError
from provisioner.lab.ontap.faults import Fault
from provisioner.lab.ontap.records import Job
from provisioner.lab.ontap.store import R

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

MAXIMUM_RETURN_TIMEOUT = 120
# How long a write by query waits when the request does not say.
_QUERY_SECONDS = 15

# Query parameters that steer the answer and are no filters.
STEERING = (
    "fields",
    "max_records",
    "order_by",
    "return_records",
    "return_timeout",
    "return_unmatched_nested_array_objects",
    "ignore_unknown_fields",
    "start.key",
    "query",
    "query_fields",
)


@dataclass
class Reply:
    """An answer: a status, a JSON body and headers."""

    body: dict[str, Any] = field(default_factory=dict)
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Call:
    """A request that passed authentication and has a route."""

    array: Array
    method: str
    path: str
    query: MultiDict[str, str]
    data: bytes
    wants_links: bool = True
    # What the records are called: ``volume.name`` asks a volume for its ``name``.
    own_name: str = ""
    # What is to become of the job that the request starts.
    job_fault: Fault | None = None

    def row(self, kind: type[R], uuid: str) -> R:
        """Return the row with the uuid of the path. Raises: OntapError 4."""
        found = self.array.store.find(kind, uuid)
        if found is None:
            raise OntapError("4", target="uuid")
        return found

    def parameter(self, name: str) -> str | None:
        """Return a query parameter that may be given once.

        Raises: OntapError 262188 if it was given twice.
        """
        values = self.query.getlist(name)
        if len(values) > 1:
            raise OntapError("262188", target=name, field=name)
        return values[0] if values else None

    def flag(self, name: str, *, default: bool) -> bool:
        """Return a boolean query parameter. Raises: OntapError 262197."""
        return bool(self._typed(name, boolean, default))

    def number(self, name: str, *, default: int, low: int, high: int) -> int:
        """Return a whole number in a range. Raises: OntapError 262197."""
        value = self._typed(name, integer, default)
        assert isinstance(value, int)
        if not low <= value <= high:
            raise OntapError("262197", target=name, field=name, value=value)
        return value

    def _typed(self, name: str, kind: Kind, default: object) -> object:
        value = self.parameter(name)
        if value is None or value == "":
            return default
        try:
            return kind(value)
        except ValueError:
            raise OntapError(
                "262197", target=name, field=name, value=value[:200]
            ) from None

    @functools.cached_property
    def ignores_unknown(self) -> bool:
        """Whether the client wants unknown fields ignored."""
        return self.flag("ignore_unknown_fields", default=False)

    @property
    def is_strict(self) -> bool:
        """Whether unknown fields are refused in this call."""
        return self.array.settings.strict and not self.ignores_unknown

    @functools.cached_property
    def filters(self) -> dict[str, str]:
        """Return the query fields that select records; ``svm`` means its name."""
        found: dict[str, str] = {}
        for name in self.query:
            if name in STEERING or name == "":
                continue
            value = self.parameter(name)
            assert value is not None
            found[self._field_of(name)] = value
        return found

    def _field_of(self, name: str) -> str:
        if name == "svm":
            name = "svm.name"
        return name.removeprefix(f"{self.own_name}.") if self.own_name else name

    def body(
        self,
        schema: Mapping[str, Kind],
        *,
        read_only: Iterable[str] = (),
        from_query: Iterable[str] = (),
    ) -> dict[str, Any]:
        """Return the body's fields, flat and converted to their kinds.

        `from_query` are fields that may be query parameters instead.
        """
        flat = flatten(parse_json(self.data))
        for name in from_query:
            value = self.parameter(name)
            if value is not None:
                flat[name] = value
        return read_fields(
            flat,
            schema=schema,
            read_only=tuple(read_only),
            strict=self.is_strict,
        )

    def refuse_query(self, *, allowed: Iterable[str]) -> None:
        """Refuse query parameters that a write does not have (strict mode)."""
        if not self.is_strict:
            return
        for name in self.query:
            if name not in allowed and name not in STEERING and name:
                raise OntapError("262179", target=name, field=name)

    def wait_seconds(self, *, default: int = 0) -> int:
        """Return how many seconds a write waits for its job."""
        return self.number(
            "return_timeout", default=default, low=0, high=MAXIMUM_RETURN_TIMEOUT
        )


Handler = Callable[..., Reply]


@dataclass(frozen=True)
class Route:
    """A method, a path with ``<name>`` parts, and its handler.

    own_name: see `Call`. For the description of the lab: the fields that records have,
    what a body may hold, and query parameters beside those that every route of its
    method has.
    """

    method: str
    path: str
    handler: Handler
    fields: FieldSet | None = None
    body: Mapping[str, Kind] | None = None
    own_name: str = ""
    query: Mapping[str, Kind] = field(default_factory=dict)


def job_link(job: Job) -> dict[str, object]:
    """Return the link that clients poll; every answer with a job has it."""
    href = f"/api/cluster/jobs/{job.uuid}"
    return {"job": {"uuid": job.uuid, "_links": {"self": {"href": href}}}}


def answer_job(
    call: Call,
    job: Job,
    *,
    created: Callable[[], dict[str, object] | None] | None = None,
    location: str | None = None,
) -> Reply:
    """Start the job and answer 202, or 200 or 201 if it ends within the wait.

    `created` returns the new record, for ``return_records=true``.
    """
    array = call.array
    if call.job_fault is not None:
        array.faults.attach(call.job_fault, job)
    array.jobs.start(job)
    current = job
    if seconds := call.wait_seconds():
        current = array.jobs.wait(job, timeout_seconds=seconds)
    body: dict[str, Any] = dict(job_link(job))
    if current.state == "failure" and array.settings.failed_job == "error":
        error = current.error or {}
        return Reply({"error": dict(error), **body}, status=status_of(error))
    done = current.state == "success"
    status = (201 if created is not None else 200) if done else 202
    if created is not None and call.flag("return_records", default=False):
        record = created()
        body = {"num_records": 1, "records": [record], **body} if record else body
    headers = {"Location": location} if location else {}
    return Reply(body, status=status, headers=headers)


def answer_done(
    call: Call,
    description: str,
    *,
    svm_uuid: str | None,
    created: Callable[[], dict[str, object] | None] | None = None,
    location: str | None = None,
) -> Reply:
    """Answer with a job for work that is already done."""
    with call.array.store.transaction():
        job = call.array.jobs.create(
            "nothing", description=description, svm_uuid=svm_uuid, arguments={}
        )
    return answer_job(call, job, created=created, location=location)


def answer_jobs(call: Call, jobs: Sequence[Job]) -> Reply:
    """Start the jobs of a write by query and wait for all, by default 15 seconds."""
    array = call.array
    for job in jobs:
        array.jobs.start(job)
    deadline = time.monotonic() + call.wait_seconds(default=_QUERY_SECONDS)
    ended = [
        array.jobs.wait(job, timeout_seconds=max(0.0, deadline - time.monotonic()))
        for job in jobs
    ]
    done = all(job.state == "success" for job in ended)
    links = [job_link(job)["job"] for job in jobs]
    return Reply({"num_records": len(jobs), "jobs": links}, status=200 if done else 202)


def answer_created(call: Call, record: dict[str, Any], *, location: str) -> Reply:
    """Answer 201 for what was created at once, with the record if requested."""
    body: dict[str, Any] = {}
    if call.flag("return_records", default=False):
        body = {"num_records": 1, "records": [record]}
    return Reply(body, status=201, headers={"Location": location})


def status_of(error: Mapping[str, object]) -> int:
    """Return the HTTP status of a job's error."""
    kind = ERRORS.get(str(error.get("code")))
    return kind.status if kind else 400
