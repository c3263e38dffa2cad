"""Actions on sandboxes: describe servers and hosts, create, extend, retire, retry."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction

from provisioner.accounts import permissions
from provisioner.accounts.models import Team, User
from provisioner.audit_log.actions import record_event
from provisioner.audit_log.changes import changes_between
from provisioner.engine.models import Operation
from provisioner.engine.starting import start_operation
from provisioner.engine.states import cancel_operation
from provisioner.gateways.perforce.releases import is_older, p4d_release_in
from provisioner.gateways.reach import perforce_address
from provisioner.insight.models import ServerConfiguration
from provisioner.lib import clocks
from provisioner.lib.names import check_name
from provisioner.lib.refusals import InvalidRequest, StateChanged
from provisioner.sandboxes import refusals
from provisioner.sandboxes.models import (
    NEEDED_ROLES,
    P4dVersion,
    Role,
    Sandbox,
    SandboxHost,
    SandboxOperation,
    SandboxPlace,
    SandboxPolicy,
    SandboxVolume,
    ServerVolume,
    ServerVolumes,
)
from provisioner.sandboxes.purposes import recipe_of
from provisioner.sandboxes.queries import (
    RETIREMENTS,
    at_host,
    can_change_sandbox,
    is_served,
    policy_of,
)
from provisioner.sandboxes.states import set_sandbox_state
from provisioner.sites.models import PerforceServer, Site


@dataclass(frozen=True, kw_only=True)
class Replicas:
    """What SnapMirror fills at another site, by the name of the server's volume."""

    site: Site
    of: Mapping[str, str]


def server_volumes_save(
    *, by: User, server: PerforceServer, site: Site, places: str
) -> ServerVolumes:
    """Say which volumes of a site's SVM a server is on, in place of what was said.

    `places` has one a line: the role, then VOLUME or VOLUME/PATH.

    Raises: NotAllowed, InvalidRequest, VolumeListIncomplete.
    """
    permissions.require(permissions.can_administer(by))
    described = [_place(line) for line in places.splitlines() if line.strip()]
    roles = [place.role for place in described]
    for role in Role:
        if roles.count(role) > 1:
            raise InvalidRequest.at("places", f"Name the {role.value} once.")
    for role in NEEDED_ROLES:
        if role not in roles:
            raise refusals.VolumeListIncomplete(missing=role.value)
    with transaction.atomic():
        before = ServerVolumes.objects.filter(server=server).first()
        then = before and _as_said(before)
        of, _ = ServerVolumes.objects.update_or_create(
            server=server, defaults={"site": site}
        )
        of.places.all().delete()
        for place in sorted(described, key=lambda each: Role.values.index(each.role)):
            place.of = of
            place.save()
        said = _as_said(of)
        changes = changes_between(then or dict.fromkeys(said), said)
        if changes:
            record_event(
                server,
                kind="server_volumes_saved",
                message=f"Its data is on volumes of {site.name}.",
                actor=by,
                data=changes,
            )
    return of


def _as_said(of: ServerVolumes) -> dict[str, Any]:
    lines = [place.line for place in of.places.all()]
    return {"site": of.site.name, "places": "\n".join(lines)}


def _place(line: str) -> ServerVolume:
    """Return the place that a line names. Raises: InvalidRequest."""
    words = line.split()
    if len(words) != 2 or words[0] not in Role:
        raise InvalidRequest.at(
            "places",
            f"“{line.strip()}” is not db, journal, log or depot with VOLUME/PATH.",
        )
    role = Role(words[0])
    volume, _, path = words[1].partition("/")
    if role.is_file:
        path = path or role.value
    place = ServerVolume(role=role, volume=volume, path=path.strip("/"))
    try:
        place.clean_fields(exclude=["of"])
    except ValidationError as error:
        said = " ".join(error.messages)
        raise InvalidRequest.at("places", f"“{line.strip()}”: {said}") from error
    return place


def p4d_version_save(*, by: User, release: str, path: str) -> P4dVersion:
    """Name the path of a release of p4d on the hosts of sandboxes.

    Raises: NotAllowed, InvalidRequest.
    """
    permissions.require(permissions.can_administer(by))
    _check(P4dVersion(release=release, path=path))
    with transaction.atomic():
        version, _ = P4dVersion.objects.update_or_create(
            release=release, defaults={"path": path}
        )
        record_event(
            None,
            kind="p4d_version_saved",
            message=f"p4d {release} is at {path} on the hosts of sandboxes.",
            actor=by,
        )
    return version


