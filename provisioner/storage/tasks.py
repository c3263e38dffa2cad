"""The jobs that apply a site's ceilings and policies of volumes in ONTAP."""

from __future__ import annotations

import structlog
from procrastinate.contrib.django import app

from provisioner.engine.deferring import defer_once
from provisioner.engine.queues import STORAGE
from provisioner.gateways.errors import GatewayError
from provisioner.sites.models import Site
from provisioner.storage.ceilings import keep_ceilings
from provisioner.storage.volume_policies import keep_volume_policies

log = structlog.get_logger(__name__)


def keep_ceilings_soon(site_id: int) -> None:
    """Queue the job for a site, one at a time."""
    name = f"keep_ceilings.{site_id}"
    job = keep_ceilings_of.configure(queueing_lock=name, lock=name)
    defer_once(job, site_id=site_id)


@app.task(name="keep_ceilings", queue=STORAGE)
def keep_ceilings_of(site_id: int) -> None:
    """Apply the ceilings of a site. What fails is tried again with the next sweep."""
    site = Site.objects.filter(pk=site_id).first()
    if site is None:
        return
    try:
        keep_ceilings(site)
    except GatewayError as error:
        log.warning("ceilings_not_applied", site=site.name, **error.log_context())


def keep_volume_policies_soon(site_id: int) -> None:
    """Queue the job for a site, one at a time."""
    name = f"keep_volume_policies.{site_id}"
    job = keep_volume_policies_of.configure(queueing_lock=name, lock=name)
    defer_once(job, site_id=site_id)


@app.task(name="keep_volume_policies", queue=STORAGE)
def keep_volume_policies_of(site_id: int) -> None:
    """Apply a site's policies of volumes. What fails is tried with the next sweep."""
    site = Site.objects.filter(pk=site_id).first()
    if site is None:
        return
    try:
        keep_volume_policies(site)
    except GatewayError as error:
        log.warning("volume_policies_not_kept", site=site.name, **error.log_context())
