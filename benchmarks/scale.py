"""What every sweep and the largest pages take at full size, on generated rows.

Prints JSON lines. 32,767 workspaces, 5,000 people, 200 templates, 6 sites, and a year
of events: 5 million (SCALE_EVENTS, SCALE_WORKSPACES). Each periodic job runs once, as a
worker runs it, with what it takes of a processor here and in PostgreSQL, how many
statements, and how much memory it needs at its height. What it queues for hosts, ONTAP
and Perforce is not run, and what asks them itself fails at once (`failed`). Then pages
of the audit log, of people and the overview, as an administrator; and what retention
takes. The database is in a directory that is gone afterwards; `--keep DIRECTORY` keeps
it as it was filled, and measures a copy of it, if it was filled before, too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pages import measured, new_database, processor_ms, set_up, vacuum

WORKSPACES = int(os.environ.get("SCALE_WORKSPACES", "32767"))
EVENTS = int(os.environ.get("SCALE_EVENTS", "5000000"))
FIRST = 1000
PAGES = (
    *("/overview/", "/people/", "/people/?page=99999", "/people/?sort=-unique_bytes"),
    *(
        "/audit-log/",
        "/audit-log/?page=2",
        "/audit-log/?page=490",
        "/audit-log/?page=99999",
    ),
    *(
        "/audit-log/?actor=alice",
        "/audit-log/?q=lease",
        "/audit-log/?q=nothing-has-this",
    ),
    *("/audit-log/?kind=workspace_ready", "/operations/", "/"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path)
    keep = parser.parse_args().keep
    # On a busy machine a transaction that fills tables may stand still for long.
    os.environ.setdefault("WORKER_STALLED_SECONDS", "600")
    set_up("scale", keep=keep)
    fill()
    if keep is not None:
        measure_a_copy()
    for figures in (tables, sweeps, pages, retention):
        for figure in figures():
            say(**figure)


def fill() -> None:
    """Fill the database, unless an earlier run has."""
    from shared.filled import a_year_of_events, company_of, spread_over_sites

    from provisioner.workspaces.models import Workspace

    if Workspace.objects.exists():
        return
    began = time.perf_counter()
    company = company_of(min(FIRST, WORKSPACES))
    company.grow(to=WORKSPACES)
    spread_over_sites()
    say(figure="filled", seconds=round(time.perf_counter() - began))
    began = time.perf_counter()
    events = a_year_of_events(EVENTS)
    vacuum()
    say(figure="events", value=events, seconds=round(time.perf_counter() - began))


def measure_a_copy() -> None:
    """Go on in a copy of the filled database, as it is to be measured again."""
    from django.core.management import call_command
    from django.db import connection

    filled = connection.settings_dict["NAME"]
    new_database(f"measured_{os.getpid()}", like=filled)
    call_command("migrate", verbosity=0)
    vacuum()


def say(**figure: Any) -> None:
    print(json.dumps({**figure, "load": round(os.getloadavg()[0], 1)}), flush=True)


def tables() -> Iterator[dict[str, Any]]:
    """Yield the largest tables: parts count with their table."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(parent.relname, own.relname) AS name, "
            "sum(greatest(own.reltuples, 0))::bigint, "
            "sum(pg_total_relation_size(own.oid))::bigint >> 20 FROM pg_class AS own "
            "LEFT JOIN pg_inherits ON inhrelid = own.oid "
            "LEFT JOIN pg_class AS parent ON parent.oid = inhparent "
            "WHERE own.relkind = 'r' GROUP BY name ORDER BY 3 DESC LIMIT 12"
        )
        for name, rows, size_mb in cursor.fetchall():
            yield {"figure": "table", "table": name, "rows": rows, "size_mb": size_mb}


def sweeps() -> Iterator[dict[str, Any]]:
    """Run each periodic job once, in the order of their names."""
    import django.db
    from django.test.utils import CaptureQueriesContext
    from procrastinate.contrib.django import app

    app.perform_import_paths()  # type: ignore[no-untyped-call]
    jobs = sorted(
        (each.task.name, each.cron, each.task)
        for each in app.periodic_registry.periodic_tasks.values()
    )
    for name, cron, task in jobs:
        if task.pass_context or asyncio.iscoroutinefunction(task.func):
            continue  # only within a worker: sweep_jobs
        failed = ""
        tracemalloc.start()
        cpu, began = processor_ms(), time.perf_counter()
        with CaptureQueriesContext(django.db.connection) as queries:
            try:
                task.func(timestamp=int(time.time()))
            except Exception as error:
                failed = type(error).__name__
        seconds = time.perf_counter() - began
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        yield {
            "figure": "sweep",
            "sweep": name,
            "cron": cron,
            "seconds": round(seconds, 2),
            "cpu_ms": round(processor_ms() - cpu),
            "statements": len(queries),
            "memory_mb": round(peak / 2**20, 1),
            **({"failed": failed} if failed else {}),
        }


def pages() -> Iterator[dict[str, Any]]:
    from django.test import Client

    from provisioner.accounts.models import User

    browser = Client()
    browser.force_login(User.objects.get(username="admin"))
    for page in PAGES:
        if browser.get(page).status_code == 200:
            yield measured(browser, page, who="admin", scale=WORKSPACES)
        else:
            yield {"figure": "page", "page": page, "missing": True}
    began, size, cpu = time.perf_counter(), 0, processor_ms()
    answer: Any = browser.get("/audit-log/?as=csv")
    for part in answer.streaming_content if answer.streaming else [answer.content]:
        size += len(part)
    yield {
        "figure": "export",
        "status": answer.status_code,
        "bytes": size,
        "seconds": round(time.perf_counter() - began, 1),
        "cpu_ms": round(processor_ms() - cpu),
    }


def retention() -> Iterator[dict[str, Any]]:
    """Keep half a year of the audit log, and half a year of what is over."""
    from django.conf import settings

    from provisioner.lib import clocks
    from provisioner.retention.actions import delete_old, shorten_audit_log
    from provisioner.retention.rules import RULES

    settings.AUDIT_LOG_DAYS = 180
    began, today = time.perf_counter(), clocks.database_now().date()
    shorten_audit_log(today=today)
    yield {
        "figure": "audit log shortened",
        "seconds": round(time.perf_counter() - began, 2),
    }
    settings.HISTORY_DAYS = 90
    for rule in RULES:
        began = time.perf_counter()
        deleted = delete_old(rule, now=clocks.database_now())
        yield {
            "figure": "old rows deleted",
            "table": rule.model._meta.db_table,
            "rows": deleted,
            "seconds": round(time.perf_counter() - began, 2),
        }


if __name__ == "__main__":
    main()
