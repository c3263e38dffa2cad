"""Probe servers every 15 minutes, count processes every five, and mail reports."""

from __future__ import annotations

import datetime as dt

from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob

from provisioner.engine.deferring import cancel, defer_once
from provisioner.engine.loads import maintenance_of
from provisioner.engine.queues import PERFORCE
from provisioner.engine.workers import alive_workers, unserved
from provisioner.lib import clocks
from provisioner.probes import mails
from provisioner.probes.actions import SEND_REPORT_MAIL, queue_report_mail
from provisioner.probes.models import (
    KEPT_FOR,
    ProbeRun,
    ProbeWeek,
    ProcessCount,
    ReportMail,
)
from provisioner.probes.queries import keep_weeks, plan_of, plans, running_now
from provisioner.probes.reading import run_probe, save_gap
from provisioner.sites.models import PerforceServer, Site

# A job that waited longer than this would fall into the next round.
LATE_AFTER = dt.timedelta(minutes=10)


@app.periodic(cron="*/15 * * * *")
@app.task(name="sweep_probes", queue="sweeps", queueing_lock="sweep_probes")
def sweep_probes(timestamp: int) -> None:
    """Queue a round for each server at a site, on a host where its developers work.

    Nothing is run at a server that is paused or in maintenance. Why there is no round
    is saved.
    """
    now, workers = clocks.database_now(), alive_workers()
    for plan in plans():
        sites = Site.objects.filter(perforce_server=plan.server).order_by("name")
        if not plan.is_on or not sites:
            continue
        served = [site for site in sites if not unserved([site.host_queue], workers)]
        budget = getattr(plan.server, "slot_budget", None)
        if budget is not None and budget.is_paused:
            save_gap(plan.server, at=now, reason=f"Paused: {budget.paused_reason}")
        elif maintenance := maintenance_of(plan.server, now=now):
            save_gap(plan.server, at=now, reason=maintenance)
        elif not served:
            reason = f"No host worker is running at {sites[0].name}."
            save_gap(plan.server, at=now, reason=reason)
        else:
            queue = served[0].host_queue
            _withdraw_elsewhere(plan.server, queue)
            # One after the other: rounds at once would time each other.
            lock = f"probe.{plan.server.pk}"
            job = probe_server.configure(queue=queue, queueing_lock=lock, lock=lock)
            due = int(now.timestamp())
            if not defer_once(job, server_id=plan.server.pk, due=due):
                reason = f"All host workers at {served[0].name} were busy."
                save_gap(plan.server, at=now, reason=reason)


def _withdraw_elsewhere(server: PerforceServer, queue: str) -> None:
    """Cancel a round that waits for other hosts: one without a worker holds up all."""
    waiting = ProcrastinateJob.objects.filter(
        task_name="probe_server", status="todo", args__server_id=server.pk
    )
    for job_id in waiting.exclude(queue_name=queue).values_list("pk", flat=True):
        cancel(job_id)


@app.task(name="probe_server")
def probe_server(server_id: int, due: int) -> None:
    """Run a server's commands once, from this host."""
    server = PerforceServer.objects.filter(pk=server_id).first()
    if server is None:
        return
    due_at = dt.datetime.fromtimestamp(due, tz=dt.UTC)
    if clocks.database_now() - due_at > LATE_AFTER:
        since = ProbeRun.objects.filter(server=server, at__gte=due_at)
        # Another host may have run the round.
        if not since.filter(at__lt=due_at + LATE_AFTER).exists():
            save_gap(server, at=due_at, reason="The host worker was busy.")
        return
    run_probe(plan_of(server))


@app.periodic(cron="*/5 * * * *")
@app.task(name="sweep_process_counts", queue="sweeps", queueing_lock="process_counts")
def sweep_process_counts(timestamp: int) -> None:
    """Save how many commands run at each server, by its reading of this minute."""
    now = clocks.database_now()
    ProcessCount.objects.bulk_create(
        ProcessCount(server_id=server_id, at=now, processes=running)
        for server_id, running in running_now(at=now).items()
    )


@app.periodic(cron="27 * * * *")
@app.task(name="sweep_report_mails", queue="sweeps", queueing_lock="report_mails")
def sweep_report_mails(timestamp: int) -> None:
    """Try mails with reports again that wait for the mail server."""
    waiting = ReportMail.objects.filter(claimed_at=None, trouble="")
    for mail_id in waiting.values_list("pk", flat=True):
        queue_report_mail(mail_id)


@app.task(name=SEND_REPORT_MAIL, queue=PERFORCE)
def send_report_mail(mail_id: int) -> None:
    """Send a mail with a report, unless that was done."""
    waiting = ReportMail.objects.filter(claimed_at=None, trouble="", pk=mail_id)
    mail = waiting.select_related("server", "person", "requested_by").first()
    if mail is not None:
        mails.send(mail)


@app.periodic(cron="37 3 * * *")
@app.task(name="sweep_old_probes", queue="sweeps", queueing_lock="sweep_old_probes")
def sweep_old_probes(timestamp: int) -> None:
    """Save the weeks that are over, and delete what is older than 13 months."""
    now = clocks.database_now()
    keep_weeks(now=now)
    oldest = now - KEPT_FOR
    ProbeWeek.objects.filter(begin__lt=oldest.date()).delete()
    ProbeRun.objects.filter(at__lt=oldest).delete()
    ReportMail.objects.filter(requested_at__lt=oldest).delete()
    ProcessCount.objects.filter(at__lt=oldest).delete()
