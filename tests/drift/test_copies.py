"""Copies whose volume, relationship or row is missing, between two labs."""

from __future__ import annotations

import pytest

from provisioner.accounts.models import User
from provisioner.copies.models import WorkspaceCopy
from provisioner.drift.models import FarSide, Finding
from provisioner.drift.sweeps.checks import run_drift_check
from provisioner.lab.ontap import records
from tests.support.copies import CopyScene
from tests.support.drift_scene import K, long_ago, only, resolve
from tests.support.jobs import settle


@pytest.fixture
def copy(copy_scene: CopyScene) -> WorkspaceCopy:
    copy = copy_scene.tend()
    assert copy.state == WorkspaceCopy.State.READY, copy.status_message
    long_ago()
    return copy


def found_at_the_site(copy: WorkspaceCopy) -> list[Finding]:
    run = run_drift_check(copy.site, system=FarSide.ONTAP)
    assert not run.status_message
    return list(Finding.objects.filter(site=copy.site, resolved_at=None))


def test_a_copy_that_lost_its_relationship_is_made_anew(
    copy: WorkspaceCopy, copy_scene: CopyScene, admin: User
) -> None:
    assert found_at_the_site(copy) == []
    there = copy_scene.mirrors.labs.there
    there.delete_relationship(copy.relationship_uuid)

    found = only(found_at_the_site(copy), K.ROW_WITHOUT_RELATIONSHIP)
    assert found.copy == copy
    resolve(found, admin)

    assert found.resolution.startswith("The copy is being deleted.")
    assert settle(copy).state == WorkspaceCopy.State.DELETED
    again = copy_scene.tend()
    assert (again.pk == copy.pk, again.state) == (False, WorkspaceCopy.State.READY)


def test_a_volume_whose_copy_was_deleted_goes_with_its_relationship(
    copy: WorkspaceCopy, copy_scene: CopyScene, admin: User
) -> None:
    labs = copy_scene.mirrors.labs
    copy.snapshots.all().delete()
    WorkspaceCopy.objects.filter(pk=copy.pk).update(state="deleted")
    released = len(labs.source.lab.array.store.select(records.Destination))

    found = only(found_at_the_site(copy), K.VOLUME_WITHOUT_ROW)
    resolve(found, admin)

    assert found.resolution == f"The volume {copy.volume_name} was deleted."
    assert labs.there.find_volume(copy.volume_name) is None
    left = labs.source.lab.array.store.select(records.Destination)
    assert len(left) == released - 1
