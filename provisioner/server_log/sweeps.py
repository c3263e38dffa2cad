"""Have logs of Perforce servers read, and drop what is no longer kept."""

from __future__ import annotations

import datetime as dt

from django.conf import settings
from django.db import transaction
from procrastinate.contrib.django import app

from provisioner.engine.deferring import defer_once
from provisioner.engine.queues import PERFORCE
from provisioner.engine.workers import alive_workers, unserved
from provisioner.lib import clocks
from provisioner.server_log.actions import READ_UPLOAD, queue_upload
from provisioner.server_log.following import follow
from provisioner.server_log.models import (
    LockSum,
    LogSum,
    LogUpload,
    RepeatedCommand,
    SeenCheckpoint,
    ServerLog,
    Span,
)
from provisioner.server_log.partitions import (
    drop_days_before,
    ensure_days,
    look_at_sums,
)
from provisioner.server_log.polling import count_repeats
from provisioner.server_log.queries import queue_of
from provisioner.server_log.tailing import tail
from provisioner.server_log.uploads import forget_broken_uploads, read_upload

# Its slot is shared with what else is read on the host.
FOLLOWED_FOR_SECONDS = 40.0
# Names of clients come and go: sums of all of them would grow without end.
SUMS_KEPT = dt.timedelta(days=400)


@app.periodic(cron="* * * * *")
@app.task(name="sweep_server_logs", queue="sweeps", queueing_lock="server_logs")
def sweep_server_logs(timestamp: int) -> None:
    """Have workers read on in logs, and read those that were uploaded.

    Each log by the worker on its server's host, or by any that reaches the server.
    """
    workers = alive_workers()
    for log in ServerLog.objects.filter(is_followed=True).select_related("server"):
        queue = queue_of(log)
        if not unserved([queue], workers):
            lock = f"follow_server_log.{log.pk}"
            job = follow_server_log.configure(queue=queue, queueing_lock=lock)
            defer_once(job, log_id=log.pk)
    waiting = LogUpload.objects.filter(state=LogUpload.State.WAITING)
    for upload_id in waiting.values_list("pk", flat=True):
        queue_upload(upload_id)


@app.task(name="follow_server_log")
def follow_server_log(log_id: int) -> None:
    """Read on in the log of a Perforce server, this host's or from afar.

    Not while somebody stores in it: that takes minutes for an upload, and another job
    comes each minute.
    """
    free = ServerLog.objects.select_for_update(
        no_key=True, skip_locked=True, of=("self",)
    )
    with transaction.atomic():
        followed = free.filter(pk=log_id, is_followed=True)
        log = followed.select_related("server").first()
    if log is None:
        return
    read_on = follow if log.way == ServerLog.Way.HOST else tail
    read_on(log, for_seconds=FOLLOWED_FOR_SECONDS)


@app.task(name=READ_UPLOAD, queue=PERFORCE)
def read_log_upload(upload_id: int) -> None:
    """Read a log that was uploaded, unless that is done or being done."""
    read_upload(upload_id)


@app.periodic(cron="7,37 * * * *")
@app.task(name="sweep_repeats", queue="sweeps", queueing_lock="repeats")
def sweep_repeats(timestamp: int) -> None:
    """Count which commands were repeated all through an hour."""
    count_repeats()


@app.periodic(cron="23 0 * * *")
@app.task(name="sweep_log_days", queue="sweeps", queueing_lock="log_days")
def sweep_log_days(timestamp: int) -> None:
    """Drop days that are no longer kept, their sums by hour, and old sums by day.

    Sums by hour of commands are few, and compared for longer.
    """
    today = clocks.database_now().date()
    oldest = today - dt.timedelta(days=settings.SERVER_LOG_DAYS)
    for sums in (LogSum.objects.exclude(by=LogSum.By.COMMAND), LockSum.objects.all()):
        sums.filter(span=Span.HOUR, at__date__lt=oldest).delete()
    # A week goes with all its days.
    monday = today - SUMS_KEPT
    monday -= dt.timedelta(days=monday.weekday())
    for model in (LogSum, LockSum):
        model.objects.filter(at__date__lt=monday).delete()
    RepeatedCommand.objects.filter(at__date__lt=oldest).delete()
    SeenCheckpoint.objects.filter(seen_at__date__lt=today - SUMS_KEPT).delete()
    if ServerLog.objects.exists():
        with transaction.atomic():
            ensure_days([today, today + dt.timedelta(days=1)])
    look_at_sums()
    forget_broken_uploads()
    # The next night does it if somebody reads a whole file now.
    drop_days_before(oldest)
