"""Hosts that were taken off a site's row are shut out without waiting for a clone."""

from __future__ import annotations

import structlog
from procrastinate.contrib.django import app

from provisioner.gateways import registry
from provisioner.gateways.errors import GatewayError
from provisioner.workspaces.models import Site
from provisioner.workspaces.queueing import defer_once
from provisioner.workspaces.steps.volumes import ensure_policy_rules, export_rules_of
from provisioner.workspaces.workflow import STORAGE

log = structlog.get_logger(__name__)


@app.periodic(cron="*/5 * * * *")
@app.task(name="sweep_exports", queue="sweeps", queueing_lock="sweep_exports")
def sweep_exports(timestamp: int) -> None:
    """Have every site's export policies compared with its row."""
    for site_id in Site.objects.values_list("pk", flat=True):
        job = apply_exports.configure(queueing_lock=f"apply_exports.{site_id}")
        defer_once(job, site_id=site_id)


@app.task(name="apply_exports", queue=STORAGE)
def apply_exports(site_id: int) -> None:
    """Make the policies that are there equal to the row; make none."""
    site = Site.objects.filter(pk=site_id).first()
    if site is None:
        return
    rules = export_rules_of(site)
    wanted = {site.export_policy: rules, site.frozen_policy: rules[:1]}
    ontap = registry.ontap(site)
    try:
        for name, of_policy in wanted.items():
            if ontap.find_export_policy(name) is not None:
                ensure_policy_rules(ontap, name, rules=of_policy)
    except GatewayError as error:
        log.warning("exports_not_applied", site=site.name, **error.log_context())
