"""A template at one site whose snapshot is mirrored to another, in the lab."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot, Template
from provisioner.mirrors import actions
from provisioner.mirrors.models import Mirror
from provisioner.sites.models import Site
from tests.support.factories import (
    PerforceServerFactory,
    SiteFactory,
    SnapshotFactory,
    TemplateFactory,
)
from tests.support.jobs import settle
from tests.support.mirrored_labs import PASSWORD, End, MirroredLabs, write


@dataclass(frozen=True, kw_only=True)
class MirrorScene:
    """A template with a published snapshot, and the site to mirror it to."""

    labs: MirroredLabs
    template: Template
    site: Site
    by: User

    def publish(self, name: str) -> Snapshot:
        taken = self.labs.source.gateway.create_snapshot(
            self.template.volume_uuid, name=name, comment=""
        )
        return SnapshotFactory.create(
            template=self.template, name=name, ontap_uuid=taken.uuid
        )

    def settled(self, mirror: Mirror) -> Mirror:
        """Return the mirror once nothing is being done about it."""
        return settle(mirror)


@pytest.fixture
def mirror_scene(
    mirrored_labs: MirroredLabs,
    admin: User,
    jobs_emptied: None,
    settings: Any,
) -> MirrorScene:
    settings.SITE_SECRET = lambda name, *, key: PASSWORD
    settings.STEP_GIVE_UP_SECONDS = 5
    server = PerforceServerFactory.create()
    home, site = (
        SiteFactory.create(name=name, perforce_server=server, **address_of(end))
        for name, end in (
            ("munich", mirrored_labs.source),
            ("bangalore", mirrored_labs.destination),
        )
    )
    template = TemplateFactory.create(site=home)
    volume = mirrored_labs.source.make_volume(template.volume_name)
    write(mirrored_labs.source, volume, "built")
    template.volume_uuid = volume.uuid
    template.actual_size_bytes = volume.size_bytes
    template.save()
    scene = MirrorScene(labs=mirrored_labs, template=template, site=site, by=admin)
    scene.publish("c100.b1")
    return scene


@pytest.fixture
def connectable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ONTAP of both ends say yes where a test has none."""
    monkeypatch.setattr(
        actions, "require_connectable", lambda template, site, *, aggregate: None
    )


def address_of(end: End) -> dict[str, Any]:
    config = end.lab.config
    return {
        "ontap_port": end.lab.port,
        "ontap_user": config.user,
        "ontap_ca_file": str(end.lab.ca_file),
        "svm": config.svm,
        "aggregate": config.aggregate,
    }
