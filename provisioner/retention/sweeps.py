"""The nightly deletion of old rows, and the months of the audit log."""

from __future__ import annotations

import datetime as dt

import structlog
from procrastinate.contrib.django import app

from provisioner.audit_log.partitions import ensure_months
from provisioner.lib import clocks
from provisioner.retention.actions import (
    delete_ended_jobs,
    delete_old,
    shorten_audit_log,
)
from provisioner.retention.rules import RULES

MONTHS_AHEAD = dt.timedelta(days=62)

log = structlog.get_logger(__name__)


@app.periodic(cron="11 4 * * *")
@app.task(name="sweep_old_rows", queue="sweeps", queueing_lock="sweep_old_rows")
def sweep_old_rows(timestamp: int) -> None:
    """Delete what is older than it is kept, table by table."""
    now = clocks.database_now()
    today = now.astimezone(dt.UTC).date()
    for rule in RULES:
        if deleted := delete_old(rule, now=now):
            log.info("old_rows_deleted", table=rule.model._meta.db_table, rows=deleted)
    delete_ended_jobs(now=now)
    ensure_months(today, today + MONTHS_AHEAD)
    # The next night does it if somebody reads the audit log just then.
    shorten_audit_log(today=today)
