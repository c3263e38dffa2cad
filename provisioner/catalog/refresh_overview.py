"""What follows submitted changes, in one look for those who run the place."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q

from provisioner.catalog import freshness
from provisioner.catalog.models import ServerWatch


@dataclass(frozen=True, kw_only=True)
class Refreshes:
    """The switch of all, and the servers that are not asked, or do not answer."""

    is_paused: bool
    stopped: list[ServerWatch]


def refreshes_now() -> Refreshes:
    """Return what administrators look at, to switch it off and on."""
    is_stopped = Q(is_paused=True) | ~Q(last_error="")
    watches = ServerWatch.objects.filter(is_stopped).select_related("server")
    return Refreshes(
        is_paused=freshness.is_everything_paused(),
        stopped=list(watches.order_by("server__name")),
    )
