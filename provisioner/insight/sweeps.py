"""Read what Perforce servers do and how they are set up; end processes."""

from __future__ import annotations

import datetime as dt

import structlog
from procrastinate.contrib.django import app

from provisioner.accounts.system import system_user
from provisioner.engine import slots
from provisioner.engine.deferring import defer_once
from provisioner.engine.loads import Load
from provisioner.engine.queues import LOADS, PERFORCE, SERVER_HOST_PREFIX
from provisioner.engine.workers import alive_workers, unserved
from provisioner.gateways import registry
from provisioner.gateways.errors import (
    GatewayError,
    NotFound,
    PermanentGatewayError,
)
from provisioner.insight import mails
from provisioner.insight.actions import (
    END_PROCESS,
    READ_CONFIGURATION,
    SEND_PROGRAM_MAIL,
    orphans_end,
    queue_configuration,
    queue_ending,
    queue_program_mail,
)
from provisioner.insight.clients import read_clients, read_views, why_not_now
from provisioner.insight.configuration import read_configuration, read_host
from provisioner.insight.load import load_of, read_load
from provisioner.insight.models import (
    OrphanRule,
    Process,
    ProcessEnding,
    ProgramMail,
    ProgramUse,
)
from provisioner.insight.orphans import find_gone_hosts
from provisioner.insight.programs import LOG_TIMES_AT_MOST, record_programs_of_log
from provisioner.insight.queries import (
    servers_to_list,
    servers_to_read,
    servers_with_clients,
    servers_with_orphan_rules,
)
from provisioner.insight.reading import (
    ANSWER_WITHIN_SECONDS,
    is_the_one,
    read_processes,
)
from provisioner.insight.states import settle
from provisioner.lib import clocks
from provisioner.server_log.checkpoints import record_seen_checkpoint
from provisioner.server_log.models import ServerLog
from provisioner.sites.models import PerforceServer

log = structlog.get_logger(__name__)

GONE = "It no longer runs."
LOOKED_AGAIN_AFTER_SECONDS = 5
# A process ends at its next own check, db.monitor.interval later: half a minute, or
# what somebody has set, up to 15 minutes.
GIVEN_UP_AFTER = dt.timedelta(minutes=20)
# By themselves, of one server in five minutes: a rule that is wrong is noticed in time.
ORPHANS_AT_MOST = 20
# Each request is in the audit log.
TRIED_AGAIN_AFTER = dt.timedelta(days=1)
READ_LATELY = dt.timedelta(minutes=3)
PROGRAMS_KEPT = dt.timedelta(days=365)
CONFIGURATION_EVERY = dt.timedelta(hours=23)
CLIENTS_EVERY = dt.timedelta(hours=23)


@app.periodic(cron="* * * * *")
@app.task(name="sweep_processes", queue="sweeps", queueing_lock="sweep_processes")
def sweep_processes(timestamp: int) -> None:
    """Ask workers to read each server's processes, and to end what was requested."""
    for server_id in PerforceServer.objects.values_list("pk", flat=True):
        lock = f"read_processes.{server_id}"
        defer_once(read_server.configure(queueing_lock=lock), server_id=server_id)
    for ending in ProcessEnding.objects.filter(state=ProcessEnding.State.REQUESTED):
        queue_ending(ending)


@app.task(name="read_processes", queue=PERFORCE)
def read_server(server_id: int) -> None:
    """Read a server's processes once; without an answer the last ones stay."""
    server = PerforceServer.objects.filter(pk=server_id).first()
    if server is None:
        return
    try:
        processes = read_processes(server)
    except GatewayError as error:
        log.warning("processes_not_read", server=server.name, **error.log_context())
        return
    # While nothing of ours runs there, nobody else looks for a checkpoint.
    load = load_of(processes, locked=(), our_user=server.p4user)
    if load.maintenance:
        _observe(server, load)
    find_gone_hosts(server)
    _read_views(server)


def _read_views(server: PerforceServer) -> None:
    """Read some views of clients that are in use, unless others wait."""
    if not servers_with_clients().filter(pk=server.pk).exists():
        return
    try:
        if not why_not_now(server):
            read_views(server)
    except GatewayError as error:
        log.warning("client_views_not_read", server=server.name, **error.log_context())


@app.periodic(cron="53 * * * *")
@app.task(name="sweep_clients", queue="sweeps", queueing_lock="sweep_clients")
def sweep_clients(timestamp: int) -> None:
    """Have each server's clients listed once a day; a new server's within the hour."""
    for server in servers_to_list(older_than=CLIENTS_EVERY):
        lock = f"read_clients.{server.pk}"
        job = read_server_clients.configure(queueing_lock=lock)
        defer_once(job, server_id=server.pk)


@app.task(name="read_server_clients", queue=PERFORCE)
def read_server_clients(server_id: int) -> None:
    """List a server's clients, unless it is paused, in maintenance or others wait.

    Without an answer the last listing stays; it is tried again within the hour.
    """
    server = servers_with_clients().filter(pk=server_id).first()
    if server is None:
        return
    if reason := why_not_now(server):
        log.info("clients_not_listed_now", server=server.name, reason=reason)
        return
    try:
        read_clients(server)
    except GatewayError as error:
        log.warning("clients_not_listed", server=server.name, **error.log_context())


@app.periodic(cron="*/5 * * * *")
@app.task(name="sweep_orphans", queue="sweeps", queueing_lock="sweep_orphans")
def sweep_orphans(timestamp: int) -> None:
    """End orphans where that is switched on, by what was read lately."""
    rules = OrphanRule.objects.filter(
        is_automatic=True,
        server__in=servers_with_orphan_rules(),
        server__process_reading__read_at__gte=clocks.database_now() - READ_LATELY,
        server__process_reading__trouble="",
    )
    for rule in rules.select_related("server"):
        orphans_end(
            by=system_user(),
            server=rule.server,
            at_most=ORPHANS_AT_MOST,
            not_again_for=TRIED_AGAIN_AFTER,
        )


