"""Every ten minutes: measure what the volumes of templates take."""

from __future__ import annotations

import structlog
from procrastinate.contrib.django import app

from provisioner.catalog.models import Template
from provisioner.engine.deferring import defer_once
from provisioner.engine.queues import STORAGE
from provisioner.gateways import registry
from provisioner.gateways.errors import GatewayError
from provisioner.lib import clocks
from provisioner.lib.names import TAG_PREFIX
from provisioner.moves.models import TemplatePlace
from provisioner.sites.models import Site

TEMPLATES = f"{TAG_PREFIX}template="

log = structlog.get_logger(__name__)


@app.periodic(cron="*/10 * * * *")
@app.task(name="sweep_places", queue="sweeps", queueing_lock="sweep_places")
def sweep_places(timestamp: int) -> None:
    """Queue a measurement of every site."""
    for site_id in Site.objects.values_list("pk", flat=True):
        name = f"measure_places.{site_id}"
        defer_once(measure_places.configure(queueing_lock=name), site_id=site_id)


@app.task(name="measure_places", queue=STORAGE)
def measure_places(site_id: int) -> None:
    """Measure a site; what was measured before stays if it fails."""
    site = Site.objects.filter(pk=site_id).first()
    if site is None:
        return
    try:
        measure(site)
    except GatewayError as error:
        log.warning("places_not_measured", site=site.name, **error.log_context())


def measure(site: Site) -> None:
    """Ask ONTAP what templates' volumes take, and save that. Safe to repeat.

    Raises: GatewayError.
    """
    ontap, began_at = registry.ontap(site), clocks.database_now()
    found = {each.uuid: each for each in ontap.list_moves(comment_prefix=TEMPLATES)}
    templates = Template.objects.filter(site=site, volume_uuid__in=found)
    TemplatePlace.objects.bulk_create(
        [
            TemplatePlace(
                template_id=pk,
                tiering_policy=found[uuid].tiering_policy,
                footprint_bytes=found[uuid].footprint_bytes,
                measured_at=began_at,
            )
            for pk, uuid in templates.order_by("pk").values_list("pk", "volume_uuid")
        ],
        update_conflicts=True,
        unique_fields=("template",),
        update_fields=("tiering_policy", "footprint_bytes", "measured_at"),
    )
