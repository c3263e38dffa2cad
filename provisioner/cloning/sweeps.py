"""Delete snapshots of workspaces whose clones are gone or independent."""

from __future__ import annotations

import structlog
from django.db.models import Q
from procrastinate.contrib.django import app

from provisioner.cloning.models import WorkspaceClone
from provisioner.engine.queues import STORAGE
from provisioner.gateways import registry
from provisioner.gateways.errors import GatewayError, NotFound
from provisioner.lib import clocks
from provisioner.workspaces.models import Workspace

log = structlog.get_logger(__name__)

_GONE = Workspace.State.RETIRED


@app.periodic(cron="*/10 * * * *")
@app.task(
    name="release_sources_of_clones",
    queue=STORAGE,
    queueing_lock="release_sources_of_clones",
)
def release_sources(timestamp: int) -> None:
    """Delete the snapshots that nothing needs any more. Safe to repeat.

    While ONTAP keeps a deleted clone in its recovery queue, its snapshot stays.
    """
    over = Q(workspace__state=_GONE) | Q(workspace__split_at__isnull=False)
    unreleased = WorkspaceClone.objects.filter(
        over | Q(source__state=_GONE), released_at=None
    )
    for cloning in unreleased.select_related("source__site", "workspace"):
        try:
            if cloning.source.state != _GONE and cloning.has_own_snapshot:
                _delete_snapshot(cloning)
        except GatewayError as error:
            log.info(
                "snapshot_of_clone_stays",
                workspace_id=cloning.source_id,
                **error.log_context(),
            )
            continue
        WorkspaceClone.objects.filter(pk=cloning.pk).update(
            released_at=clocks.database_now()
        )


def _delete_snapshot(cloning: WorkspaceClone) -> None:
    """Delete our snapshot of the source, if it is there.

    Raises: GatewayError.
    """
    ontap, volume_uuid = registry.ontap(cloning.source.site), cloning.source.volume_uuid
    try:
        snapshot = ontap.find_snapshot(volume_uuid, name=cloning.snapshot_name)
    except NotFound:
        return  # the volume is gone, and it with that
    if snapshot is not None:
        ontap.delete_snapshot(volume_uuid, snapshot_uuid=snapshot.uuid)
