"""Collect signs of life of every workspace, without leaving any.

Hourly. Perforce is asked from a neutral client: one `clients -e` per server for all
Access dates, then three `changes -m 1` for each client whose date has moved since the
last check, and one `opened -u` per owner of such clients. Trees are checked by the
hosts that mount them, with a budget for each (gateways/hosts/recency.py).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from functools import partial
from typing import Any

import structlog
from django.db import transaction
from procrastinate.contrib.django import app

from provisioner.audit_log.models import Event
from provisioner.engine.deferring import defer_once
from provisioner.gateways import registry
from provisioner.gateways.errors import GatewayError
from provisioner.gateways.hosts.recency import newest_modification
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.types import ClientSpec
from provisioner.leases.abandonment import WORDS, WORK, newest_of
from provisioner.lib import clocks
from provisioner.routing.models import ITS_SERVER
from provisioner.sites.models import PerforceServer, Site
from provisioner.workspaces.models import Workspace

log = structlog.get_logger(__name__)

OURS = "cy-*"
# A server moves an Access date at the latest after this.
# Source: p4 help configurables, dm.domain.accessforce.
ACCESS_IS_LATE_BY = dt.timedelta(hours=1)


@app.periodic(cron="11 * * * *")
@app.task(name="sweep_activity", queue="sweeps", queueing_lock="sweep_activity")
def sweep_activity(timestamp: int) -> None:
    """Ask workers to check every server and every site for activity."""
    ready = Workspace.objects.filter(state=Workspace.State.READY, is_pooled=False)
    servers = ready.order_by().values_list(ITS_SERVER, flat=True)
    for server_id in servers.distinct():
        defer_once(
            check_clients.configure(queueing_lock=f"check_clients.{server_id}"),
            server_id=server_id,
        )
    for site in Site.objects.filter(workspaces__in=ready).distinct():
        defer_once(
            check_trees.configure(
                queue=site.host_queue, queueing_lock=f"check_trees.{site.pk}"
            ),
            site_id=site.pk,
        )


@app.task(name="check_clients", queue="perforce")
def check_clients(server_id: int) -> None:
    """Record a Perforce server's signs of life of our clients."""
    server = PerforceServer.objects.get(pk=server_id)
    perforce = registry.perforce(server)
    now = clocks.database_now()
    clients = {
        client.name: client for client in perforce.clients.find_all(name_filter=OURS)
    }
    workspaces = [
        workspace
        for workspace in Workspace.objects.alias(its_server=ITS_SERVER)
        .filter(state=Workspace.State.READY, is_pooled=False, its_server=server.pk)
        .select_related("owner")
        if not workspace.client_name or workspace.client_name in clients
    ]
    moved = [
        workspace
        for workspace in workspaces
        if workspace.client_name
        and _has_moved(workspace, clients[workspace.client_name])
    ]
    opened = _opened_by_client(perforce, moved)
    for workspace in workspaces:
        found, seen_at = _touches(workspace), {"activity_seen_at": now}
        if workspace.client_name:
            client = clients[workspace.client_name]
            found["accessed"] = _signal(client.accessed_at)
        if workspace in moved:
            found |= _work(perforce, workspace)
            found["opened"] = {"count": opened.get(workspace.client_name, 0)}
            seen_at["client_checked_at"] = now
        _note(workspace, found, **seen_at)


def _has_moved(workspace: Workspace, client: ClientSpec) -> bool:
    """Return whether the client may have been used since it was last checked."""
    if workspace.client_checked_at is None:
        return True
    if client.accessed_at is None:
        return False
    return client.accessed_at >= workspace.client_checked_at - ACCESS_IS_LATE_BY


def _opened_by_client(
    perforce: PerforceGateway, workspaces: Iterable[Workspace]
) -> dict[str, int]:
    opened: dict[str, int] = {}
    for user in sorted({workspace.p4_user for workspace in workspaces}):
        opened |= {
            client: opened.get(client, 0) + count
            for client, count in perforce.changes.count_opened_by(user).items()
        }
    return opened


def _work(perforce: PerforceGateway, workspace: Workspace) -> dict[str, Any]:
    pinned = workspace.snapshot.change
    newest = perforce.changes.newest_work(workspace.client_name, above=pinned)
    return {
        "submitted": _signal(newest.submitted_at),
        "shelved": _signal(newest.shelved_at),
        "pending": _signal(newest.pending_at),
    }


def _touches(workspace: Workspace) -> dict[str, Any]:
    """Return the signs from the owner's requests: extend, keep, restore."""
    newest = (
        Event.objects.filter(workspace=workspace, actor=workspace.owner)
        .order_by("-at")
        .first()
    )
    return {"touched": _signal(newest.at if newest else None)}


@app.task(name="check_trees", queue="host")
def check_trees(site_id: int) -> None:
    """Record when the trees of a site's workspaces were last changed."""
    site = Site.objects.get(pk=site_id)
    for workspace in Workspace.objects.filter(
        state=Workspace.State.READY, is_pooled=False, site=site
    ).select_related("site"):
        try:
            if site.mounts_each:
                mount = site.volume_mount(workspace.junction_path)
                mount.ensure(addresses=partial(registry.nfs_addresses, site))
            found = newest_modification(workspace.path)
        except GatewayError as error:
            log.warning(
                "tree_not_checked", workspace_id=workspace.pk, **error.log_context()
            )
            continue
        detail = (
            ""
            if found.is_complete
            else f"of the first {found.directories + found.files:,} entries"
        )
        at = found.newest_at
        if workspace.ready_at and at and at <= workspace.ready_at:
            at = None  # came with the template, or with us
        _note(workspace, {"files": _signal(at, detail=detail)})


def _signal(at: dt.datetime | None, *, detail: str = "") -> dict[str, Any]:
    return {"at": at.isoformat() if at else None, "detail": detail}


def _note(workspace: Workspace, found: dict[str, Any], **seen_at: dt.datetime) -> None:
    """Add signs without overwriting those that another worker records meanwhile.

    `seen_at` are columns that say when something was read.
    """
    with transaction.atomic():
        locked = Workspace.objects.select_for_update(of=("self",)).get(pk=workspace.pk)
        signs = {**locked.activity, **found}
        Workspace.objects.filter(pk=workspace.pk).update(
            activity=signs,
            worked_at=newest_of(signs, WORK),
            used_at=newest_of(signs, WORDS),
            **seen_at,
        )
