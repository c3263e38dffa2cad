"""Delete old rows in batches: memory, locks and transactions stay small."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import DateTimeField, ForeignKey, QuerySet

from provisioner.audit_log.actions import record_event
from provisioner.audit_log.partitions import drop_months_before, month_of
from provisioner.engine.models import Operation, Step
from provisioner.gateways.fence import require_leave
from provisioner.retention.rules import Rule

BATCH = 1000
# Those that succeeded are deleted at once. Their events go with them.
_OLD_JOBS = """
    DELETE FROM procrastinate_jobs WHERE id IN (
        SELECT id FROM procrastinate_jobs AS job
        WHERE status IN ('failed', 'cancelled', 'aborted')
            AND (SELECT max(at) FROM procrastinate_events WHERE job_id = job.id) < %s
        ORDER BY id LIMIT %s)
"""


def delete_old(rule: Rule, *, now: dt.datetime) -> int:
    """Delete what a rule lets go; return how many rows. Nothing if it keeps all.

    Each batch is a transaction of its own, and needs permission. Safe to repeat.
    """
    days = getattr(settings, rule.setting)
    if not days:
        return 0
    return sum(
        _delete(rule, keys) for keys in _batches(rule, now - dt.timedelta(days=days))
    )


def _batches(rule: Rule, before: dt.datetime) -> Iterator[list[int]]:
    """Yield the keys of all old rows, in the order of their time.

    One that stays is read once, however many batches come after it.
    """
    first = rule.model._meta.get_field(rule.since.split("__", maxsplit=1)[0])
    limit = before if isinstance(first, (DateTimeField, ForeignKey)) else before.date()
    rows: QuerySet[Any] = rule.model._base_manager.filter(
        **{f"{rule.since}__lt": limit}
    ).order_by(rule.since, "pk")
    after: tuple[Any, int] | None = None
    while True:
        require_leave()
        batch = list(_beyond(rows, rule, after).values_list(rule.since, "pk")[:BATCH])
        if not batch:
            return
        yield [key for _, key in batch]
        after = batch[-1]


def _beyond(
    rows: QuerySet[Any], rule: Rule, after: tuple[Any, int] | None
) -> QuerySet[Any]:
    if after is None:
        return rows
    time, key = after
    return rows.filter(**{f"{rule.since}__gte": time}).exclude(
        **{rule.since: time, "pk__lte": key}
    )


def _delete(rule: Rule, keys: list[int]) -> int:
    require_leave()
    with transaction.atomic():
        if rule.parts is Step:
            return _delete_operations(rule, keys)
        deleted, _ = rule.deletable(keys).delete()
        return deleted


def _delete_operations(rule: Rule, keys: list[int]) -> int:
    """Delete the steps of operations, their logs, and the operations themselves.

    An operation that something refers to stays, as a line without steps.
    """
    old = Operation.objects.filter(rule.only, pk__in=keys)
    steps = Step.objects.filter(operation__in=list(old.values_list("pk", flat=True)))
    logs = [step.log_path for step in steps.select_related("operation")]
    deleted, _ = steps.delete()
    gone, _ = rule.deletable(keys).delete()
    transaction.on_commit(partial(_unlink, logs))
    return deleted + gone


def _unlink(paths: list[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def delete_ended_jobs(*, now: dt.datetime) -> None:
    """Delete jobs that failed, or were canceled or aborted, with the rest of history.

    A step or sweep whose job failed has recorded why where people look for it.
    """
    if not settings.HISTORY_DAYS:
        return
    before = now - dt.timedelta(days=settings.HISTORY_DAYS)
    with connection.cursor() as cursor:
        while True:
            require_leave()
            cursor.execute(_OLD_JOBS, [before, BATCH])
            if cursor.rowcount < BATCH:
                return


def shorten_audit_log(*, today: dt.date) -> None:
    """Drop the months of the audit log that are no longer kept, and record that."""
    if not settings.AUDIT_LOG_DAYS:
        return
    oldest = today - dt.timedelta(days=settings.AUDIT_LOG_DAYS)
    with transaction.atomic():
        if deleted := drop_months_before(oldest):
            since = month_of(oldest).begin
            record_event(
                None,
                kind="audit_log_shortened",
                message=f"Events from before {since:%d %b %Y} were deleted, as "
                f"AUDIT_LOG_DAYS says: {deleted:,}.",
                data={"events": deleted, "before": f"{since}"},
            )
