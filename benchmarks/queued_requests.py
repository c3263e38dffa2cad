"""500 requests that are queued at once: how many workspaces a second the engine makes.

Prints JSON lines. Everything of `make demo` runs below a directory that is gone
afterwards. A worker is stopped while the account `ci` asks for all of them, and is
started again: seconds to READY count from its first step. No latency is set in the lab,
so what is measured is the engine, the clients of ONTAP and Perforce, and the lab itself
on the same processors. QUEUED_REQUESTS changes the number.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from warm_pool import in_a_place_of_its_own, write_tree

REQUESTS = int(os.environ.get("QUEUED_REQUESTS", "500"))
WITHIN_SECONDS = 3600.0


def main() -> None:
    in_a_place_of_its_own(measure)


def measure(place: Path) -> None:
    """Queue all requests, then let a worker make them."""
    from provisioner.accounts.models import User
    from provisioner.demo.run import Demo, DemoOptions
    from provisioner.workspaces import actions
    from provisioner.workspaces.models import Workspace

    source = place / "tree"
    write_tree(source)
    can_mount = os.geteuid() == 0 and shutil.which("mkfs.btrfs") is not None
    options = DemoOptions(
        source=source, build="true", ignore="", btrfs="8G" if can_mount else ""
    )
    with Demo(options, say=lambda text: print(text, file=sys.stderr)) as demo:
        site = demo.start()
        template, _ = demo.build_template(site, name=demo.fill_depot())
        ci = User.objects.get(username="ci")
        [position] = [n for n, c in enumerate(demo.children) if c.name == "worker"]
        demo.children[position].stop()
        began = time.monotonic()
        for number in range(REQUESTS):
            actions.workspace_create(
                by=ci, template=template, purpose="ci", request_key=str(number)
            )
        asked_in = time.monotonic() - began
        commits = committed()
        worker = demo.children[position] = demo.children[position].started_again()
        states: list[str] = []
        while states != [Workspace.State.READY] * REQUESTS:
            time.sleep(1.0)
            states = list(Workspace.objects.values_list("state", flat=True))
            if Workspace.State.FAILED in states or not worker.is_running:
                raise SystemExit(f"A workspace failed: {worker.last_lines()}")
            if time.monotonic() - began > WITHIN_SECONDS:
                raise SystemExit(f"Not all are ready after all that time: {states}")
        report(
            asked_per_second=round(REQUESTS / asked_in, 1),
            commits_of_each=round((committed() - commits) / REQUESTS, 1),
            worker_cpu_ms_of_each=round(
                1000 * processor_seconds(worker.process.pid) / REQUESTS
            ),
            copies=demo.lab["ontap"]["copy_method"],
        )


def report(**more: object) -> None:
    """Say how fast they became ready, and what each step took and waited for."""
    from provisioner.workspaces.models import Operation, Step, Workspace

    steps = Step.objects.filter(operation__kind=Operation.Kind.PROVISION)
    began = min(steps.values_list("first_started_at", flat=True))
    ready = sorted(
        (at - began).total_seconds()
        for at in Workspace.objects.values_list("ready_at", flat=True)
        if at is not None
    )
    cuts = statistics.quantiles(ready, n=20, method="inclusive")
    line: dict[str, Any] = {
        "figure": f"{REQUESTS} queued requests",
        "workspaces_per_second": round(REQUESTS / ready[-1], 2),
        "p50_seconds": round(statistics.median(ready), 2),
        "p95_seconds": round(cuts[-1], 2),
        **more,
        "load": round(os.getloadavg()[0], 1),
    }
    print(json.dumps(line))
    took: dict[str, list[float]] = {}
    for step in steps:
        took.setdefault(step.name, []).append(step.seconds or 0.0)
    medians = {name: round(statistics.median(all_), 3) for name, all_ in took.items()}
    print(json.dumps({"figure": "seconds of each step, median", **medians}))


def committed() -> int:
    """Return how many transactions the database has committed so far."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT xact_commit FROM pg_stat_database "
            "WHERE datname = current_database()"
        )
        return int(cursor.fetchone()[0])


def processor_seconds(pid: int) -> float:
    """Return what a process has used of the processors."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
