"""A workspace whose template is mirrored to another site, for copies of it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from provisioner.accounts.models import User
from provisioner.copies.actions import copy_rule_set
from provisioner.copies.models import CopyRule, WorkspaceCopy
from provisioner.copies.sweeps import tend_all
from provisioner.lib import clocks
from provisioner.mirrors.actions import mirror_create
from provisioner.mirrors.models import Mirror
from provisioner.sites.models import PerforceServer
from provisioner.workspaces.models import Workspace
from tests.support.jobs import settle
from tests.support.mirrors import MirrorScene
from tests.support.requests import workspace_create


@dataclass(frozen=True, kw_only=True)
class CopyScene:
    """A ready workspace of alice without a client, and a rule to copy it."""

    mirrors: MirrorScene
    mirror: Mirror
    rule: CopyRule
    workspace: Workspace

    def tend(self) -> WorkspaceCopy:
        """Sweep, and return the copy once nothing is being done about it."""
        tend_all(now=clocks.database_now())
        return settle(self.copy)

    @property
    def copy(self) -> WorkspaceCopy:
        return WorkspaceCopy.with_deleted.select_related(
            "workspace__snapshot", "workspace__site", "site"
        ).latest("pk")

    def due_again(self) -> None:
        WorkspaceCopy.objects.update(due_at=clocks.database_now())

    def file_there(self, name: str = "file") -> str:
        """Return the text of a file in the copy."""
        array = self.mirrors.labs.destination.lab.array
        volume = array.root / "data" / "volumes" / self.copy.volume_uuid
        return (volume / name).read_text()


@pytest.fixture
def copy_scene(mirror_scene: MirrorScene, alice: User) -> CopyScene:
    PerforceServer.objects.update(checks_read_access=False)
    home = mirror_scene.template.site
    home.mount_root = str(mirror_scene.labs.source.lab.mount_root)
    home.save()
    mirror = settle(
        mirror_create(
            by=mirror_scene.by,
            template=mirror_scene.template,
            site=mirror_scene.site,
        )
    )
    workspace = settle(
        workspace_create(
            by=alice, template=mirror_scene.template, site=home, purpose="build"
        )
    )
    assert workspace.state == Workspace.State.READY, workspace.status_message
    rule = copy_rule_set(
        by=mirror_scene.by, mirror=mirror, every_minutes=60, purposes=["build"]
    )
    return CopyScene(
        mirrors=mirror_scene, mirror=mirror, rule=rule, workspace=workspace
    )
