"""Apply changed export rules to existing policies, without waiting for a clone."""

from __future__ import annotations

from contextlib import suppress

import structlog
from procrastinate.contrib.django import app

from provisioner.engine.deferring import defer_once
from provisioner.engine.queues import STORAGE
from provisioner.gateways import registry
from provisioner.gateways.errors import GatewayError, PermanentGatewayError
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.lib.names import TAG_PREFIX
from provisioner.sites.export_policies import ensure_policy_rules, policies_of
from provisioner.sites.models import OpenTo, Site
from provisioner.workspaces.models import Workspace

log = structlog.get_logger(__name__)


@app.periodic(cron="*/5 * * * *")
@app.task(name="sweep_exports", queue="sweeps", queueing_lock="sweep_exports")
def sweep_exports(timestamp: int) -> None:
    """Queue a comparison of every site's export policies with its row."""
    for site_id in Site.objects.values_list("pk", flat=True):
        job = apply_exports.configure(queueing_lock=f"apply_exports.{site_id}")
        defer_once(job, site_id=site_id)


@app.task(name="apply_exports", queue=STORAGE)
def apply_exports(site_id: int) -> None:
    """Update the existing policies to the row; create none."""
    site = Site.objects.filter(pk=site_id).first()
    if site is None:
        return
    ontap = registry.ontap(site)
    try:
        _apply_rules(site, ontap)
        _apply_to_templates(site, ontap)
        _apply_to_clones(site, ontap)
        _apply_snapshot_directories(site, ontap)
    except GatewayError as error:
        log.warning("exports_not_applied", site=site.name, **error.log_context())


def _apply_rules(site: Site, ontap: OntapGateway) -> None:
    for name, rules in policies_of(site).items():
        if ontap.find_export_policy(name) is not None:
            ensure_policy_rules(ontap, name, rules=rules)


def _apply_to_templates(site: Site, ontap: OntapGateway) -> None:
    """Set the export policies of templates that have another one."""
    policy, mode = site.templates_policy, OpenTo.OWNER.mode
    found = ontap.list_volumes(comment_prefix=f"{TAG_PREFIX}template=")
    volumes = {volume.uuid: volume for volume in found}
    for template in site.templates.exclude(volume_uuid=""):
        volume = volumes.get(template.volume_uuid)
        if volume is None or volume.state != "online":
            continue
        if (volume.export_policy, volume.root_mode) == (policy, mode):
            continue
        ensure_policy_rules(ontap, policy, rules=policies_of(site)[policy])
        ontap.set_volume_policies(volume.uuid, export_policy=policy, root_mode=mode)
        log.info("template_closed", site=site.name, template=template.name)


def _apply_to_clones(site: Site, ontap: OntapGateway) -> None:
    """Give clones the currently required mode, including those of older releases.

    Each gets it once: its owner may have changed the mode since.
    """
    ready = site.workspaces.filter(state=Workspace.State.READY).exclude(volume_uuid="")
    for workspace in ready.select_related("site"):
        mode = workspace.open_to.mode
        if workspace.root_mode == mode:
            continue
        with suppress(PermanentGatewayError):  # its steps and the drift check say why
            ontap.set_volume_policies(workspace.volume_uuid, root_mode=mode)
            Workspace.objects.filter(pk=workspace.pk).update(root_mode=mode)


def _apply_snapshot_directories(site: Site, ontap: OntapGateway) -> None:
    """Show or hide .snapshot in our volumes, as the site says."""
    known = {
        *site.workspaces.exclude(volume_uuid="").values_list("volume_uuid", flat=True),
        *site.templates.exclude(volume_uuid="").values_list("volume_uuid", flat=True),
    }
    others = ontap.list_showing_snapshots(
        comment_prefix=TAG_PREFIX, shows_snapshots=not site.shows_snapshots
    )
    for uuid in known.intersection(others):
        with suppress(PermanentGatewayError):  # such as one that is offline
            ontap.set_volume_policies(uuid, shows_snapshots=site.shows_snapshots)
