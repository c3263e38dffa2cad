"""Faults of the lab: rules of several trials in force at a time, each for a while."""

from __future__ import annotations

import contextlib
import json
import random
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any

from tests.chaos.witness import OntapWitness

Rule = dict[str, Any]

WRITES = ("POST", "PATCH", "DELETE")
COMMANDS = (
    *("client", "clients", "flush", "have", "opened", "changes", "change"),
    *("shelve", "unshelve", "revert", "edit", "add", "delete", "move"),
    *("protects", "users", "login", "describe", "sync", "reconcile", "fstat", "files"),
)


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One kind of trouble with its rules for either server."""

    kind: str
    ontap: tuple[Rule, ...] = ()
    perforce: tuple[Rule, ...] = ()


def _on_ontap(kind: str, **rule: Any) -> Fault:
    return Fault(kind=kind, ontap=({"path": "/api/*", **rule},))


def _on_perforce(kind: str, **rule: Any) -> Fault:
    return Fault(kind=kind, perforce=(rule,))


KINDS = (
    "ontap-reply-lost",
    "ontap-cut",
    "ontap-error",
    "ontap-job-fails",
    "ontap-job-hangs",
    "ontap-slow",
    "perforce-reply-lost",
    "perforce-cut",
    "perforce-busy",
    "perforce-error",
    "perforce-slow",
    "perforce-logged-out",
)


def draw(kind: str, rng: random.Random) -> Fault:
    """Return a fault of this kind."""
    write, times = rng.choice(WRITES), rng.choice((1, 1, 2, 3))
    command = rng.choice(COMMANDS)
    status = rng.choice((429, 500, 503))
    seconds = rng.uniform(0.1, 0.6)
    made = {
        "ontap-reply-lost": _on_ontap(
            kind, method=write, drop=True, when="after", times=times
        ),
        "ontap-cut": _on_ontap(kind, drop=True, when="before", times=times + 1),
        "ontap-error": _on_ontap(kind, status=status, times=times),
        "ontap-job-fails": _on_ontap(kind, method=write, job_code="917536", times=1),
        "ontap-job-hangs": _on_ontap(
            kind, method=write, job_hang_seconds=seconds * 5, times=times
        ),
        "ontap-slow": _on_ontap(kind, latency_seconds=seconds, times=20),
        "perforce-reply-lost": _on_perforce(
            kind, command=command, drop="after", times=times
        ),
        "perforce-cut": _on_perforce(kind, command="*", drop="before", times=times + 1),
        "perforce-busy": _on_perforce(
            kind, command="*", max_commands=10, times=times + 1
        ),
        "perforce-error": _on_perforce(
            kind, command=command, error="server is paused", times=1
        ),
        "perforce-slow": _on_perforce(
            kind, command="*", latency_seconds=seconds, times=30
        ),
        "perforce-logged-out": _on_perforce(
            kind, command=command, expire_tickets=True, times=1
        ),
    }
    return made[kind]


class FaultBoard:
    """Who has which faults in force; the servers are told of all together."""

    def __init__(
        self, *, clusters: Sequence[OntapWitness], perforce_root: Path
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._clusters = clusters
        self._perforce_file = perforce_root / "faults.json"
        self._lock = threading.Lock()
        self._rules: dict[int, Fault] = {}

    def put(self, trial: int, fault: Fault) -> None:
        with self._lock:
            self._rules[trial] = fault
            self.counts[fault.kind] += 1
            self._tell(ontap=bool(fault.ontap), perforce=bool(fault.perforce))

    def end(self, trial: int) -> None:
        with self._lock:
            fault = self._rules.pop(trial, None)
            if fault is not None:
                self._tell(ontap=bool(fault.ontap), perforce=bool(fault.perforce))

    def end_all(self) -> None:
        with self._lock:
            self._rules.clear()
            self._tell(ontap=True, perforce=True)

    def _tell(self, *, ontap: bool, perforce: bool) -> None:
        if ontap:
            rules = [rule for f in self._rules.values() for rule in f.ontap]
            # A restart has ended all of them.
            with contextlib.suppress(OSError, HTTPException):
                for cluster in self._clusters:
                    cluster.request("PUT", "/lab/faults", {"rules": rules})
        if perforce:
            rules = [rule for f in self._rules.values() for rule in f.perforce]
            new = self._perforce_file.with_suffix(".new")
            new.write_text(json.dumps({"rules": rules}))
            new.replace(self._perforce_file)
