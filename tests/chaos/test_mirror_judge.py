"""The judge of `make chaos` sees what is wrong with a mirror at either end."""

from __future__ import annotations

from pathlib import Path

import pytest

from provisioner.mirrors.actions import mirror_create
from provisioner.mirrors.models import Mirror, MirroredSnapshot
from tests.chaos import mirror_judge
from tests.chaos.mirror_judge import MirrorJudge
from tests.chaos.witness import OntapWitness
from tests.support.mirrored_labs import PASSWORD, End, mirrored_labs, two_clusters
from tests.support.mirrors import MirrorScene, address_of, mirror_scene

__all__ = ["mirror_scene", "mirrored_labs", "two_clusters"]


@pytest.fixture
def mirror(mirror_scene: MirrorScene) -> Mirror:
    scene = mirror_scene
    made = mirror_create(by=scene.by, template=scene.template, site=scene.site)
    return scene.settled(made)


@pytest.fixture
def judge(mirror_scene: MirrorScene, monkeypatch: pytest.MonkeyPatch) -> MirrorJudge:
    monkeypatch.setattr(mirror_judge, "LOOKED_FOR_SECONDS", 0)
    labs = mirror_scene.labs
    return MirrorJudge(home=witness(labs.source), abroad=witness(labs.destination))


def witness(end: End) -> OntapWitness:
    address = address_of(end)
    return OntapWitness(
        {
            "host": "127.0.0.1",
            "port": address["ontap_port"],
            "user": address["ontap_user"],
            "password": PASSWORD,
            "ca_file": address["ontap_ca_file"],
            "root": str(end.lab.array.root),
        }
    )


def test_nothing_is_wrong_with_a_mirror_that_has_its_snapshot(
    mirror: Mirror, judge: MirrorJudge
) -> None:
    assert judge.check_at(mirror) == []
    assert judge.check_everything() == []


def test_a_copy_with_other_contents_is_lost(mirror: Mirror, judge: MirrorJudge) -> None:
    copy = mirror.snapshots.get()
    root = Path(judge.abroad.said["root"])
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
