"""Learn the abilities of each Perforce server, to refuse what it lacks."""

from __future__ import annotations

import structlog
from procrastinate.contrib.django import app

from provisioner.engine.queueing import defer_once
from provisioner.engine.queues import PERFORCE
from provisioner.gateways import registry
from provisioner.gateways.errors import GatewayError
from provisioner.lib import clocks
from provisioner.sites.models import PerforceServer, ServerAbilities

log = structlog.get_logger(__name__)


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
