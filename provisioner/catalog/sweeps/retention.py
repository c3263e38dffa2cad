"""Retry deleting unneeded snapshots.

A build prunes at its end. Between builds workspaces are purged, and ONTAP becomes able
to delete what it refused before: others' clones end, the recovery queue empties.
"""

from __future__ import annotations

import structlog
from procrastinate.contrib.django import app

from provisioner.catalog import retention
from provisioner.catalog.models import MOVING_TEMPLATES, Template
from provisioner.catalog.steps.pruning import delete_superfluous
from provisioner.engine.deferring import defer_once
from provisioner.engine.queues import STORAGE
from provisioner.gateways import registry
from provisioner.gateways.errors import GatewayError

log = structlog.get_logger(__name__)

# Their snapshots have to have room in memory.
AT_ONCE = 100


@app.periodic(cron="*/10 * * * *")
@app.task(name="sweep_retention", queue="sweeps", queueing_lock="sweep_retention")
def sweep_retention(timestamp: int) -> None:
    """Prune every idle template that has snapshots to delete."""
    resting = Template.objects.exclude(state__in=MOVING_TEMPLATES)
    templates = list(resting.exclude(volume_uuid="").order_by("pk"))
    for begin in range(0, len(templates), AT_ONCE):
        found = retention.superfluous_of_all(templates[begin : begin + AT_ONCE])
        for pk in dict.fromkeys(snapshot.template_id for snapshot in found):
            name = f"prune_template.{pk}"
            job = prune_template.configure(queueing_lock=name, lock=name)
            defer_once(job, template_id=pk)


@app.task(name="prune_template", queue=STORAGE)
def prune_template(template_id: int) -> None:
    """Delete unneeded snapshots; the next sweep retries failures."""
    template = Template.objects.select_related("site").filter(pk=template_id).first()
    if template is None:  # it was deleted with all of its snapshots
        return
    try:
        deleted, refused = delete_superfluous(
            registry.ontap(template.site), template, volume_uuid=template.volume_uuid
        )
    except GatewayError as error:
        log.warning(
            "snapshots_not_pruned", template_id=template_id, **error.log_context()
        )
    else:
        log.info(
            "snapshots_pruned",
            template_id=template_id,
            deleted=deleted,
            refused=refused,
        )
