"""Workspaces are copied wherever they live, before and after a promotion."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from provisioner.accounts.models import User
from provisioner.catalog.models import Template
from provisioner.copies.actions import copy_rule_set
from provisioner.copies.models import WorkspaceCopy
from provisioner.copies.queries import RETRIED_AFTER, obstacle_of, places_of
from provisioner.copies.sweeps import tend_all
from provisioner.lib import clocks
from provisioner.mirrors.actions import mirror_promote, mirror_reestablish
from provisioner.mirrors.models import Mirror
from provisioner.sites.models import Site
from provisioner.workspaces.models import Workspace
from tests.support.homes import HomeScene
from tests.support.jobs import settle
from tests.support.requests import workspace_create

READY = WorkspaceCopy.State.READY


@pytest.fixture
def scene(home_scene: HomeScene) -> Iterator[HomeScene]:
    copy_rule_set(
        by=home_scene.by,
        mirror=home_scene.mirror,
        every_minutes=60,
        purposes=["build"],
    )
    yield home_scene
    for end in (home_scene.labs.source, home_scene.labs.destination):
        end.heal()


def made(scene: HomeScene, alice: User, site: Site) -> Workspace:
    """Return a ready workspace of the template at a site."""
    template = Template.objects.get(pk=scene.template.pk)  # its home may have moved
    asked = workspace_create(by=alice, template=template, site=site, purpose="build")
    workspace = settle(asked)
    assert workspace.state == Workspace.State.READY, workspace.status_message
    return workspace


def copied(workspace: Workspace) -> WorkspaceCopy:
    """Sweep for all copies, and return the workspace's one."""
    WorkspaceCopy.objects.update(due_at=clocks.database_now())
    tend_all(now=clocks.database_now() + RETRIED_AFTER)
    return settle(WorkspaceCopy.objects.select_related("site").get(workspace=workspace))


@pytest.mark.integration
def test_nothing_stops_being_copied_when_the_home_moves(
    scene: HomeScene, alice: User
) -> None:
    here, there = (made(scene, alice, site) for site in (scene.home, scene.site))
    for workspace, site in ((here, scene.site), (there, scene.home)):
        copy = copied(workspace)
        assert (copy.site, copy.state) == (site, READY), copy.status_message

    mirror_promote(by=scene.by, mirror=scene.mirror)

    settle(scene.mirror)
    assert scene.mirror.state == Mirror.State.FORMER
    for workspace in (here, there):
        before = WorkspaceCopy.objects.get(workspace=workspace)
        (workspace.path / "later").write_text("later")
        copy = copied(workspace)
        assert (copy.pk, copy.state) == (before.pk, READY), copy.status_message
        assert copy.snapshots.get().bytes == len("later")

    # What is made at the new home has nowhere to go until the old one follows.
    new = made(scene, alice, scene.site)
    waiting = copied(new)
    assert (waiting.site, waiting.state) == (scene.home, WorkspaceCopy.State.WAITING)
    assert "re-established" in obstacle_of(waiting, places_of([waiting])[waiting.pk])
    mirror_reestablish(by=scene.by, mirror=scene.mirror)
    former = settle(scene.mirror)
    assert former.state == Mirror.State.READY, former.status_message
    assert copied(new).state == READY
    assert WorkspaceCopy.objects.count() == 3
