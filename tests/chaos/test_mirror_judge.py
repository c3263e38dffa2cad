"""The judge of `make chaos` sees what is wrong with a mirror at either end."""

from __future__ import annotations

from pathlib import Path

import pytest

from provisioner.mirrors.actions import mirror_create
from provisioner.mirrors.models import Mirror, MirroredSnapshot
from tests.chaos import mirror_judge
from tests.chaos.mirror_judge import MirrorJudge
from tests.chaos.witnesses import witness
from tests.support.mirrors import MirrorScene


@pytest.fixture
def mirror(mirror_scene: MirrorScene) -> Mirror:
    scene = mirror_scene
    made = mirror_create(by=scene.by, template=scene.template, site=scene.site)
    return scene.settled(made)


@pytest.fixture
def judge(mirror_scene: MirrorScene, monkeypatch: pytest.MonkeyPatch) -> MirrorJudge:
    monkeypatch.setattr(mirror_judge, "LOOKED_FOR_SECONDS", 0)
    labs = mirror_scene.labs
    home, site = mirror_scene.template.site, mirror_scene.site
    return MirrorJudge(
        {home.pk: witness(labs.source), site.pk: witness(labs.destination)}
    )


def test_nothing_is_wrong_with_a_mirror_that_has_its_snapshot(
    mirror: Mirror, judge: MirrorJudge
) -> None:
    assert judge.check_at(mirror) == []
    assert judge.check_everything() == []


def test_a_copy_with_other_contents_is_lost(mirror: Mirror, judge: MirrorJudge) -> None:
    copy = mirror.snapshots.get()
    root = Path(judge.clusters[mirror.site_id].said["root"])
    (root / "data" / "snapshots" / copy.ontap_uuid / "file").write_text("another")

    assert [fault.kind for fault in judge.check_at(mirror)] == ["lost"]


def test_what_rows_and_clusters_do_not_both_have_is_an_orphan(
    mirror: Mirror, judge: MirrorJudge
) -> None:
    states = MirroredSnapshot.State
    mirror.snapshots.update(ontap_uuid="gone")
    assert [fault.kind for fault in judge.check_at(mirror)] == ["orphans"]
    mirror.snapshots.update(state=states.TRANSFERRING)
    assert [fault.kind for fault in judge.check_at(mirror)] == ["stuck"]
    mirror.snapshots.all().delete()
    assert [fault.kind for fault in judge.check_at(mirror)] == ["orphans"]
    Mirror.objects.filter(pk=mirror.pk).update(state=Mirror.State.DELETED)

    assert [fault.kind for fault in judge.check_at(mirror)] == ["orphans"] * 3
    assert [fault.kind for fault in judge.check_everything()] == ["orphans"] * 2


def test_a_promoted_mirror_is_the_home_and_its_relationship_is_gone(
    mirror: Mirror, judge: MirrorJudge
) -> None:
    relationship = mirror.relationship_uuid
    Mirror.objects.filter(pk=mirror.pk).update(state=Mirror.State.PROMOTED)
    mirror.snapshots.update(state=MirroredSnapshot.State.GONE)

    said = [fault.what for fault in judge.check_at(mirror)]

    assert len(said) == 3, said
    assert said[-1].startswith("promoted, and the home is at munich")
    Mirror.with_deleted.filter(pk=mirror.pk).update(
        state=Mirror.State.DELETED, relationship_uuid=relationship
    )
    assert len(judge.check_everything()) == 2