def p4d_version_delete(*, by: User, version: P4dVersion) -> None:
    """Offer a release no more; sandboxes that use it go on. Raises: NotAllowed."""
    permissions.require(permissions.can_administer(by))
    with transaction.atomic():
        deleted, _ = P4dVersion.objects.filter(pk=version.pk).delete()
        if deleted:
            record_event(
                None,
                kind="p4d_version_deleted",
                message=f"p4d {version.release} is offered no more.",
                actor=by,
            )


def sandbox_host_save(*, by: User, name: str, **fields: Any) -> SandboxHost:
    """Make a host for sandboxes, or change the one of this name.

    Raises: NotAllowed, InvalidRequest, SandboxInUse (its site or address).
    """
    permissions.require(permissions.can_administer(by))
    _check(SandboxHost(name=name, **fields))
    with transaction.atomic():
        before = SandboxHost.objects.filter(name=name).values(*fields).first()
        host = SandboxHost.objects.filter(name=name).first()
        moved = host is not None and (
            host.site != fields["site"] or host.address != fields["address"]
        )
        if host is not None and moved:
            _require_unused(host)
        host, _ = SandboxHost.objects.update_or_create(name=name, defaults=fields)
        after = SandboxHost.objects.filter(pk=host.pk).values(*fields).get()
        if changes := changes_between(before or dict.fromkeys(after), after):
            record_event(
                None,
                kind="sandbox_host_saved",
                message=f"Sandboxes can run on the host {name}.",
                actor=by,
                data=changes,
            )
    return host


def sandbox_host_delete(*, by: User, host: SandboxHost) -> None:
    """Run no more sandboxes on a host.

    Raises: NotAllowed, SandboxInUse, SandboxHostInHistory.
    """
    permissions.require(permissions.can_administer(by))
    with transaction.atomic():
        _require_unused(host)
        if Sandbox.with_retired.filter(host=host).exists():
            raise refusals.SandboxHostInHistory(host=host.name)
        SandboxHost.objects.filter(pk=host.pk).delete()
        record_event(
            None,
            kind="sandbox_host_deleted",
            message=f"Sandboxes run no more on the host {host.name}.",
            actor=by,
        )


def _require_unused(host: SandboxHost) -> None:
    names = ", ".join(at_host(host).values_list("name", flat=True))
    if names:
        raise refusals.SandboxInUse(what=host.name, names=names)


def sandbox_policy_save(
    *,
    by: User,
    team: Team,
    at_most: int,
    longest_hours: int,
    team_at_most: int | None = None,
) -> SandboxPolicy:
    """Let the people of a team have sandboxes. Raises: NotAllowed, InvalidRequest."""
    permissions.require(permissions.can_administer(by))
    fields = {
        "at_most": at_most,
        "team_at_most": team_at_most,
        "longest_hours": longest_hours,
    }
    _check(SandboxPolicy(team=team, **fields))
    with transaction.atomic():
        policy, _ = SandboxPolicy.objects.update_or_create(team=team, defaults=fields)
        record_event(
            team,
            kind="sandbox_policy_saved",
            message=f"Each of its people may have {at_most} sandboxes for "
            f"{longest_hours} hours"
            + (f", and {team_at_most} together." if team_at_most else "."),
            actor=by,
        )
    return policy


def sandbox_policy_delete(*, by: User, policy: SandboxPolicy) -> None:
    """Let the people of a team have no more sandboxes. Raises: NotAllowed."""
    permissions.require(permissions.can_administer(by))
    with transaction.atomic():
        deleted, _ = SandboxPolicy.objects.filter(pk=policy.pk).delete()
        if deleted:
            record_event(
                policy.team,
                kind="sandbox_policy_deleted",
                message="Its people may have no more sandboxes.",
                actor=by,
            )


def _check(row: Any) -> None:
    """Refuse a row with invalid fields. Raises: InvalidRequest."""
    try:
        row.clean_fields()
    except ValidationError as error:
        field, messages = next(iter(error.message_dict.items()))
        raise InvalidRequest.at(field, " ".join(messages)) from error


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


def volumes_of(server: PerforceServer) -> ServerVolumes:
    """Return where a server's data is. Raises: ServerNotDescribed."""
    volumes = ServerVolumes.objects.select_related("site").filter(server=server).first()
    if volumes is None:
        raise refusals.ServerNotDescribed(server=server.name)
    return volumes


