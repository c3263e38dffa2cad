"""A mirror becomes its template's home, and the former home follows or is given up."""

from __future__ import annotations

import pytest
from django.db import transaction
from django.db.models import Q

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.retention import superfluous
from provisioner.drift.models import FarSide, Finding
from provisioner.drift.sweeps.checks import run_drift_check
from provisioner.engine.models import Step
from provisioner.lib import clocks
from provisioner.lib.refusals import ActionRefused
from provisioner.mirrors.actions import (
    mirror_delete,
    mirror_give_up,
    mirror_promote,
    mirror_reestablish,
    move_home,
)
from provisioner.mirrors.models import Mirror, MirroredSnapshot
from provisioner.mirrors.previews import promotion_preview, way_back_preview
from provisioner.mirrors.queries import snapshots_at
from provisioner.sites.models import PerforceServer
from provisioner.storage.actions import volume_policy_save
from provisioner.workspaces.models import Workspace
from tests.support.factories import (
    MirroredSnapshotFactory,
    MirrorFactory,
    SnapshotFactory,
)
from tests.support.homes import HomeScene
from tests.support.jobs import settle
from tests.support.mirrored_labs import End
from tests.support.requests import workspace_create

pytestmark = pytest.mark.integration

S = Mirror.State
RELATIONSHIPS = "/api/snapmirror/relationships*"


def promoted(scene: HomeScene) -> Mirror:
    """Promote the one mirror; return the row of the former home."""
    mirror = scene.mirror
    mirror_promote(by=scene.by, mirror=mirror)
    settle(mirror)
    assert mirror.state == S.PROMOTED, mirror.status_message
    return scene.mirror


def test_a_mirror_is_promoted_while_the_home_is_lost(
    home_scene: HomeScene, alice: User
) -> None:
    scene = home_scene
    old = settle(workspace_create(by=alice, template=scene.template, site=scene.home))
    assert old.state == Workspace.State.READY, old.status_message
    scene.labs.destination.control.set_settings(transfer_seconds=0.0)
    scene.lose_home()
    preview = promotion_preview(scene.mirror)
    assert (preview.workspaces, preview.named) == (1, [old])
    assert (preview.obstacle, preview.lost, preview.operations) == ("", [], [])

    former = promoted(scene)

    template = scene.build()
    assert (template.site, template.routed_to) == (scene.site, None)
    assert (former.site, former.state) == (scene.home, S.FORMER)
    new = settle(workspace_create(by=alice, template=template, site=scene.site))
    assert new.state == Workspace.State.READY, new.status_message
    assert new.snapshot == template.snapshots.first()
    assert list((new.path / "src").glob("new*.txt"))
    old.refresh_from_db()
    assert (old.site, old.state) == (scene.home, Workspace.State.READY)
    moved = Event.objects.get(kind="template_home_moved")
    assert moved.message == "Its home is bangalore now. It was munich."
    assert moved.actor == scene.by


def test_the_former_home_follows_and_becomes_the_home_again(
    home_scene: HomeScene,
) -> None:
    scene = home_scene
    scene.labs.destination.control.set_settings(transfer_seconds=0.0)
    Mirror.objects.update(start=Mirror.Start.BY_HAND)
    scene.build()  # is not at the mirror
    former = promoted(scene)
    scene.build()
    preview = way_back_preview(former)
    assert [each.change for each in preview.discarded] != []
    assert preview.needed == []

    mirror_reestablish(by=scene.by, mirror=former)
    settle(former)

    assert former.state == S.READY, former.status_message
    there = former.snapshots.filter(state=MirroredSnapshot.State.AVAILABLE)
    newest = there.select_related("snapshot")[0].snapshot
    assert newest == scene.template.snapshots.first()
    here = scene.labs.source.gateway
    volume = here.find_volume(former.volume_name)
    assert volume is not None
    assert (volume.is_destination, volume.junction_path) == (True, "")
    assert findings(scene) == []
    back = promoted(scene)
    template = scene.build()
    assert (template.site, back.site) == (scene.home, scene.site)
    mirror_reestablish(by=scene.by, mirror=back)
    assert settle(back).state == S.READY, back.status_message
    assert findings(scene) == []


def findings(scene: HomeScene) -> list[str]:
    """Return what the drift checks of both sites find."""
    for site in (scene.home, scene.site):
        site.refresh_from_db()
        for system in FarSide:
            run_drift_check(site, system=system)
    of_other_tests = Q(kind=Finding.Kind.CLIENT_WITHOUT_ROW) & ~Q(
        tag=scene.template.tag
    )
    found = Finding.objects.filter(resolved_at=None).exclude(of_other_tests)
    return list(found.values_list("sentence", flat=True))


