"""Have the logs of Perforce servers read, and drop what is no longer kept."""

from __future__ import annotations

import datetime as dt

from django.conf import settings
from django.db import transaction
from procrastinate.contrib.django import app

from provisioner.engine.deferring import defer_once
from provisioner.engine.queues import SERVER_HOST_PREFIX
from provisioner.engine.workers import alive_workers, unserved
from provisioner.lib import clocks
from provisioner.server_log.following import follow
from provisioner.server_log.models import LockSum, LogSum, ServerLog, Span
from provisioner.server_log.partitions import drop_days_before, ensure_days

# Its slot is shared with what else is read on the host.
FOLLOWED_FOR_SECONDS = 40.0
# Names of clients come and go: sums of all of them would grow without end.
SUMS_KEPT = dt.timedelta(days=400)


@app.periodic(cron="* * * * *")
@app.task(name="sweep_server_logs", queue="sweeps", queueing_lock="server_logs")
def sweep_server_logs(timestamp: int) -> None:
    """Have the workers on the hosts of Perforce servers read on in their logs."""
    workers = alive_workers()
    for log in ServerLog.objects.filter(is_followed=True).select_related("server"):
        queue = f"{SERVER_HOST_PREFIX}{log.server.name}"
        if not unserved([queue], workers):
            lock = f"follow_server_log.{log.pk}"
            job = follow_server_log.configure(queue=queue, queueing_lock=lock)
            defer_once(job, log_id=log.pk)


@app.task(name="follow_server_log")
def follow_server_log(log_id: int) -> None:
    """Read on in the log of this host's Perforce server."""
    log = ServerLog.objects.filter(pk=log_id, is_followed=True).first()
    if log is not None:
        follow(log, for_seconds=FOLLOWED_FOR_SECONDS)


@app.periodic(cron="23 0 * * *")
@app.task(name="sweep_log_days", queue="sweeps", queueing_lock="log_days")
def sweep_log_days(timestamp: int) -> None:
    """Drop days that are no longer kept, their sums by hour, and old sums by day."""
    today = clocks.database_now().date()
    oldest = today - dt.timedelta(days=settings.SERVER_LOG_DAYS)
    drop_days_before(oldest)
    for model in (LogSum, LockSum):
        model.objects.filter(span=Span.HOUR, at__date__lt=oldest).delete()
        model.objects.filter(at__date__lt=today - SUMS_KEPT).delete()
    if ServerLog.objects.exists():
        with transaction.atomic():
            ensure_days([today, today + dt.timedelta(days=1)])