def _require_apart(host: SandboxHost, *, server_id: str) -> None:
    """Refuse the ServerID of a server, or of another sandbox.

    Raises: ServerIdOfAServer.
    """
    known = PerforceServer.objects.filter(server_id__iexact=server_id).first()
    if known is not None:
        raise refusals.ServerIdOfAServer(server=known.name, server_id=server_id)
    other = Sandbox.objects.filter(server_id__iexact=server_id).first()
    if other is not None:
        raise refusals.ServerIdOfAServer(
            server=f"The sandbox {other.name}", server_id=server_id
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


def sandbox_extend(*, by: User, sandbox: Sandbox, hours: int) -> None:
    """Let a sandbox live for so many hours from now.

    Raises: NotAllowed, InvalidRequest, NoSandboxesForYou, LeaseTooLong, SandboxMoving.
    """
    permissions.require(can_change_sandbox(by, sandbox))
    policy = policy_of(by)
    if policy is None:
        raise refusals.NoSandboxesForYou
    if hours < 1:
        raise InvalidRequest.at("hours", "Give one hour at least.")
    if hours > policy.longest_hours:
        raise refusals.LeaseTooLong(most=policy.longest_hours)
    ends = clocks.database_now() + dt.timedelta(hours=hours)
    with transaction.atomic():
        changed = (
            Sandbox.objects.filter(pk=sandbox.pk)
            .exclude(state=Sandbox.State.RETIRING)
            .update(expires_at=ends)
        )
        if not changed:
            raise _moving(sandbox)
        sandbox.refresh_from_db(fields=["expires_at"])
        record_event(
            sandbox,
            kind="sandbox_extended",
            message=f"Extended to {ends:%Y-%m-%d %H:%M} UTC.",
            actor=by,
        )


def sandbox_start(*, by: User, sandbox: Sandbox) -> Operation:
    """Begin to start the server of a stopped sandbox again, on the same clones.

    Raises: NotAllowed, SandboxMoving.
    """
    permissions.require(can_change_sandbox(by, sandbox))
    with transaction.atomic():
        return _again(
            sandbox,
            Sandbox.State.STARTING,
            SandboxOperation.START,
            message="Requested to start its server again.",
            by=by,
        )


def _again(
    sandbox: Sandbox, to: Sandbox.State, kind: str, *, message: str, by: User
) -> Operation:
    try:
        set_sandbox_state(sandbox, to, message=message, actor=by)
    except StateChanged as error:
        raise _moving(sandbox) from error
    return start_operation(kind, about=sandbox, by=by)


def sandbox_retire(
    *, by: User, sandbox: Sandbox, reason: str = "", without_host: bool = False
) -> Operation:
    """Begin to stop a sandbox's server and to destroy all that was made for it.

    It interrupts a creation. A repeated call returns the running operation. Without a
    host that does not answer, what ONTAP has is destroyed; the host ends what is left
    there when its worker is back.

    Raises: NotAllowed, SandboxMoving, SandboxHostAnswers.
    """
    permissions.require(can_change_sandbox(by, sandbox))
    if without_host and is_served(sandbox.host):
        raise refusals.SandboxHostAnswers(host=sandbox.host.name)
    kind = SandboxOperation.ABANDON if without_host else SandboxOperation.RETIRE
    with transaction.atomic():
        locked = Sandbox.with_retired.select_for_update(of=("self",)).get(pk=sandbox.pk)
        running = _running(locked)
        retires = locked.state == Sandbox.State.RETIRING
        if (
            retires
            and running is not None
            and running.kind in (kind, SandboxOperation.ABANDON)
        ):
            return running
        if running is not None:
            cancel_operation(running, message=f"{by} retired the sandbox.")
        if not retires:
            try:
                set_sandbox_state(
                    sandbox,
                    Sandbox.State.RETIRING,
                    message="Requested to retire it.",
                    reason=reason,
                    actor=by,
                )
            except StateChanged as error:
                raise _moving(sandbox) from error
        return start_operation(kind, about=sandbox, by=by)


def sandbox_retry(*, by: User, sandbox: Sandbox) -> Operation:
    """Try again what failed: the creation, a start, or the retirement.

    Raises: NotAllowed, SandboxMoving.
    """
    permissions.require(can_change_sandbox(by, sandbox))
    last = sandbox.operations.first()
    if last is not None and last.kind in RETIREMENTS:
        return sandbox_retire(by=by, sandbox=sandbox)
    if last is not None and last.kind == SandboxOperation.START:
        return sandbox_start(by=by, sandbox=sandbox)
    with transaction.atomic():
        return _again(
            sandbox,
            Sandbox.State.CREATING,
            recipe_of(sandbox).operation,
            message="Requested to try again.",
            by=by,
        )


def _running(sandbox: Sandbox) -> Operation | None:
    return sandbox.operations.filter(state=Operation.State.RUNNING).first()


def _moving(sandbox: Sandbox) -> refusals.SandboxMoving:
    sandbox.refresh_from_db()
    return refusals.SandboxMoving(
        name=sandbox.name, state=sandbox.get_state_display().lower()
    )
