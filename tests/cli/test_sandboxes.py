"""`cloneyard sandboxes` and `cloneyard sandbox`."""

from __future__ import annotations

import pytest

from provisioner.accounts.models import Team, User
from provisioner.cli import cloneyard
from provisioner.sandboxes.models import (
    P4dVersion,
    Sandbox,
    SandboxPolicy,
    ServerVolume,
    ServerVolumes,
)
from provisioner.sites.models import PerforceServer
from tests.support.command_line import CommandLine, ended_with, printed
from tests.support.factories import SandboxFactory, SandboxHostFactory

pytestmark = pytest.mark.django_db(transaction=True)


def test_somebody_with_a_policy_asks_for_a_sandbox_and_retires_it(
    command_line: CommandLine, alice: User
) -> None:
    host = SandboxHostFactory.create(name="isolated")
    server = host.site.perforce_server
    volumes = ServerVolumes.objects.create(server=server, site=host.site)
    for role in ("db", "journal", "depot"):
        ServerVolume.objects.create(of=volumes, role=role, volume="p4", path=role)
    P4dVersion.objects.create(release="2024.2", path="/opt/p4d")
    create = (
        *("sandbox", "create", "case", "--of", server.name, "--no-wait"),
        *("--version", "2024.2", "--host", "isolated", "--hours", "4"),
    )
    refused = command_line.run(*create)
    ended_with(
        refused, cloneyard.REFUSED, saying="Your team is not allowed to have sandboxes"
    )
    alice.team = Team.objects.create(name="Tools")
    alice.save()
    SandboxPolicy.objects.create(team=alice.team)

    PerforceServer.objects.update(server_id="production", p4port="127.0.0.1:1666")
    for option, value, said in (
        ("--server-id", "PRODUCTION", "has the ServerID production."),
        ("--port", "1666", "answers at 1666."),
    ):
        refused = command_line.run(*create, option, value)
        ended_with(refused, cloneyard.REFUSED, saying=said)

    made = printed(command_line.run(*create, "--json"))

    assert (made["state"], made["p4port"]) == ("creating", "127.0.0.1:16660")
    assert "case  " in command_line.run("sandboxes").stdout
    extended = command_line.run("sandbox", "extend", "case", "--hours", "9")
    assert extended.returncode == 0
    assert "127.0.0.1:16660" in extended.stdout
    retired = command_line.run("sandbox", "retire", "case", "--no-wait")
    assert "case is being retired" in retired.stdout
    again = command_line.run("sandbox", "start", "case")
    ended_with(again, cloneyard.REFUSED, saying="is retiring")


def test_nobody_finds_the_sandbox_of_another(command_line: CommandLine) -> None:
    sandbox = SandboxFactory.create()

    found = command_line.run("sandbox", "retire", sandbox.name)

    ended_with(found, cloneyard.NOT_FOUND, saying=f"“{sandbox.name}”")
    incomplete = command_line.run("sandbox", "create", "case")
    ended_with(incomplete, cloneyard.USAGE, saying="--of")
    assert Sandbox.objects.get().state == Sandbox.State.READY
