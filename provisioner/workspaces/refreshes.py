"""What follows submitted changes, in one look for those who run the place."""

from __future__ import annotations

from dataclasses import dataclass

from provisioner.accounts.models import User
from provisioner.workspaces import lags, refreshing
from provisioner.workspaces.models import PerforceServer, ServerWatch, Template
from provisioner.workspaces.queries import templates_visible_to


@dataclass(frozen=True, kw_only=True)
class WatchedServer:
    """`watch` is None for a server that was never polled."""

    server: PerforceServer
    watch: ServerWatch | None


@dataclass(frozen=True, kw_only=True)
class Refreshes:
    """What follows submitted changes: servers, and templates with their policies."""

    is_paused: bool
    servers: list[WatchedServer]
    rows: list[tuple[Template, refreshing.Policy, lags.Lag | None]]


def refreshes_for(user: User) -> Refreshes:
    """Return what administrators look at, to switch it off and on."""
    templates = list(templates_visible_to(user))
    known, policies = lags.lags_of(templates), lags.policies_of(templates)
    return Refreshes(
        is_paused=lags.is_everything_paused(),
        servers=[
            WatchedServer(server=server, watch=getattr(server, "watch", None))
            for server in PerforceServer.objects.select_related("watch").order_by(
                "name"
            )
        ],
        rows=[(t, policies[t.pk], known.get(t.pk)) for t in templates],
    )
