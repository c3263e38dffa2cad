"""Edges and replicas: how far behind they are, waiting for a change, whose clients."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection

import structlog

from provisioner.gateways import registry
from provisioner.gateways.errors import Busy, GatewayError
from provisioner.gateways.perforce.types import ClientSpec
from provisioner.lib import clocks
from provisioner.lib.refusals import InvalidRequest, StepRefused
from provisioner.sites.models import PerforceServer, ReplicaPosition, WhenBehind

log = structlog.get_logger(__name__)


ANSWER_WITHIN_SECONDS = 20.0


def measure(
    server: PerforceServer, *, within_seconds: float = ANSWER_WITHIN_SECONDS
) -> ReplicaPosition:
    """Compare a replica's newest change with its upstream's, and record both.

    Each may take `within_seconds` to answer. An upstream that does not answer is
    recorded as such. No transaction may be open.

    Raises: GatewayError (the replica itself).
    """
    assert server.upstream is not None
    change = _newest(server, within_seconds=within_seconds)
    upstream_change: int | None = None
    try:
        upstream_change = _newest(server.upstream, within_seconds=within_seconds)
    except GatewayError as error:
        log.warning(
            "upstream_not_asked", server=server.upstream.name, **error.log_context()
        )
    position, _ = ReplicaPosition.objects.update_or_create(
        server=server,
        defaults={
            "change": change,
            "upstream_change": upstream_change,
            "measured_at": clocks.database_now(),
        },
    )
    return position


def server_with(
    server: PerforceServer, *, change: int, since: dt.datetime
) -> PerforceServer:
    """Return the server to flush to a change at: this one, once it has the change.

    A replica that has not waits for it, `catch_up_seconds` from `since` on. Then its
    `when_behind` decides. A change that its upstream does not have either is not waited
    for: the flush says so.

    Raises: Busy (try again), StepRefused (waited long enough), GatewayError.
    Source: p4 changes -e; a replica applies its upstream's journal in order.
    """
    replica = server.served_by
    within = replica.catch_up_seconds
    position = behind(server, change=change, since=since, within_seconds=within)
    if position is None:
        return server
    if replica.when_behind == WhenBehind.UPSTREAM:
        assert replica.upstream is not None
        return replica.upstream
    raise stays_behind(position, change=change, within_seconds=within)


def behind(
    server: PerforceServer, *, change: int, since: dt.datetime, within_seconds: int
) -> ReplicaPosition | None:
    """Return None if a server has a change, else how far it is after the whole wait.

    A change that its upstream does not have either is not waited for.

    Raises: Busy (try again within `within_seconds` from `since` on), GatewayError.
    """
    replica = server.served_by
    if not replica.what.replicates or _has(replica, change):
        return None
    position = measure(replica)
    assert replica.upstream is not None
    if position.upstream_change is not None and not _has(replica.upstream, change):
        return None
    waited = clocks.database_now() - since
    if waited.total_seconds() < within_seconds:
        raise Busy(
            f"{position.sentence} Waiting for change {change}.",
            system="perforce",
            operation="changes",
        )
    return position


def stays_behind(
    position: ReplicaPosition, *, change: int, within_seconds: int
) -> StepRefused:
    """Return the refusal of a server that was waited for long enough."""
    return StepRefused(
        f"{position.sentence} Change {change} did not arrive there within "
        f"{within_seconds} s. Retry once it has.",
        code="replica_is_behind",
    )


def require_bound(server: PerforceServer, client: ClientSpec) -> None:
    """Refuse a client that an edge or build server cannot use.

    What is opened and synced in it is known only to the server that it was made at.

    Raises: StepRefused, with the command that moves it.
    Source: p4 help client (ServerID), reload; "Moving clients and labels" of the
    administrator's guide.
    """
    here = server.served_by
    if can_use(server, client):
        return
    owned = f"is bound to the server {client.server_id}"
    if not client.server_id:
        owned = "was not made at an edge or build server"
    raise StepRefused(
        f"The client {client.name} {owned}, and its site uses {here.server_id}. An "
        f"administrator of Perforce moves it with {_moving(here, client)}. Then retry.",
        code="client_of_other_server",
    )


def _moving(here: PerforceServer, client: ClientSpec) -> str:
    """Return the command that moves a client to an edge or build server."""
    commit = here
    while commit.upstream is not None:
        commit = commit.upstream
    return (
        f"p4 -p {here.p4port} reload -f -c {client.name} "
        f"-p {client.server_id or commit.p4port}"
    )


def require_bound_all(
    server: PerforceServer,
    names: Collection[str],
    *,
    before: PerforceServer,
    field: str,
) -> None:
    """Refuse a server that cannot use all of these clients, before they move there.

    `before` is the server that they are at now, `field` the one that is refused. A move
    from and to servers that bind no clients is always allowed, and asks no server.

    Raises: InvalidRequest, with the command that moves them, or if the server does not
    answer.
    """
    here, there = server.served_by, before.served_by
    if not names or not (here.what.binds_clients or there.what.binds_clients):
        return
    perforce = registry.hasty_perforce(server, seconds=ANSWER_WITHIN_SECONDS)
    try:
        server_id = perforce.get_info().server_id
        clients = perforce.clients.find_all(name_filter="cy-*")
    except GatewayError as error:
        raise InvalidRequest.at(
            field,
            f"{error} {server.name} has to answer first: its workspaces have clients, "
            "which may be bound to another server.",
        ) from error
    if here.what.binds_clients and server_id != here.server_id:
        raise InvalidRequest.at(
            field,
            f"The server at {server.p4port} says that its ServerID is "
            f"{server_id or 'none'}, not {here.server_id}. Workspaces have clients "
            "that are bound by it, so both must be right.",
        )
    usable = {server_id} if here.what.binds_clients else {"", server_id}
    left = [
        each for each in clients if each.name in names and each.server_id not in usable
    ]
    if left:
        raise InvalidRequest.at(
            field,
            f"{server.name} cannot use {len(left):,} of the clients of its "
            f"workspaces, such as {left[0].name}: they are bound to another server. An "
            f"administrator of Perforce moves each with {_moving(here, left[0])}. Then "
            "save again.",
        )


def can_use(server: PerforceServer, client: ClientSpec) -> bool:
    """Return whether a client is not bound to another server than this one."""
    here = server.served_by
    return not here.what.binds_clients or client.server_id == here.server_id


def _newest(server: PerforceServer, *, within_seconds: float) -> int:
    perforce = registry.hasty_perforce(server, seconds=within_seconds)
    return perforce.changes.latest(())


def _has(server: PerforceServer, change: int) -> bool:
    return registry.perforce(server).changes.is_submitted(change)
