"""500 requests that are queued at once: how many workspaces a second the engine makes.

Prints one JSON object. Everything of `make demo` runs below a directory that is gone
afterwards. One worker for each processor has started and waits, with four slots: no far
side is waited for, and more slots would only wait for the processors, for one another
and for the rows that they share. WORKER_CONCURRENCY changes that. The account `ci` asks
for all of them in one transaction: seconds to READY count from the first step. No
latency is set in the lab, so what is measured is the engine, the clients of ONTAP and
Perforce, and the lab itself on the same processors. `per_second_without_lab` is what
the processors would make if ONTAP and Perforce were elsewhere: they would be busy with
workers and PostgreSQL alone. QUEUED_REQUESTS and QUEUED_WORKERS change the numbers.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from shared.demos import Running, demo_of_its_own
from shared.processes import processor_seconds
from shared.verdicts import Limit, exactly, load, say

REQUESTS = int(os.environ.get("QUEUED_REQUESTS", "500"))
WORKERS = int(os.environ.get("QUEUED_WORKERS", os.cpu_count() or 1))
SLOTS = os.environ.setdefault("WORKER_CONCURRENCY", "4")
GIVE_UP_SECONDS = 3600.0
Used = tuple[int, float, float, float]
# The second is what a machine that is too slow for the first may still reach.
AT_LEAST_PER_SECOND = 20.0
AT_LEAST_WITHOUT_LAB = 20.0


def main() -> None:
    load_before = load()
    with demo_of_its_own(clones_at_once=True) as running:
        figures = measure(running)
    say(
        "queued_requests",
        figures=figures,
        limits={
            "ready": exactly(REQUESTS),
            "ready_per_second": Limit(at_least=AT_LEAST_PER_SECOND),
            "per_second_without_lab": Limit(at_least=AT_LEAST_WITHOUT_LAB),
        },
        load_before=load_before,
    )


def measure(running: Running) -> dict[str, Any]:
    """Queue all requests, then let the workers make them; return what it cost."""
    running.child("web").stop()
    running.child("worker").stop()
    lab, postgres = running.child("lab").process.pid, postgres_pid()
    workers = [running.start_again(running.child("worker"))]
    workers += [workers[0].started_again() for _ in range(WORKERS - 1)]
    running.demo.children += workers[1:]
    pids = [worker.process.pid for worker in workers]
    until_they_wait(pids)
    asked_per_second, before = ask(
        running,
        then=lambda: (
            committed(),
            processor_seconds(lab),
            processor_seconds(postgres),
            sum(processor_seconds(pid) for pid in pids),
        ),
    )
    wait(workers)
    used = sum(processor_seconds(pid) for pid in pids) - before[3]
    of_database = processor_seconds(postgres) - before[2]
    processors = os.cpu_count() or 1
    return {
        **times(),
        "per_second_without_lab": round(
            processors * REQUESTS / (used + of_database), 2
        ),
        "workers": WORKERS,
        "slots_of_each": int(SLOTS),
        "asked_per_second": asked_per_second,
        "commits_of_each": round((committed() - before[0]) / REQUESTS, 1),
        "cpu_ms_of_each": {
            "workers": round(1000 * used / REQUESTS),
            "lab": round(1000 * (processor_seconds(lab) - before[1]) / REQUESTS),
            "database": round(1000 * of_database / REQUESTS),
        },
        "copies": running.demo.lab["ontap"]["copy_method"],
    }


def until_they_wait(pids: list[int]) -> None:
    """Return once workers have started: that takes seconds, and is not measured."""
    from provisioner.engine.workers import alive_workers

    while not set(pids) <= {worker.process_id for worker in alive_workers()}:
        time.sleep(1.0)
    time.sleep(5.0)


def ask(running: Running, *, then: Callable[[], Used]) -> tuple[float, Used]:
    """Ask for all of them; return how many a second, and `then` before they begin."""
    from django.db import transaction

    from provisioner.accounts.models import User
    from provisioner.workspace_requests.actions import workspace_create
    from provisioner.workspace_requests.requests import WorkspaceRequest

    ci = User.objects.get(username="ci")
    began = time.monotonic()
    with transaction.atomic():
        for number in range(REQUESTS):
            request = WorkspaceRequest(
                by=ci, template=running.template, purpose="ci", request_key=str(number)
            )
            workspace_create(request)
        asked = time.monotonic() - began
        return round(REQUESTS / asked, 1), then()


def wait(workers: list[Any]) -> None:
    """Return once nothing is being made any more."""
    from provisioner.workspaces.models import Workspace

    ends = time.monotonic() + GIVE_UP_SECONDS
    while Workspace.objects.filter(state=Workspace.State.PROVISIONING).exists():
        for worker in workers:
            if not worker.is_running:
                raise SystemExit(f"A worker ended: {worker.last_lines()}")
        if time.monotonic() > ends:
            raise SystemExit("Not all are ready after all that time.")
        time.sleep(1.0)


def times() -> dict[str, Any]:
    """Return how fast they became ready, and what each step took."""
    from provisioner.engine.models import Step
    from provisioner.workspaces.models import Workspace, WorkspaceOperation

    steps = Step.objects.filter(operation__kind=WorkspaceOperation.PROVISION)
    began = min(at for at in steps.values_list("first_started_at", flat=True) if at)
    ready = sorted(
        (at - began).total_seconds()
        for at in Workspace.objects.values_list("ready_at", flat=True)
        if at is not None
    )
    took: dict[str, list[float]] = {}
    for step in steps:
        took.setdefault(step.name, []).append(step.seconds or 0.0)
    return {
        "ready": len(ready),
        "ready_per_second": round(len(ready) / ready[-1], 2),
        "p50_seconds": round(statistics.median(ready), 1),
        "p95_seconds": round(
            statistics.quantiles(ready, n=20, method="inclusive")[-1], 1
        ),
        "step_median_seconds": {
            name: round(statistics.median(all_), 3) for name, all_ in took.items()
        },
    }


def postgres_pid() -> int:
    """Return the number of the database's first process."""
    from django.conf import settings

    lines = Path(settings.VAR_DIR, "postgres", "postmaster.pid").read_text()
    return int(lines.split()[0])


def committed() -> int:
    """Return how many transactions the database has committed so far."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT xact_commit FROM pg_stat_database "
            "WHERE datname = current_database()"
        )
        return int(cursor.fetchone()[0])


if __name__ == "__main__":
    main()
