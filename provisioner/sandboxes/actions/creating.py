"""Request a sandbox, or refuse it before anything is cloned."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass

from django.core.exceptions import ValidationError
from django.db import transaction

from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.engine.starting import start_operation
from provisioner.gateways.perforce.releases import p4d_release_in
from provisioner.gateways.reach import perforce_address
from provisioner.insight.models import ServerConfiguration
from provisioner.lib import clocks
from provisioner.lib.names import check_name
from provisioner.lib.refusals import InvalidRequest
from provisioner.lib.releases import is_older
from provisioner.sandboxes import refusals
from provisioner.sandboxes.actions.describing import volumes_of
from provisioner.sandboxes.models import (
    P4dVersion,
    Role,
    Sandbox,
    SandboxHost,
    SandboxPlace,
    SandboxPolicy,
    SandboxVolume,
    ServerVolumes,
)
from provisioner.sandboxes.purposes import recipe_of
from provisioner.sandboxes.queries import at_host, policy_of
from provisioner.sites.models import PerforceServer, Site


@dataclass(frozen=True, kw_only=True)
class Replicas:
    """What SnapMirror fills at another site, by the name of the server's volume."""

    site: Site
    of: Mapping[str, str]


def sandbox_create(
    *,
    by: User,
    server: PerforceServer,
    name: str,
    purpose: str,
    version: P4dVersion,
    host: SandboxHost,
    hours: int,
    port: int | None = None,
    server_id: str = "",
    reason: str = "",
    replicas: Replicas | None = None,
) -> Sandbox:
    """Request a sandbox of a server for some hours.

    Without a `port` it gets the first free one of the host, without a `server_id` one
    of its name. With `replicas` it is a drill, and is made of those.

    Raises: NotAllowed, InvalidRequest, and the refusals of this feature.
    """
    check_name(name)
    server_id = server_id or f"sandbox-{name}"
    if (purpose == Sandbox.Purpose.DRILL) != (replicas is not None):
        raise InvalidRequest.at("purpose", "Drills are made by their plan alone.")
    with transaction.atomic():
        _require_place_for(by, hours=hours)
        # One at a time at a host: two must not get its last place or one port.
        host = SandboxHost.objects.select_for_update().get(pk=host.pk)
        volumes = volumes_of(server)
        home = volumes.site if replicas is None else replicas.site
        if host.site_id != home.pk:
            raise refusals.HostElsewhere(
                host=host.name,
                site=host.site.name,
                server=server.name,
                home=home.name,
            )
        if at_host(host).count() >= host.at_most:
            raise refusals.SandboxHostFull(host=host.name, most=host.at_most)
        if Sandbox.objects.filter(name=name).exists():
            raise refusals.SandboxNameTaken(name=name)
        _require_apart(host, server_id=server_id)
        _require_not_older(version, server)
        sandbox = Sandbox(
            name=name,
            perforce_server=server,
            site=home,
            host=host,
            owner=by,
            purpose=purpose,
            release=version.release,
            p4d_path=version.path,
            server_id=server_id,
            port=_port_at(host, wanted=port),
            expires_at=clocks.database_now() + dt.timedelta(hours=hours),
        )
        try:
            sandbox.clean_fields(exclude=["subject"])
        except ValidationError as error:
            field, messages = next(iter(error.message_dict.items()))
            raise InvalidRequest.at(field, " ".join(messages)) from error
        recipe = recipe_of(sandbox)
        recipe.check(by, sandbox)
        sandbox.save()
        _write_volumes(sandbox, volumes, replicas=replicas)
        record_event(
            sandbox,
            kind="sandbox_requested",
            message=f"Requested a sandbox of {server.name} with p4d {version.release} "
            f"at {sandbox.p4port}, {sandbox.get_purpose_display().lower()}, for "
            f"{hours} hours.",
            reason=reason,
            actor=by,
        )
        start_operation(recipe.operation, about=sandbox, by=by)
    return sandbox


