"""Reading rescues on hosts, and the deletion of abandoned reads."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import structlog
from django.db import IntegrityError, connection
from django.db.models.functions import Now
from procrastinate.contrib.django import app

from provisioner.gateways.errors import GatewayError, Refused
from provisioner.gateways.hosts.rescued_files import read_rescued
from provisioner.gateways.hosts.run_as import run_as
from provisioner.rescues.models import RescuePiece, RescueRead
from provisioner.rescues.reading import READ

log = structlog.get_logger(__name__)

# A reader that asks for nothing in so long was killed, or its client stands still.
FORGOTTEN_AFTER = dt.timedelta(hours=1)
# Space of pieces that were sent is used again at once; an hour of vacuum later a
# gigabyte of them would lie there.
RECLAIM = f"VACUUM (SKIP_LOCKED, INDEX_CLEANUP ON) {RescuePiece._meta.db_table}"


class _NobodyReads(Exception):
    """The reader has gone."""


@app.task(name=READ)
def read_rescue(read_id: str, start: int, length: int) -> None:
    """Store a window of a rescued file in the database. Safe to repeat."""
    read = (
        RescueRead.objects.select_related("rescue__workspace")
        .filter(pk=read_id, problem="")
        .first()
    )
    if read is None:
        return
    _reclaim()
    try:
        run_as(
            read.rescue.workspace,
            read_rescued,
            Path(read.rescue.directory),
            read.file,
            start=start,
            length=length,
            on_size=lambda size: _keep_size(read, size),
            on_piece=lambda offset, data: _keep(read, offset, data),
        )
    except _NobodyReads:
        log.info("rescue_read_no_more", read_id=read_id)
    except GatewayError as error:
        log.warning("rescue_read_failed", read_id=read_id, **error.log_context())
        RescueRead.objects.filter(pk=read_id).update(
            problem=error.remote_code[:60] or "rescue_unreadable",
            problem_message=error.sentence,
        )


def _keep_size(read: RescueRead, size: int) -> None:
    """Raises: _NobodyReads; Refused if the file's size has changed."""
    if read.size_bytes is not None and read.size_bytes != size:
        raise Refused(
            f"{read.file} had {read.size_bytes:,} bytes when the download began and "
            f"has {size:,} now.",
            system="host",
            operation="read rescue",
            remote_code="rescue_changed",
        )
    if not RescueRead.objects.filter(pk=read.pk).update(size_bytes=size):
        raise _NobodyReads


def _keep(read: RescueRead, offset: int, data: bytes) -> None:
    """Raises: _NobodyReads."""
    piece = RescuePiece(read=read, offset=offset, data=data)
    try:
        RescuePiece.objects.bulk_create([piece], ignore_conflicts=True)
    except IntegrityError as error:
        raise _NobodyReads from error


def _reclaim() -> None:
    if not connection.in_atomic_block:
        with connection.cursor() as cursor:
            cursor.execute(RECLAIM)


@app.periodic(cron="*/10 * * * *")
@app.task(name="sweep_rescue_reads", queue="sweeps", queueing_lock="sweep_rescue_reads")
def sweep_rescue_reads(timestamp: int) -> None:
    """Remove downloads whose readers have gone."""
    forgotten = RescueRead.objects.filter(asked_at__lt=Now() - FORGOTTEN_AFTER)
    forgotten.forget()
