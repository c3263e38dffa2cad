"""Sweeps of sites and Perforce servers: their connections, and what servers support."""

from __future__ import annotations

import socket
from pathlib import Path

import structlog
from procrastinate.contrib.django import app

from provisioner.engine.deferring import defer_once
from provisioner.engine.queues import PERFORCE
from provisioner.engine.workers import alive_workers
from provisioner.gateways import registry
from provisioner.gateways.errors import GatewayError
from provisioner.gateways.hosts.mounts import mounted_in
from provisioner.lib import clocks
from provisioner.sites import replicas
from provisioner.sites.connections import hosts, ontap, perforce, rows, trial
from provisioner.sites.connections.rows import LOOK, Place
from provisioner.sites.models import (
    ConnectionCheck,
    PerforceServer,
    ServerAbilities,
    Site,
)

log = structlog.get_logger(__name__)

# A site's hosts share a queue: a job for one of them is passed on until it comes there.
PASSED_ON_AT_MOST = 100
PASSED_ON_AFTER_SECONDS = 5


@app.periodic(cron="*/5 * * * *")
@app.task(name="sweep_abilities", queue="sweeps", queueing_lock="sweep_abilities")
def sweep_abilities(timestamp: int) -> None:
    """Ask workers to check the abilities of every server."""
    for server_id in PerforceServer.objects.values_list("pk", flat=True):
        lock = f"check_abilities.{server_id}"
        defer_once(check_abilities.configure(queueing_lock=lock), server_id=server_id)


@app.task(name="check_abilities", queue=PERFORCE)
def check_abilities(server_id: int) -> None:
    """Ask a server which client types it has; without an answer the last one stays."""
    server = PerforceServer.objects.filter(pk=server_id).first()
    if server is None:
        return
    try:
        types = registry.perforce(server).clients.types()
    except GatewayError as error:
        log.warning("abilities_not_known", server=server.name, **error.log_context())
        return
    ServerAbilities.objects.update_or_create(
        server=server,
        defaults={"client_types": list(types), "checked_at": clocks.database_now()},
    )


@app.periodic(cron="*/5 * * * *")
@app.task(name="sweep_positions", queue="sweeps", queueing_lock="sweep_positions")
def sweep_positions(timestamp: int) -> None:
    """Ask workers how far behind every replica and edge is."""
    for server in PerforceServer.objects.exclude(upstream=None):
        if server.what.replicates:
            lock = f"measure_position.{server.pk}"
            job = measure_position.configure(queueing_lock=lock)
            defer_once(job, server_id=server.pk)


@app.task(name="measure_position", queue=PERFORCE)
def measure_position(server_id: int) -> None:
    """Measure how far behind a replica is; without an answer the last one stays."""
    server = PerforceServer.objects.filter(pk=server_id).first()
    if server is None or not server.what.replicates:
        return
    try:
        replicas.measure(server)
    except GatewayError as error:
        log.warning("position_not_known", server=server.name, **error.log_context())


@app.task(name=LOOK)
def check_connection(kind: str, about_id: int, place: str) -> None:
    """Run a test once, and save its results, failures included."""
    if kind == "server":
        server = PerforceServer.objects.filter(pk=about_id).first()
        if server is not None:
            rows.keep(server, place, perforce.reach_perforce(server))
        return
    site = Site.objects.select_related("perforce_server").filter(pk=about_id).first()
    if site is None:
        return
    if place == Place.WORKER:
        rows.keep(site, place, ontap.reach_ontap(site))
        return
    look = trial.try_out if place == Place.TRIAL else hosts.check_from_host
    rows.keep(site, place, look(site))


@app.periodic(cron="23 4 * * *")
@app.task(name="sweep_mounts", queue="sweeps", queueing_lock="sweep_mounts")
def sweep_mounts(timestamp: int) -> None:
    """Ask every host of a site to check what it has mounted.

    Somebody may have remounted it since its connection was tested.
    """
    workers = alive_workers()
    for site in Site.objects.all():
        serving = (worker for worker in workers if worker.serves(site.host_queue))
        for host in sorted({worker.host for worker in serving}):
            _defer_check_of_mount(site, host, passed_on=0)


def _defer_check_of_mount(site: Site, host: str, *, passed_on: int) -> None:
    job = check_mount.configure(
        queue=site.host_queue,
        queueing_lock=f"check_mount.{site.pk}.{host}",
        schedule_in={"seconds": PASSED_ON_AFTER_SECONDS} if passed_on else None,
    )
    defer_once(job, site_id=site.pk, host=host, passed_on=passed_on)


@app.task(name="check_mount")
def check_mount(site_id: int, host: str, passed_on: int) -> None:
    """Check the mount on one host; queue the check for the next host."""
    site = Site.objects.filter(pk=site_id).first()
    if site is None:
        return
    if socket.gethostname() != host:
        if passed_on < PASSED_ON_AT_MOST:
            _defer_check_of_mount(site, host, passed_on=passed_on + 1)
        return
    if site.mounts_each:
        _unmount_leftovers(site)
    found = hosts.check_mount(site)
    for check in found:
        if check.outcome == ConnectionCheck.Outcome.FAILED:
            log.error("mount_is_wrong", site=site.name, reason=check.sentence)
    rows.keep_of_host(site, host, found)


def _unmount_leftovers(site: Site) -> None:
    """Unmount volumes on this host that are no longer in the namespace.

    A retirement unmounts them on the host that it runs on, and others have them, too.
    """
    # First: what is mounted on this host after the answer is not compared with it.
    here = mounted_in(Path(site.mount_root).resolve())
    try:
        volumes = registry.ontap(site).list_volumes()
    except GatewayError as error:
        log.warning("mounts_not_compared", site=site.name, **error.log_context())
        return
    there = {volume.junction_path for volume in volumes}
    for mounted in here:
        junction_path = f"/{mounted.mount_point.name}"
        if junction_path in there:
            continue
        try:
            site.volume_mount(junction_path).remove()
        except GatewayError as error:
            log.warning("leftover_not_unmounted", **error.log_context())
