"""The judge of `make chaos` sees what is wrong with a copy of a workspace."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from provisioner.copies.models import CopiedSnapshot, WorkspaceCopy
from tests.chaos.copies import what_is_wrong
from tests.chaos.witness import OntapWitness
from tests.chaos.witnesses import witness
from tests.support.copies import CopyScene


@pytest.fixture
def clusters(copy_scene: CopyScene) -> Mapping[int, OntapWitness]:
    mirrors = copy_scene.mirrors
    return {
        mirrors.template.site_id: witness(mirrors.labs.source),
        mirrors.site.pk: witness(mirrors.labs.destination),
    }


def test_what_rows_and_both_ends_of_a_copy_do_not_have_is_an_orphan(
    copy_scene: CopyScene, clusters: Mapping[int, OntapWitness]
) -> None:
    copy = copy_scene.tend()
    assert copy.state == WorkspaceCopy.State.READY
    assert what_is_wrong(copy, clusters) == []

    CopiedSnapshot.objects.update(name="cloneyard-copy-other")
    kinds = [fault.kind for fault in what_is_wrong(copy, clusters)]
    assert kinds == ["orphans", "lost"]
    CopiedSnapshot.objects.all().delete()
    copy.state = WorkspaceCopy.State.DELETED
    said = [fault.what for fault in what_is_wrong(copy, clusters)]
    assert len(said) == 4, said
