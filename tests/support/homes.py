"""A template that is built at one site and mirrored to another, in the lab."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

import pytest

from provisioner.accounts.models import User
from provisioner.catalog.actions.templates import template_build
from provisioner.catalog.models import Template
from provisioner.mirrors.actions import mirror_create
from provisioner.mirrors.models import Mirror
from provisioner.sites.models import PerforceServer, ServerKind, Site
from tests.support.jobs import settle
from tests.support.lab import BUILD, DEPOT, Lab
from tests.support.mirrored_labs import PASSWORD, MirroredLabs
from tests.support.mirrors import MirrorScene
from tests.support.submits import submit

CLOSED_PORT = 9


@dataclass(frozen=True, kw_only=True)
class HomeScene:
    """A mirror that has the first snapshot of a template, and both sites."""

    labs: MirroredLabs
    lab: Lab
    template: Template
    home: Site
    site: Site
    by: User

    @property
    def mirror(self) -> Mirror:
        """The template's one mirror, with fresh rows."""
        return Mirror.objects.select_related(
            "template__site__perforce_server", "site__perforce_server"
        ).get(template=self.template)

    def build(self) -> Template:
        """Build the template from a new change, and wait for its transfer."""
        submit(self.lab, path=f"//depot/{DEPOT}/src/new{uuid.uuid4().hex[:8]}.txt")
        template = Template.objects.get(pk=self.template.pk)
        template_build(by=self.by, template=template)
        settle(template)
        assert template.state == Template.State.READY, template.status_message
        return template

    def lose_home(self) -> None:
        """Let nothing answer at the former home, nor at a build server of it."""
        Site.objects.filter(pk=self.home.pk).update(ontap_port=CLOSED_PORT)
        lost = PerforceServer.objects.create(
            name="lost",
            kind=ServerKind.BUILD,
            server_id="lost",
            upstream=self.home.perforce_server,
            p4port=f"127.0.0.1:{CLOSED_PORT}",
            p4user="cloneyard",
        )
        Template.objects.filter(pk=self.template.pk).update(
            routed_to=lost, routed_because="Rule 1: Builds of templates."
        )


@pytest.fixture
def home_scene(mirror_scene: MirrorScene, lab: Lab, settings: Any) -> HomeScene:
    lab.break_perforce()  # what an earlier test left in force
    secrets = {"ONTAP_PASSWORD": PASSWORD, "P4PASSWD": lab.perforce["password"]}
    settings.SITE_SECRET = lambda name, *, key: secrets[name]
    settings.LOG_DIR = lab.root / "logs"
    PerforceServer.objects.update(
        p4port=lab.perforce["port"],
        p4user=lab.perforce["user"],
        checks_read_access=False,
    )
    labs, home = mirror_scene.labs, mirror_scene.template.site
    for site, end in ((home, labs.source), (mirror_scene.site, labs.destination)):
        Site.objects.filter(pk=site.pk).update(mount_root=str(end.lab.mount_root))
    labs.source.gateway.delete_volume(mirror_scene.template.volume_uuid, force=True)
    mirror_scene.template.snapshots.all().delete()
    Template.objects.filter(pk=mirror_scene.template.pk).update(
        view=f"//depot/{DEPOT}/... //any/...",
        build_command=BUILD,
        ignore_patterns="out\n",
        volume_size_bytes=100 * 2**20,
        volume_uuid="",
        actual_size_bytes=None,
    )
    template = Template.objects.select_related("site").get(pk=mirror_scene.template.pk)
    template_build(by=mirror_scene.by, template=template)
    settle(template)
    assert template.state == Template.State.READY, template.status_message
    scene = HomeScene(
        labs=labs,
        lab=lab,
        template=template,
        home=home,
        site=Site.objects.get(pk=mirror_scene.site.pk),
        by=mirror_scene.by,
    )
    mirror = settle(mirror_create(by=scene.by, template=template, site=scene.site))
    assert mirror.state == Mirror.State.READY, mirror.status_message
    return scene
