"""The demo's second server, which sandboxes are made of."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django import Settings

from provisioner.accounts.models import User
from provisioner.demo import production, seed
from provisioner.gateways import registry
from provisioner.sandboxes.actions.creating import sandbox_create
from provisioner.sandboxes.models import P4dVersion, Sandbox, SandboxHost
from provisioner.sandboxes.steps.run import program_of
from provisioner.sites.models import PerforceServer, Site
from tests.support.jobs import settle
from tests.support.sandboxes import PASSWORD

pytestmark = [pytest.mark.integration, pytest.mark.django_db(transaction=True)]


def test_a_sandbox_is_made_of_it_and_ends_with_the_demo(
    lab_site: Site, settings: Settings
) -> None:
    var = Path(lab_site.mount_root).parents[2] / "demo-var"
    (var / "demo").mkdir(parents=True)
    for directory in (var, var / "demo"):
        directory.chmod(0o755)
    settings.VAR_DIR = var
    seed.ensure_people()
    demo = production.Production(lab_site, password=PASSWORD)
    gateway = registry.ontap(lab_site)
    try:
        demo.start()
        sandbox = settle(
            sandbox_create(
                by=User.objects.get(username="alice"),
                server=PerforceServer.objects.get(name=production.NAME),
                name="case",
                purpose=Sandbox.Purpose.PATCH,
                version=P4dVersion.objects.get(release="2025.1"),
                host=SandboxHost.objects.get(name=production.HOST),
                hours=1,
            )
        )
        assert sandbox.state == Sandbox.State.READY, sandbox.status_message
        demo.stop()
        assert program_of(sandbox).processes() == []
        # Its data is there the next time.
        demo.start()
    finally:
        demo.stop()
        for group in gateway.list_groups():
            gateway.delete_group(group.uuid)
        volumes = gateway.list_volumes()
        for volume in sorted(volumes, key=lambda each: "sandbox" not in each.name):
            if volume.name.startswith(("cy_sandbox", "prod_")):
                gateway.delete_volume(volume.uuid, force=True)