def _require_place_for(by: User, *, hours: int) -> None:
    """Refuse what a person's policy does not allow.

    Raises: NoSandboxesForYou, TooManySandboxes, TeamHasTooManySandboxes, LeaseTooLong,
    InvalidRequest.
    """
    User.objects.select_for_update(no_key=True).get(pk=by.pk)
    policy = policy_of(by)
    if policy is None:
        raise refusals.NoSandboxesForYou
    number = Sandbox.objects.filter(owner=by).count()
    if number >= policy.at_most:
        raise refusals.TooManySandboxes(number=number, most=policy.at_most)
    if policy.team_at_most is not None:
        # Two of a team must not get its last place.
        SandboxPolicy.objects.select_for_update().get(pk=policy.pk)
        number = Sandbox.objects.filter(owner__team=policy.team_id).count()
        if number >= policy.team_at_most:
            raise refusals.TeamHasTooManySandboxes(
                team=policy.team.name, number=number, most=policy.team_at_most
            )
    if hours < 1:
        raise InvalidRequest.at("hours", "Give one hour at least.")
    if hours > policy.longest_hours:
        raise refusals.LeaseTooLong(most=policy.longest_hours)


def _require_apart(host: SandboxHost, *, server_id: str) -> None:
    """Refuse the ServerID of a server, or of another sandbox.

    Raises: ServerIdOfAServer.
    """
    known = PerforceServer.objects.filter(server_id__iexact=server_id).first()
    if known is not None:
        raise refusals.ServerIdOfAServer(server=known.name, server_id=known.server_id)
    other = Sandbox.objects.filter(server_id__iexact=server_id).first()
    if other is not None:
        raise refusals.ServerIdOfAServer(
            server=f"The sandbox {other.name}", server_id=other.server_id
        )


def _require_not_older(version: P4dVersion, server: PerforceServer) -> None:
    """Refuse a p4d older than the server's, as far as that was read.

    The first step asks the server itself.

    Raises: P4dTooOld.
    """
    read = ServerConfiguration.objects.filter(server=server).first()
    newer = p4d_release_in(read.version) if read is not None else ""
    if is_older(version.release, newer):
        raise refusals.P4dTooOld(server=server.name, newer=newer, older=version.release)


def _port_at(host: SandboxHost, *, wanted: int | None) -> int:
    """Return the port that was asked for, or the first that nobody has.

    Raises: PortTaken, PortOfAServer, SandboxHostFull.
    """
    taken = dict(at_host(host).values_list("port", "name"))
    of_servers = _ports_of_servers(host)
    if wanted is not None:
        if wanted in of_servers:
            raise refusals.PortOfAServer(server=of_servers[wanted], port=wanted)
        if wanted in taken:
            raise refusals.PortTaken(name=taken[wanted], port=wanted, host=host.name)
        return wanted
    for port in range(host.first_port, host.last_port + 1):
        if port not in taken and port not in of_servers:
            return port
    raise refusals.SandboxHostFull(host=host.name, most=host.at_most)


def _ports_of_servers(host: SandboxHost) -> dict[int, str]:
    """Return the ports at a host's address at which servers answer, with their names.

    A server at a loopback address counts at every host: whoever says localhost there
    would meet the wrong one.
    """
    found = {}
    for server in PerforceServer.objects.all():
        for p4port in filter(None, (server.p4port, server.people_p4port)):
            address, port = perforce_address(p4port)
            if address in (host.address, "localhost", "127.0.0.1", "::1"):
                found[int(port)] = server.name
    return found


def _write_volumes(
    sandbox: Sandbox, volumes: ServerVolumes, *, replicas: Replicas | None
) -> None:
    """Write what is cloned, in the order of snapshots, with the parts that it holds."""
    places = sorted(volumes.places.all(), key=lambda each: Role.values.index(each.role))
    rows: dict[str, SandboxVolume] = {}
    for place in places:
        if place.volume not in rows:
            source = place.volume
            rows[place.volume] = SandboxVolume.objects.create(
                sandbox=sandbox,
                number=len(rows) + 1,
                source=replicas.of[source] if replicas is not None else source,
                is_replica=replicas is not None,
            )
        SandboxPlace.objects.create(
            volume=rows[place.volume], role=place.role, path=place.path
        )
