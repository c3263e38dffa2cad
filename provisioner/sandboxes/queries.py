"""Which sandboxes there are, who may see them, and what may be had."""

from __future__ import annotations

import datetime as dt
from typing import TypeVar

from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from provisioner.accounts.models import User
from provisioner.accounts.permissions import Role, Verb, may, roles_of
from provisioner.engine.models import Operation
from provisioner.engine.workers import alive_workers, unserved
from provisioner.gateways.perforce.releases import p4d_release_in
from provisioner.insight.models import ServerConfiguration
from provisioner.lib.prepared import Prepared
from provisioner.lib.rows import with_words
from provisioner.sandboxes.models import (
    HOST_NOT_ASKED,
    LONGEST_HOURS,
    RESTING_SANDBOXES,
    P4dVersion,
    Sandbox,
    SandboxHost,
    SandboxOperation,
    SandboxPlan,
    SandboxPolicy,
    ServerVolumes,
)
from provisioner.sites.models import PerforceServer

AnyPlan = TypeVar("AnyPlan", bound=SandboxPlan)
RETIREMENTS = (SandboxOperation.RETIRE, SandboxOperation.ABANDON)
TRIES_AGAIN_AFTER = dt.timedelta(hours=1)


def is_visible(user: User, *, by: str = "") -> Q:
    """Return the condition for sandboxes of a person and of nobody else.

    A sandbox has everybody's files, so not even team mates see where it answers.
    """
    if user.is_administrator:
        return Q()
    if user.scope is not None:
        return Q(**{f"{by}pk__in": ()})
    return Q(**{f"{by}owner": user})


def sandboxes_visible_to(user: User) -> QuerySet[Sandbox]:
    """Return the sandboxes that a person may see and that are not retired."""
    return _with_rows(Sandbox.objects.filter(is_visible(user)))


def sandboxes_ever(user: User) -> QuerySet[Sandbox]:
    """Return the sandboxes that a person may see, retired or not."""
    return _with_rows(Sandbox.with_retired.filter(is_visible(user)))


def sandboxes_matching(
    user: User, *, text: str = "", state: str = ""
) -> QuerySet[Sandbox]:
    """Return the sandboxes of a filter: retired ones only if it says so."""
    is_past = state == Sandbox.State.RETIRED
    rows = sandboxes_ever(user) if is_past else sandboxes_visible_to(user)
    if state:
        rows = rows.filter(state=state)
    return with_words(rows, text, "name", "perforce_server__name")


def _with_rows(rows: QuerySet[Sandbox]) -> QuerySet[Sandbox]:
    return rows.select_related("perforce_server", "site", "host", "owner")


def plan_of(model: type[AnyPlan], server: PerforceServer) -> AnyPlan:
    """Return the plan of a server, or the usual one, switched off and not saved."""
    rows = model._default_manager.select_related("server", "host", "version")
    return rows.filter(server=server).first() or model(server=server)


def can_change_sandbox(user: User, sandbox: Sandbox) -> bool:
    """Return whether a person may extend or retire a sandbox, or try it again."""
    roles = roles_of(user)
    if sandbox.owner_id == user.pk and user.scope is None and user.is_active:
        roles.add(Role.OWNER)
    return may(user, Verb.CHANGE_SANDBOX, roles)


_OF_TEAM = Prepared(
    lambda team: SandboxPolicy.objects.select_related("team").filter(team=team),
)


def policy_of(user: User) -> SandboxPolicy | None:
    """Return what a person may have, None for nothing; administrators have no bound."""
    if user.scope is not None:
        return None
    if user.is_administrator:
        return SandboxPolicy(at_most=100, longest_hours=LONGEST_HOURS)
    if user.team_id is None:
        return None
    return _OF_TEAM.first(user.team_id)


def may_have_sandboxes(user: User) -> bool:
    return policy_of(user) is not None


def expired(now: dt.datetime) -> QuerySet[Sandbox]:
    """Return the sandboxes whose lease has ended, and that nothing moves.

    One whose retirement failed less than an hour ago is left for the next time.
    """
    failed = Operation.objects.filter(
        subject=OuterRef("subject"),
        kind__in=RETIREMENTS,
        ended_at__gt=now - TRIES_AGAIN_AFTER,
    )
    return Sandbox.objects.filter(
        ~Exists(failed), state__in=RESTING_SANDBOXES, expires_at__lte=now
    )


def waiting_for_host(now: dt.datetime) -> QuerySet[Sandbox]:
    """Return the sandboxes whose retirement has been under way for an hour."""
    long_ago = Operation.objects.filter(
        subject=OuterRef("subject"),
        kind=SandboxOperation.RETIRE,
        state=Operation.State.RUNNING,
        created_at__lte=now - TRIES_AGAIN_AFTER,
    )
    retiring = Sandbox.objects.filter(Exists(long_ago), state=Sandbox.State.RETIRING)
    return retiring.select_related("host")


def looked_after_at(host: SandboxHost) -> QuerySet[Sandbox]:
    """Return the sandboxes whose processes a host's worker looks for.

    Those that are up, or should be, and those that were retired without it.
    """
    is_up = Q(state__in=(Sandbox.State.READY, Sandbox.State.STOPPED))
    was_left = Q(state=Sandbox.State.RETIRED, status_code=HOST_NOT_ASKED)
    rows = Sandbox.with_retired.filter(is_up | was_left, host=host)
    return rows.select_related("site", "host", "perforce_server")


def is_served(host: SandboxHost) -> bool:
    """Return whether a worker at this host has reported lately."""
    return not unserved([host.queue], alive_workers())


def hosts_with_numbers() -> QuerySet[SandboxHost]:
    """Return the hosts, each with the `number` of sandboxes that take a place there."""
    taken = Count("sandboxes", ~Q(sandboxes__state=Sandbox.State.RETIRED))
    return SandboxHost.objects.select_related("site").annotate(number=taken)


def at_host(host: SandboxHost) -> QuerySet[Sandbox]:
    """Return the sandboxes that take a place at a host."""
    return Sandbox.objects.filter(host=host)


def hosts_for(
    server: PerforceServer, *, elsewhere: bool = False
) -> QuerySet[SandboxHost]:
    """Return the hosts at the site of a server's volumes, or those elsewhere."""
    homes = ServerVolumes.objects.filter(server=server).values("site")
    is_home = Q(site__in=homes)
    return SandboxHost.objects.filter(~is_home if elsewhere else is_home)


def version_of(server: PerforceServer) -> P4dVersion | None:
    """Return the version that is a server's own, as far as that was read."""
    read = ServerConfiguration.objects.filter(server=server).first()
    release = p4d_release_in(read.version) if read is not None else ""
    return P4dVersion.objects.filter(release=release).first()
