"""What follows submitted changes, in one look for those who run the place."""

from __future__ import annotations

from dataclasses import dataclass

from provisioner.workspaces import lags
from provisioner.workspaces.models import PerforceServer, ServerWatch


@dataclass(frozen=True, kw_only=True)
class WatchedServer:
    """`watch` is None for a server that was never polled."""

    server: PerforceServer
    watch: ServerWatch | None


@dataclass(frozen=True, kw_only=True)
class Refreshes:
    """What follows submitted changes: the servers, and the switch of all."""

    is_paused: bool
    servers: list[WatchedServer]


def refreshes_now() -> Refreshes:
    """Return what administrators look at, to switch it off and on."""
    return Refreshes(
        is_paused=lags.is_everything_paused(),
        servers=[
            WatchedServer(server=server, watch=getattr(server, "watch", None))
            for server in PerforceServer.objects.select_related("watch").order_by(
                "name"
            )
        ],
    )
