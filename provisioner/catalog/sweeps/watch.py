"""Watch submitted changes: one cheap request per server, however many templates.

A poll asks only for the number of the newest submitted change, unless that is new. New
changes are fetched in order, in batches; each is matched to the views of all templates
of the server, and recorded if it touches one. A batch is one transaction with the
number that it reaches: after a crash the same batch is fetched again, and nothing
counts twice. A template that is new to the watch is looked up alone, back to its newest
snapshot.
"""

from __future__ import annotations

import datetime as dt
import random

import structlog
from django.db import transaction
from django.db.models import OuterRef, Subquery
from procrastinate.contrib.django import app

from provisioner.catalog.models import (
    ServerWatch,
    Snapshot,
    SubmittedChange,
    Template,
    TemplateWatch,
)
from provisioner.catalog.queries import reference_snapshot
from provisioner.engine.deferring import defer_once
from provisioner.engine.queues import PERFORCE
from provisioner.gateways import registry
from provisioner.gateways.errors import GatewayError
from provisioner.gateways.perforce.depot_view import DepotView
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.specs import parse_client_spec, split_view_line
from provisioner.gateways.perforce.types import SubmittedBatch
from provisioner.lib import clocks
from provisioner.sites.models import PerforceServer

log = structlog.get_logger(__name__)

CHANGES_AT_A_TIME = 200
BATCHES_AT_A_TIME = 20
LONGEST_PAUSE_SECONDS = 1800
JITTER = 0.2


@app.periodic(cron="* * * * * */5")
@app.task(name="sweep_watch", queue="sweeps", queueing_lock="sweep_watch")
def sweep_watch(timestamp: int) -> None:
    """Poll every server that is due and that a template needs."""
    now = clocks.database_now()
    needed = (
        Snapshot.objects.there()
        .filter(template__archived_at=None)
        .values("template__site__perforce_server")
    )
    servers = PerforceServer.objects.filter(pk__in=needed).exclude(
        slot_budget__paused_at__isnull=False
    )
    for server in servers.select_related("watch"):
        watch = getattr(server, "watch", None)
        if watch is not None and (
            watch.is_paused or (watch.next_poll_at and watch.next_poll_at > now)
        ):
            continue
        name = f"watch_server.{server.pk}"
        job = watch_server.configure(queueing_lock=name, lock=name)
        defer_once(job, server_id=server.pk)


@app.task(name="watch_server", queue=PERFORCE)
def watch_server(server_id: int) -> None:
    """Poll a server, and schedule its next poll."""
    server = PerforceServer.objects.filter(pk=server_id).first()
    if server is None:
        return
    watch, _ = ServerWatch.objects.get_or_create(server=server)
    if not watch.is_paused:
        poll(watch)


def poll(watch: ServerWatch) -> None:
    """Poll a server now; a failure is recorded on its watch and retried later."""
    row = ServerWatch.objects.filter(pk=watch.pk)
    try:
        is_done = catch_up(watch)
    except GatewayError as error:
        failures = watch.failures + 1
        pause = pause_seconds(watch.interval_seconds, failures=failures)
        log.warning(
            "server_not_polled", server=watch.server.name, **error.log_context()
        )
        row.update(
            failures=failures,
            last_error=error.sentence,
            next_poll_at=clocks.database_now() + dt.timedelta(seconds=pause),
        )
        return
    now = clocks.database_now()
    pause = pause_seconds(watch.interval_seconds, failures=0) if is_done else 0.0
    row.update(
        failures=0,
        last_error="",
        polled_at=now,
        next_poll_at=now + dt.timedelta(seconds=pause),
    )


def pause_seconds(interval: int, *, failures: int) -> float:
    """Return how long to leave a server alone: the interval, doubled by each failure.

    A random fifth more or less, so that polls spread out.
    """
    longest = max(LONGEST_PAUSE_SECONDS, interval)
    pause = float(min(interval * 2 ** min(failures, 20), longest))
    return pause * random.uniform(1 - JITTER, 1 + JITTER)


def catch_up(watch: ServerWatch) -> bool:
    """Fetch and record what is new; return whether nothing is left for now.

    Raises: GatewayError.
    """
    perforce = registry.perforce(watch.server)
    newest = perforce.changes.latest(())
    _begin(watch, newest=newest)
    for _ in range(BATCHES_AT_A_TIME):
        reached = ServerWatch.objects.values_list("newest_change", flat=True).get(
            pk=watch.pk
        )
        assert reached is not None
        if reached >= newest:
            forget_old(watch)
            return _look_back(watch, perforce)
        batch = perforce.changes.submitted_after(reached, at_most=CHANGES_AT_A_TIME)
        if not batch.changes:  # the newest one is hidden from us
            _reach(watch, reached=reached, to=newest)
            continue
        if not record_batch(watch, batch, reached=reached):
            return False
    return False


def _begin(watch: ServerWatch, *, newest: int) -> None:
    """Decide from which change on changes are matched, and to which views.

    A server whose newest change is older than what was seen was restored from a backup:
    what was seen beyond is gone.
    """
    through = SubmittedChange.templates.through
    with transaction.atomic():
        locked = ServerWatch.objects.select_for_update().get(pk=watch.pk)
        seen = locked.newest_change
        if seen is None or newest < seen:
            SubmittedChange.objects.filter(
                server=watch.server_id, number__gt=newest
            ).delete()
            ServerWatch.objects.filter(pk=watch.pk).update(newest_change=newest)
            seen = newest
        for template, view in templates_of(watch.server_id):
            known = TemplateWatch.objects.filter(
                template=template, server=watch.server_id, view=view
            ).first()
            if known is None:
                through.objects.filter(template=template).delete()
                TemplateWatch.objects.update_or_create(
                    template=template,
                    defaults={
                        "server_id": watch.server_id,
                        "view": view,
                        "since": seen,
                    },
                )


