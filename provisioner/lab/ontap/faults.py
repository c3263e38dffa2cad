"""Faults on demand that a client must survive, decided by rules and a seed.

Rules come from ``PUT /lab/faults`` and are tried in order. The first that matches a
request, has ``times`` left and wins the draw by its ``rate`` decides.
"""

from __future__ import annotations

import fnmatch
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields

from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.records import Job

# How often a hanging job looks whether it was cancelled.
_LOOK_SECONDS = 0.05


@dataclass
class Fault:
    """One rule.

    method, path: what it applies to; shell wildcards.
    latency_seconds: wait before anything else.
    status, code, message: answer with this error.
    drop: close the connection without an answer.
    when: ``before`` nothing happened, or ``after`` the effect (a lost reply).
    job_code, job_message: let the job that the request starts fail.
    job_hang_seconds: let that job hang so long before it goes on.
    expired_certificate: shake hands with a certificate that is out of date; such a
    rule is about connections, whatever is asked on them.
    rate: the share of requests it applies to; times: at most so many, None for all.
    """

    method: str = "*"
    path: str = "*"
    latency_seconds: float = 0.0
    status: int | None = None
    code: str = "1179817"
    message: str = "The lab was told to fail."
    drop: bool = False
    expired_certificate: bool = False
    when: str = "before"
    job_code: str | None = None
    job_message: str = "The lab was told to fail the job."
    job_hang_seconds: float = 0.0
    rate: float = 1.0
    times: int | None = None

    @classmethod
    def parse(cls, document: Mapping[str, object]) -> Fault:
        """Read one rule. Raises: ValueError with a sentence."""
        known = {field.name: field.default for field in fields(cls)}
        unknown = sorted(set(document) - set(known))
        if unknown:
            raise ValueError(f"unknown {', '.join(unknown)}")
        for name, value in document.items():
            if not _fits(value, known[name]):
                raise ValueError(f"{name} cannot be {value!r}")
        fault = cls(**document)  # type: ignore[arg-type]  # checked above
        if fault.when not in ("before", "after"):
            raise ValueError("when is before or after")
        return fault

    @property
    def concerns_job(self) -> bool:
        """Return whether the rule is about the job rather than the answer."""
        return self.job_code is not None or self.job_hang_seconds > 0

    def matches(self, *, method: str, path: str) -> bool:
        """Return whether the rule is about such a request."""
        return fnmatch.fnmatchcase(method, self.method) and fnmatch.fnmatchcase(
            path, self.path
        )


def _fits(value: object, default: object) -> bool:
    if default is None:
        return value is None or isinstance(value, int | str)
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(default, bool) and isinstance(value, bool)
    if isinstance(default, float):
        return isinstance(value, int | float) and 0 <= value <= 3600
    return isinstance(value, type(default))


class Faults:
    """The rules in force. Equal seeds and equal requests give equal faults."""

    def __init__(self) -> None:
        """Start with none."""
        self._lock = threading.Lock()
        self._rules: list[Fault] = []
        self._random = random.Random(0)
        self._hanging: set[str] = set()
        self._for_jobs: dict[str, Fault] = {}
        self._released = threading.Event()
        self.seed = 0

    def replace(self, rules: list[Fault], *, seed: int) -> None:
        """Activate new rules; hanging jobs continue."""
        with self._lock:
            self._released.set()
            self._released = threading.Event()
            # Those that were to hang and have not begun are let go, too.
            self._for_jobs = {
                uuid: fault
                for uuid, fault in self._for_jobs.items()
                if not fault.job_hang_seconds
            }
            self._rules = rules
            self.seed = seed
            self._random = random.Random(seed)

    def describe(self) -> dict[str, object]:
        """Return the rules as JSON, with the ``times`` that are left."""
        with self._lock:
            return {
                "seed": self.seed,
                "rules": [asdict(rule) for rule in self._rules],
            }

    def draw(self, *, method: str, path: str) -> Fault | None:
        """Return the rule that decides this request, counting it as used."""
        return self._draw(
            lambda rule: (
                not rule.expired_certificate and rule.matches(method=method, path=path)
            )
        )

    def has_expired_certificate(self) -> bool:
        """Return whether a connection sees an expired certificate, and count it."""
        return self._draw(lambda rule: rule.expired_certificate) is not None

    def _draw(self, matches: Callable[[Fault], bool]) -> Fault | None:
        with self._lock:
            for rule in self._rules:
                if not matches(rule) or rule.times == 0:
                    continue
                if rule.rate < 1 and self._random.random() >= rule.rate:
                    continue
                if rule.times is not None:
                    rule.times -= 1
                return rule
        return None

    def attach(self, fault: Fault, job: Job) -> None:
        """Let `fault` decide the outcome of the job."""
        with self._lock:
            self._for_jobs[job.uuid] = fault

    def before_job(self, job: Job, *, state: Callable[[], str]) -> None:
        """Delay or fail a job that a rule was attached to.

        A hanging job can be paused and cancelled, as `state` tells.

        Raises: OntapError with the rule's code.
        """
        with self._lock:
            fault = self._for_jobs.pop(job.uuid, None)
            released = self._released
        if fault is None:
            return
        deadline = time.monotonic() + fault.job_hang_seconds
        self._hanging.add(job.uuid)
        while not released.is_set():
            now = state()
            left = deadline - time.monotonic()
            if now == "cancelled" or (left <= 0 and now != "paused"):
                break
            released.wait(min(max(left, 0.0), _LOOK_SECONDS) or _LOOK_SECONDS)
        self._hanging.discard(job.uuid)
        if fault.job_code is not None:
            error = OntapError("917536", reason=fault.job_message)
            error.code, error.message = fault.job_code, fault.job_message
            raise error

    def hangs(self, job_uuid: str) -> bool:
        """Return whether a rule delays the start of the job."""
        return job_uuid in self._hanging

    def release(self) -> None:
        """Let hanging jobs continue, as the lab stops."""
        self._released.set()
