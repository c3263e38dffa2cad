"""What sandboxes need, as pages show it."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from provisioner.accounts.models import User
from provisioner.engine.workers import alive_workers, unserved
from provisioner.lib import schedules
from provisioner.sandboxes.models import (
    P4dVersion,
    Sandbox,
    SandboxHost,
    SandboxPlan,
    SandboxPolicy,
    ServerVolumes,
)
from provisioner.sandboxes.queries import hosts_with_numbers
from provisioner.sites.models import PerforceServer


@dataclass(frozen=True, kw_only=True)
class DescribedServer:
    """A server, and where its data is; None: nobody said it."""

    server: PerforceServer
    volumes: ServerVolumes | None


@dataclass(frozen=True, kw_only=True)
class HostInService:
    """A host, and whether its worker has reported lately."""

    host: SandboxHost
    is_served: bool


@dataclass(frozen=True, kw_only=True)
class SetupOverview:
    """Servers, versions, hosts with the number of their sandboxes, and policies."""

    servers: list[DescribedServer]
    versions: list[P4dVersion]
    hosts: list[HostInService]
    policies: list[SandboxPolicy]


def setup_overview() -> SetupOverview:
    """Return what the page of the setup shows, in a query for each kind."""
    described = {
        volumes.server_id: volumes
        for volumes in ServerVolumes.objects.select_related("site").prefetch_related(
            "places"
        )
    }
    workers = alive_workers()
    return SetupOverview(
        servers=[
            DescribedServer(server=server, volumes=described.get(server.pk))
            for server in PerforceServer.objects.order_by("name")
        ],
        versions=list(P4dVersion.objects.all()),
        hosts=[
            HostInService(host=host, is_served=not unserved([host.queue], workers))
            for host in hosts_with_numbers()
        ],
        policies=list(SandboxPolicy.objects.select_related("team")),
    )


def limits_text(user: User, policy: SandboxPolicy) -> str:
    """Return as sentences what a person has of sandboxes, and may have."""
    have = Sandbox.objects.filter(owner=user).count()
    hours = f"{policy.longest_hours} hours"
    said = [f"You have {have} of {policy.at_most} sandboxes, for {hours} each at most."]
    if policy.team_at_most is not None:
        all_have = Sandbox.objects.filter(owner__team=policy.team_id).count()
        said.append(f"{policy.team.name} has {all_have} of {policy.team_at_most}.")
    return " ".join(said)


def missing_for_sandboxes() -> list[str]:
    """Return what is missing before anybody can have a sandbox, as sentences."""
    needed = (
        (ServerVolumes, "No server's volumes are described yet."),
        (P4dVersion, "No version of p4d is named."),
        (SandboxHost, "There is no host for sandboxes."),
    )
    return [said for model, said in needed if not model.objects.exists()]


@dataclass(frozen=True, kw_only=True)
class PlanOverview:
    """A server that can have sandboxes, its plan, and when the next is due."""

    server: PerforceServer
    plan: SandboxPlan | None
    next_at: dt.datetime | None


def plan_overviews(model: type[SandboxPlan], *, now: dt.datetime) -> list[PlanOverview]:
    """Return the servers whose volumes are described, with their plans. A query."""
    plans = model._default_manager.select_related("host", "version")
    of = {plan.server_id: plan for plan in plans}
    servers = PerforceServer.objects.filter(volumes__isnull=False)
    found = []
    for server in servers.order_by("name"):
        plan = of.get(server.pk)
        is_on = plan is not None and plan.is_on
        next_at = schedules.next_time(plan.cron, after=now) if plan and is_on else None
        found.append(PlanOverview(server=server, plan=plan, next_at=next_at))
    return found