def templates_of(server_id: int) -> list[tuple[Template, str]]:
    """Return the watched templates of a server, with their views.

    They were built at least once and are not archived. The view of a stream is that of
    the newest snapshot's pin.
    """
    found = []
    followed = Template.objects.filter(archived_at=None)
    for template in followed.filter(site__perforce_server=server_id):
        snapshot = reference_snapshot(template)
        if snapshot is None:
            continue
        lines = template.view_lines or parse_client_spec(snapshot.client_spec).view
        found.append((template, "\n".join(lines)))
    return found


def record_batch(watch: ServerWatch, batch: SubmittedBatch, *, reached: int) -> bool:
    """Record what touches a template, and how far we are, in one transaction.

    False if somebody else was faster: then nothing is written.
    """
    with transaction.atomic():
        locked = ServerWatch.objects.select_for_update().get(pk=watch.pk)
        if locked.newest_change != reached:
            return False
        _record(
            batch,
            server_id=watch.server_id,
            watches=list(TemplateWatch.objects.filter(server=watch.server_id)),
        )
        ServerWatch.objects.filter(pk=watch.pk).update(
            newest_change=max(change.number for change in batch.changes)
        )
    return True


def _reach(watch: ServerWatch, *, reached: int, to: int) -> None:
    ServerWatch.objects.filter(pk=watch.pk, newest_change=reached).update(
        newest_change=to
    )


def _record(
    batch: SubmittedBatch, *, server_id: int, watches: list[TemplateWatch]
) -> None:
    """Write the changes that touch one of these templates; safe to repeat."""
    views = [
        (
            watch.template_id,
            DepotView(
                watch.view.splitlines(), is_case_sensitive=batch.is_case_sensitive
            ),
        )
        for watch in watches
    ]
    touched = {
        change.number: pks
        for change in batch.changes
        if (pks := [pk for pk, view in views if view.touches(change.paths)])
    }
    if not touched:
        return
    now = clocks.database_now()
    SubmittedChange.objects.bulk_create(
        [
            SubmittedChange(
                server_id=server_id,
                number=change.number,
                user=change.user[:1024],
                submitted_at=change.submitted_at,
                title=change.title[:200],
                recorded_at=now,
            )
            for change in batch.changes
            if change.number in touched
        ],
        ignore_conflicts=True,
    )
    rows = SubmittedChange.objects.filter(server=server_id, number__in=touched)
    through = SubmittedChange.templates.through
    through.objects.bulk_create(
        [
            through(submittedchange_id=row_pk, template_id=template_pk)
            for number, row_pk in rows.values_list("number", "pk")
            for template_pk in touched[number]
        ],
        ignore_conflicts=True,
    )


def forget_old(watch: ServerWatch) -> None:
    """Delete changes that every published snapshot of a template has. Repeatable."""
    through = SubmittedChange.templates.through
    oldest = Snapshot.objects.there().filter(template=OuterRef("template"))
    for known in TemplateWatch.objects.filter(server=watch.server_id).annotate(
        oldest=Subquery(oldest.order_by("change").values("change")[:1])
    ):
        if known.oldest is None or known.oldest <= known.since:
            continue
        with transaction.atomic():
            through.objects.filter(
                template=known.template_id, submittedchange__number__lte=known.oldest
            ).delete()
            TemplateWatch.objects.filter(pk=known.pk, since=known.since).update(
                since=known.oldest
            )
    SubmittedChange.objects.filter(server=watch.server_id, templates=None).delete()


def _look_back(watch: ServerWatch, perforce: PerforceGateway) -> bool:
    """Find changes between the newest snapshots and the start of watching.

    Newest first, so what is known never has a gap. Return whether all were found.
    """
    rounds = 0
    for known in TemplateWatch.objects.filter(server=watch.server_id).select_related(
        "template"
    ):
        snapshot = reference_snapshot(known.template)
        while snapshot is not None and known.since > snapshot.change:
            if rounds == BATCHES_AT_A_TIME:
                return False
            rounds += 1
            sides = [split_view_line(line) for line in known.view.splitlines()]
            batch = perforce.changes.submitted_under(
                tuple(side.depot for side in sides if side.flag != "-"),
                above=snapshot.change,
                upto=known.since,
                at_most=CHANGES_AT_A_TIME,
            )
            if not _record_back(known, batch, base=snapshot.change):
                return False
    return True


def _record_back(known: TemplateWatch, batch: SubmittedBatch, *, base: int) -> bool:
    """Record an older batch of changes of a template, and how far back it reaches."""
    is_last = len(batch.changes) < CHANGES_AT_A_TIME
    since = base if is_last else min(c.number for c in batch.changes) - 1
    with transaction.atomic():
        locked = TemplateWatch.objects.select_for_update().filter(
            pk=known.pk, since=known.since, view=known.view
        )
        if not locked.exists():
            return False
        _record(batch, server_id=known.server_id, watches=[known])
        locked.update(since=since)
    known.since = since
    return True