def test_a_former_home_is_given_up_and_deleted(home_scene: HomeScene) -> None:
    scene = home_scene
    former = promoted(scene)
    old_name = former.volume_name
    with pytest.raises(ActionRefused):
        mirror_delete(by=scene.by, mirror=former)

    mirror_give_up(by=scene.by, mirror=former)

    assert settle(former).state == S.GIVEN_UP, former.status_message
    gateway = scene.labs.source.gateway
    assert gateway.find_volume(old_name) is not None
    assert findings(scene) == []
    with pytest.raises(ActionRefused) as refused:
        mirror_reestablish(by=scene.by, mirror=former)
    assert refused.value.code == "not_a_former_home"
    mirror_delete(by=scene.by, mirror=former)
    assert settle(former).state == S.DELETED, former.status_message
    assert gateway.find_volume(old_name) is None


def lose_replies(end: End, *paths: tuple[str, str]) -> None:
    """Let the first reply to each method at a path be lost, after its effect."""
    end.control.set_faults(
        *(
            {
                "method": method,
                "path": path,
                "drop": True,
                "when": "after",
                "times": 1,
            }
            for method, path in paths
        )
    )


def test_replies_that_are_lost_lead_to_the_same_homes(home_scene: HomeScene) -> None:
    scene = home_scene
    lose_replies(
        scene.labs.destination,
        ("PATCH", RELATIONSHIPS),
        ("DELETE", RELATIONSHIPS),
        ("PATCH", "/api/storage/volumes*"),
    )

    former = promoted(scene)

    volume = scene.labs.there.find_volume(scene.template.volume_name)
    assert volume is not None
    assert not volume.is_destination
    lose_replies(
        scene.labs.source,
        ("POST", RELATIONSHIPS),
        ("PATCH", RELATIONSHIPS),
        ("PATCH", "/api/storage/volumes*"),
    )
    mirror_reestablish(by=scene.by, mirror=former)
    assert settle(former).state == S.READY, former.status_message
    assert Step.objects.filter(attempt__gt=1).count() >= 4


def test_a_promotion_that_fails_half_way_is_begun_again(
    home_scene: HomeScene,
) -> None:
    scene, mirror = home_scene, home_scene.mirror
    PerforceServer.objects.update(p4port="127.0.0.1:9")
    mirror_promote(by=scene.by, mirror=mirror)

    assert settle(mirror).state == S.FAILED

    step = mirror.operations.latest("pk").steps.get(state=Step.State.FAILED)
    assert step.name == "client"
    assert scene.template.site == scene.home
    assert snapshots_at(scene.template, scene.site).exists()
    PerforceServer.objects.update(p4port=scene.lab.perforce["port"])
    assert promoted(scene).site == scene.home
    assert scene.build().site == scene.site


def test_other_mirrors_follow_the_new_home(snapshot: Snapshot, admin: User) -> None:
    template, home = snapshot.template, snapshot.template.site
    mirror, other = MirrorFactory.create_batch(
        2, template=template, site__perforce_server=home.perforce_server
    )
    for each in (mirror, other):
        MirroredSnapshotFactory.create(mirror=each, snapshot=snapshot)
    later = SnapshotFactory.create(template=template, name="c120.b9", change=120)
    Mirror.objects.filter(pk=mirror.pk).update(
        state=S.PROMOTING,
        start=Mirror.Start.SCHEDULE,
        cron="0 3 * * *",
        next_transfer_at=clocks.database_now(),
    )
    mirror.refresh_from_db()
    Template.objects.update(volume_uuid="old", aggregate="aggr7")
    volume_policy_save(by=admin, site=home, template=template, min_inodes=5000)

    with transaction.atomic():
        former = move_home(mirror, by=admin)

    other.refresh_from_db()
    assert other.state == S.CREATING
    assert other.operations.get().kind == "mirror_create"
    assert (former.site, former.volume_uuid) == (home, "old")
    assert former.cron == "0 3 * * *"
    assert dict(former.snapshots.values_list("snapshot__name", "state")) == {
        snapshot.name: "available",
        later.name: "only-there",
    }
    template.refresh_from_db()
    assert (template.site, template.volume_uuid) == (mirror.site, mirror.volume_uuid)
    assert template.aggregate == ""  # until it is measured there
    moved = volume_policy_save(
        by=admin, site=template.site, template=template, headroom_percent=20
    )
    assert (moved.site, moved.min_inodes) == (mirror.site, 5000)
    assert list(template.snapshots.available()) == [snapshot]
    assert superfluous(template) == []