@app.periodic(cron="17 * * * *")
@app.task(name="sweep_programs", queue="sweeps", queueing_lock="sweep_programs")
def sweep_programs(timestamp: int) -> None:
    """Note the programs in what was read of logs; try mails that wait again."""
    for server_log in ServerLog.objects.select_related("server"):
        for _ in range(LOG_TIMES_AT_MOST):
            if not record_programs_of_log(server_log):
                break
    waiting = ProgramMail.objects.filter(claimed_at=None, trouble="")
    for mail_id in waiting.values_list("pk", flat=True):
        queue_program_mail(mail_id)


@app.task(name=SEND_PROGRAM_MAIL, queue=PERFORCE)
def send_program_mail(mail_id: int) -> None:
    """Send a mail about old programs, unless that was done."""
    waiting = ProgramMail.objects.filter(claimed_at=None, trouble="", pk=mail_id)
    mail = waiting.select_related("server", "requested_by").first()
    if mail is not None:
        mails.send(mail)


@app.periodic(cron="* * * * * */15")
@app.task(name="sweep_loads", queue=LOADS, queueing_lock="sweep_loads")
def sweep_loads(timestamp: int) -> None:
    """Have one worker read what others do at each server that we use now."""
    for server_id in slots.servers_in_use():
        lock = f"read_load.{server_id}"
        job = read_server_load.configure(queueing_lock=lock, lock=lock)
        defer_once(job, server_id=server_id)


@app.task(name="read_server_load", queue=LOADS)
def read_server_load(server_id: int) -> None:
    """Read what others do at a server; without an answer we go on as before."""
    server = PerforceServer.objects.filter(pk=server_id).first()
    if server is None:
        return
    try:
        load = read_load(server)
    except GatewayError as error:
        log.warning("load_not_read", server=server.name, **error.log_context())
        return
    _observe(server, load)


def _observe(server: PerforceServer, load: Load) -> None:
    slots.observe_others(server.pk, load)
    if load.maintenance:
        record_seen_checkpoint(
            server.pk, what=load.maintenance, now=clocks.database_now()
        )


@app.periodic(cron="41 * * * *")
@app.task(name="sweep_configurations", queue="sweeps", queueing_lock="configurations")
def sweep_configurations(timestamp: int) -> None:
    """Have each server's configuration read once a day; forget old uses of programs.

    A new server's within the hour, and so is one that could not be read.
    """
    forgotten = clocks.database_now() - PROGRAMS_KEPT
    ProgramUse.objects.filter(last_seen_at__lt=forgotten).delete()
    for server in servers_to_read(older_than=CONFIGURATION_EVERY):
        queue_configuration(server)


@app.task(name=READ_CONFIGURATION, queue=PERFORCE)
def read_server_configuration(server_id: int) -> None:
    """Read a server's configuration once; without an answer the last one stays.

    Then that of its host, where a worker runs on it.
    """
    server = PerforceServer.objects.filter(pk=server_id).first()
    if server is None:
        return
    try:
        read_configuration(server)
    except GatewayError as error:
        log.warning("configuration_not_read", server=server.name, **error.log_context())
        return
    queue = f"{SERVER_HOST_PREFIX}{server.name}"
    if not unserved([queue], alive_workers()):
        lock = f"read_server_host.{server.pk}"
        job = read_server_host.configure(queue=queue, queueing_lock=lock)
        defer_once(job, server_id=server.pk)


@app.task(name="read_server_host")
def read_server_host(server_id: int) -> None:
    """Read the memory and the mounts of this host, which is the server's."""
    server = PerforceServer.objects.filter(pk=server_id).first()
    if server is not None:
        read_host(server)


@app.task(name=END_PROCESS, queue=PERFORCE)
def end_process(ending_id: int) -> None:
    """End the process of a request, and follow it until it is gone.

    Safe to repeat: it reads what runs now, and ends only what was requested.
    """
    endings = ProcessEnding.objects.select_related("server", "requested_by")
    ending = endings.filter(pk=ending_id, state=ProcessEnding.State.REQUESTED).first()
    if ending is None:
        return
    try:
        _end(ending)
    except NotFound:
        settle(ending, ProcessEnding.State.ENDED, message=GONE)
    except PermanentGatewayError as error:
        settle(ending, ProcessEnding.State.FAILED, message=error.sentence)
    except GatewayError as error:
        log.warning("process_not_ended", ending_id=ending.pk, **error.log_context())
        _look_again(ending, why=error.sentence)


def _end(ending: ProcessEnding) -> None:
    running = {each.number: each for each in read_processes(ending.server)}
    process = running.get(ending.number)
    if process is None or not is_the_one(process, ending):
        settle(ending, ProcessEnding.State.ENDED, message=GONE)
        return
    if process.state != Process.State.TERMINATED:
        gateway = registry.hasty_perforce(ending.server, seconds=ANSWER_WITHIN_SECONDS)
        gateway.processes.end(ending.number)
    _look_again(ending, why="It is marked, and ends at its next own check.")


def _look_again(ending: ProcessEnding, *, why: str) -> None:
    if clocks.database_now() - ending.requested_at > GIVEN_UP_AFTER:
        settle(
            ending,
            ProcessEnding.State.FAILED,
            message=f"It did not end within 20 minutes. {why}",
        )
        return
    ProcessEnding.objects.filter(pk=ending.pk).update(message=why)
    queue_ending(ending, in_seconds=LOOKED_AGAIN_AFTER_SECONDS)
