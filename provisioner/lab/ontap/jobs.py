"""ONTAP jobs: background work that is stored before it starts and survives a crash.

A verb is a function of the array and the job's arguments. It may run twice, if the lab
was killed meanwhile, so every verb first checks what is left to do.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.records import Job
from provisioner.lab.ontap.store import Store

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

Act = Callable[["Array", dict[str, object]], None]


@dataclass(frozen=True)
class Verb:
    """What a job does, and what drops the half-made result if it fails."""

    run: Act
    abandon: Act | None = None


class Postponed(Exception):
    """The job continues at the next start of the lab."""


FINISHED = ("success", "failure", "cancelled")


def now_text() -> str:
    """Return the time as ONTAP writes it, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class Jobs:
    """The queue of one array."""

    def __init__(
        self, array: Array, *, store: Store, verbs: Mapping[str, Verb], threads: int
    ) -> None:
        """Run the `verbs` in so many threads."""
        self._array = array
        self._store = store
        self._verbs = verbs
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="ontap-job")
        self._lock = threading.Lock()
        self._waiting: dict[str, list[threading.Event]] = {}
        self._stopping = False

    def create(
        self,
        verb: str,
        *,
        description: str,
        svm_uuid: str | None,
        arguments: dict[str, object],
    ) -> Job:
        """Store a new job, as part of the caller's transaction."""
        job = Job(
            uuid=str(uuid.uuid4()),
            description=description,
            verb=verb,
            arguments=arguments,
            start_time=now_text(),
            svm_uuid=svm_uuid,
        )
        self._store.save(job)
        return job

    def create_failed(
        self, error: OntapError, *, description: str, svm_uuid: str | None
    ) -> Job:
        """Store a job that failed at once: a refusal that comes late."""
        with self._store.transaction():
            job = self.create(
                "none", description=description, svm_uuid=svm_uuid, arguments={}
            )
            self._fail(job.uuid, error)
        return job

    def start(self, job: Job) -> None:
        """Run a stored job; call it after the transaction."""
        if not self._stopping:
            self._pool.submit(self._run, job.uuid)

    def resume(self) -> None:
        """Start the jobs that a killed lab left unfinished, in their order."""
        self.forget_old()
        for state in ("running", "queued"):
            for job in self._store.select(Job, state=state):
                self.start(job)

    def wait(self, job: Job, *, timeout_seconds: float) -> Job:
        """Return the job once it has ended or the time is up."""
        deadline = time.monotonic() + timeout_seconds
        changed = threading.Event()
        with self._lock:
            self._waiting.setdefault(job.uuid, []).append(changed)
        try:
            while True:
                changed.clear()
                current = self._store.get(Job, job.uuid)
                left = deadline - time.monotonic()
                if current.state in FINISHED or left <= 0:
                    return current
                changed.wait(min(left, 1.0))
        finally:
            with self._lock:
                self._waiting[job.uuid].remove(changed)
                if not self._waiting[job.uuid]:
                    del self._waiting[job.uuid]

    def find(self, job_uuid: str) -> Job | None:
        """Return the job; None if there is none or it ended long ago."""
        job = self._store.find(Job, job_uuid)
        return None if job is None or self._is_old(job) else job

    def forget_old(self) -> None:
        """Delete jobs that ended longer ago than they are kept."""
        for state in FINISHED:
            for job in self._store.select(Job, state=state):
                if self._is_old(job):
                    self._store.remove(job)

    def _is_old(self, job: Job) -> bool:
        retention = self._array.settings.job_retention_seconds
        return job.ended_at is not None and time.time() - job.ended_at > retention

    def stop(self) -> None:
        """Let the running jobs end; queued ones run at the next start."""
        self._stopping = True
        self._pool.shutdown(wait=True, cancel_futures=True)

    def set_state(self, job_uuid: str, **changes: object) -> None:
        """Store the changes and wake whoever waits."""
        with self._store.transaction():
            job = self._store.find(Job, job_uuid)
            if job is not None:
                self._store.save(replace(job, **changes))  # type: ignore[arg-type]
        self._tell(job_uuid)

    def _tell(self, job_uuid: str) -> None:
        """Wake those who wait for a job that has changed."""
        with self._lock:
            for changed in self._waiting.get(job_uuid, ()):
                changed.set()

    def _run(self, job_uuid: str) -> None:
        job = self._take(job_uuid)
        if job is None:
            return
        try:
            self._array.faults.before_job(job, state=lambda: self._state(job_uuid))
            if self._state(job_uuid) in (*FINISHED, "paused"):
                return
            self._verbs[job.verb].run(self._array, job.arguments)
        except Postponed:
            return
        except OntapError as error:
            self._give_up(job, error)
        except Exception as error:
            self._array.log.exception("job %s (%s) failed", job_uuid, job.verb)
            self._give_up(job, OntapError("460770", reason=str(error)))
        else:
            self._finish(job_uuid, state="success", message="success")

    def _take(self, job_uuid: str) -> Job | None:
        """Return the job as running; None if it has ended, is paused or is gone."""
        with self._store.transaction():
            job = self._store.find(Job, job_uuid)
            if job is None or job.state in (*FINISHED, "paused"):
                return None
            self._store.save(replace(job, state="running", message="running"))
        self._tell(job_uuid)
        return job

    def _state(self, job_uuid: str) -> str:
        job = self._store.find(Job, job_uuid)
        return job.state if job is not None else "cancelled"

    def control(self, job: Job, action: str) -> None:
        """Cancel, pause or resume a job that has done nothing yet.

        Raises: OntapError 458762 it has ended, 458771 and 458776 it is running, 458783
        it is not paused.
        """
        with self._store.transaction():
            current = self._store.get(Job, job.uuid)
            if current.state in FINISHED:
                raise OntapError("458762", target="action")
            hangs = self._array.faults.hangs(job.uuid)
            if action == "resume":
                if current.state != "paused":
                    raise OntapError("458783", target="action")
                state = "running" if hangs else "queued"
            else:
                if current.state == "running" and not hangs:
                    refusal = "458776" if action == "cancel" else "458771"
                    raise OntapError(refusal, target="action")
                state = "cancelled" if action == "cancel" else "paused"
            self._store.save(replace(current, state=state, message=state))
        if state == "cancelled":
            self._abandon(current)
            self._finish(job.uuid, state=state, message="cancelled by user")
        elif state == "queued":
            self.start(job)

    def _give_up(self, job: Job, error: OntapError) -> None:
        """Drop what is half-made, then fail the job."""
        self._abandon(job)
        self._fail(job.uuid, error)

    def _abandon(self, job: Job) -> None:
        abandon = self._verbs[job.verb].abandon
        if abandon is not None:
            try:
                abandon(self._array, job.arguments)
            except Exception:
                self._array.log.exception("job %s left something behind", job.uuid)

    def _fail(self, job_uuid: str, error: OntapError) -> None:
        self._finish(
            job_uuid,
            state="failure",
            message=error.message,
            code=int(error.code),
            error={"message": error.message, "code": error.code},
        )

    def _finish(self, job_uuid: str, **changes: object) -> None:
        self.set_state(job_uuid, end_time=now_text(), ended_at=time.time(), **changes)
