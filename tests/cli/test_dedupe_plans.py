"""`cloneyard dedupe-plans`, for administrators."""

from __future__ import annotations

import pytest

from provisioner.accounts.models import User
from provisioner.accounts.tokens import token_create
from provisioner.cli import cloneyard
from provisioner.sites.models import Site
from tests.support.command_line import CommandLine, ended_with, printed
from tests.support.factories import SiteFactory

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_administrator_lists_and_switches_plans(
    command_line: CommandLine, admin: User
) -> None:
    site: Site = SiteFactory.create()
    hers = command_line.run("dedupe-plans")
    ended_with(hers, cloneyard.REFUSED, saying="You may not do this")
    _, secret = token_create(by=admin)
    command_line.environment["CLONEYARD_TOKEN"] = secret

    assert f"{site.name}  off" in command_line.run("dedupe-plans").stdout
    assert command_line.run("dedupe-plans", site.name, "--on").returncode == 0
    [plan] = printed(command_line.run("dedupe-plans", site.name, "--json"))
    assert plan["is_on"]
    of_all = command_line.run("dedupe-plans", "--off")
    ended_with(of_all, cloneyard.USAGE, saying="Name the site")
    nowhere = command_line.run("dedupe-plans", "oslo")
    ended_with(nowhere, cloneyard.NOT_FOUND, saying="“oslo”")
