"""What sandboxes need, as pages show it."""

from __future__ import annotations

from dataclasses import dataclass

from provisioner.accounts.models import User
from provisioner.engine.workers import alive_workers, unserved
from provisioner.sandboxes.models import (
    P4dVersion,
    Sandbox,
    SandboxHost,
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
    """A host, and whether its worker was heard lately."""

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
        (ServerVolumes, "Nobody has said which volumes a server is on."),
        (P4dVersion, "No version of p4d is named."),
        (SandboxHost, "There is no host for sandboxes."),
    )
    return [said for model, said in needed if not model.objects.exists()]
