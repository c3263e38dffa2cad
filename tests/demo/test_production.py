"""The demo's second server: sandboxes, checkpoints, verifications and drills of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from provisioner.accounts.models import User
from provisioner.demo import production, seed, spare
from provisioner.demo.production import Production
from provisioner.drills.actions import drill_start
from provisioner.drills.models import Drill
from provisioner.gateways import registry
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.recipes.actions import checkpoint_make, verification_make
from provisioner.recipes.models import Checkpoint, Verification
from provisioner.sandboxes.actions.creating import sandbox_create
from provisioner.sandboxes.models import P4dVersion, Sandbox, SandboxHost
from provisioner.sandboxes.steps.run import program_of
from provisioner.sites.models import PerforceServer, Site
from tests.support.jobs import settle
from tests.support.sandboxes import PASSWORD
from tests.support.two_sites import far_site, lab

pytestmark = [pytest.mark.integration, pytest.mark.django_db(transaction=True)]

__all__ = ["far_site", "lab"]


@pytest.fixture
def demo(lab_site: Site, far_site: Site, settings: Settings) -> Iterator[Production]:
    var = Path(lab_site.mount_root).parents[2] / "demo-var"
    (var / "demo").mkdir(parents=True)
    for directory in (var, var / "demo"):
        directory.chmod(0o755)
    settings.VAR_DIR = var
    Site.objects.update(export_clients=["127.0.0.1"])
    seed.ensure_people()
    made = Production(lab_site, password=PASSWORD)
    yield made
    made.stop()
    there = registry.ontap(far_site)
    for replica in spare.REPLICAS.values():
        if (relationship := there.find_relationship(replica)) is not None:
            there.end_relationship(relationship)
    home = registry.ontap(lab_site)
    for source in spare.REPLICAS:
        home.release_all(source)
    for group in home.list_groups():
        home.delete_group(group.uuid)
    delete_volumes(home)
    delete_volumes(there)


def delete_volumes(gateway: OntapGateway) -> None:
    volumes = gateway.list_volumes()
    for volume in sorted(volumes, key=lambda each: "sandbox" not in each.name):
        if volume.name.startswith(("cy_sandbox", "prod_")):
            gateway.delete_volume(volume.uuid, force=True)


def test_all_that_administrators_do_with_a_server_can_be_tried(
    demo: Production, far_site: Site
) -> None:
    server, admin = demo.start(), User.objects.get(username="admin")
    spare.ensure_spare(demo, server=server, site=Site.objects.get(pk=far_site.pk))

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
    settle(checkpoint_make(by=admin, server=server))
    assert Checkpoint.objects.get().is_proven
    settle(verification_make(by=admin, server=server))
    assert Verification.objects.get().ended_at is not None
    settle(drill_start(by=admin, server=server).sandbox)
    drill = Drill.objects.select_related("sandbox__site").get()
    assert (drill.outcome, drill.sandbox.site) == ("Passed", far_site), drill.trouble
    demo.stop()
    assert program_of(sandbox).processes() == []
    # Its data is there the next time, and the other site has it anew.
    again = demo.start()
    spare.ensure_spare(demo, server=again, site=Site.objects.get(pk=far_site.pk))
    assert (again.pk, SandboxHost.objects.count()) == (server.pk, 2)
