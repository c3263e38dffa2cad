"""Files of a copy are compared with what was published, before anybody gets it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest
from django.test import Client
from django.utils.timezone import now

from provisioner.audit_log.models import Event
from provisioner.catalog.models import Snapshot
from provisioner.engine.models import Step, WorkerQueues
from provisioner.engine.overviews import SOON
from provisioner.engine.queues import STORAGE
from provisioner.gateways.hosts.file_digests import differing_files, sample_files
from provisioner.mirrors.actions import mirror_create, mirror_delete
from provisioner.mirrors.models import Mirror, MirroredSnapshot
from provisioner.mirrors.queries import snapshots_at
from provisioner.mirrors.sweeps import COMPARISON_WAITS, end_waits
from tests.support.jobs import run_jobs_once
from tests.support.mirrors import MirrorScene
from tests.support.ontap_volumes import fill
from tests.support.workers import start_worker


@pytest.fixture
def published(mirror_scene: MirrorScene) -> Snapshot:
    """A snapshot with digests of some files, and a worker at the mirror's site."""
    scene = mirror_scene
    scene.site.mount_root = str(scene.labs.destination.lab.mount_root)
    scene.site.save()
    start_worker("blr-1", scene.site.host_queue)
    snapshot = Snapshot.objects.get(template=scene.template)
    snapshots = scene.labs.source.lab.array.root / "data" / "snapshots"
    sample = sample_files(snapshots / snapshot.ontap_uuid, seed="1")
    Snapshot.objects.update(sample=[asdict(each) for each in sample])
    return snapshot


def create(scene: MirrorScene) -> Mirror:
    return scene.settled(
        mirror_create(by=scene.by, template=scene.template, site=scene.site)
    )


def test_a_copy_with_the_published_files_is_available_and_unmounted_again(
    mirror_scene: MirrorScene, published: Snapshot
) -> None:
    mirror = create(mirror_scene)

    assert mirror.state == Mirror.State.READY, mirror.status_message
    assert mirror.snapshots.get().compared_files == 1
    [told] = Event.objects.filter(message__startswith="c100.b1 is available")
    assert told.message.endswith("1 files were compared.")
    volume = mirror_scene.labs.there.get_volume(mirror.volume_uuid)
    assert volume.junction_path == ""
    assert volume.export_policy == mirror.site.templates_policy


def test_a_copy_with_other_files_is_not_given_to_anybody(
    mirror_scene: MirrorScene, published: Snapshot
) -> None:
    published.refresh_from_db()
    altered = [{**each, "digest": "0" * 64} for each in published.sample]
    Snapshot.objects.update(sample=altered)

    mirror = create(mirror_scene)

    assert (mirror.state, mirror.status_code) == ("failed", "mirrored_snapshot_altered")
    assert "1 of 1 files of c100.b1 at bangalore differ" in mirror.status_message
    assert "from what was published: file." in mirror.status_message
    assert mirror.snapshots.get().state == MirroredSnapshot.State.FAILED
    assert not snapshots_at(mirror.template, mirror.site).exists()
    mirror_delete(by=mirror_scene.by, mirror=mirror)
    assert mirror_scene.settled(mirror).state == Mirror.State.DELETED


def test_without_a_worker_at_the_site_only_versions_are_compared(
    mirror_scene: MirrorScene, published: Snapshot
) -> None:
    WorkerQueues.objects.all().delete()

    mirror = create(mirror_scene)

    assert mirror.snapshots.get().compared_files == 0
    [told] = Event.objects.filter(message__startswith="c100.b1 is available")
    assert "Only its version was compared" in told.message


def test_a_comparison_waits_for_a_worker_and_says_so_but_not_without_an_end(
    mirror_scene: MirrorScene, published: Snapshot, as_admin: Client
) -> None:
    scene = mirror_scene
    mirror = mirror_create(by=scene.by, template=scene.template, site=scene.site)
    run_jobs_once(queues=[STORAGE])
    waiting = Step.objects.filter(name="compare", state=Step.State.QUEUED)
    waiting.update(queued_at=now() - SOON)
    page = f"/operations/{waiting.get().operation_id}/"
    said = f"No running worker serves the queue {scene.site.host_queue}."
    end_waits(now=now() + COMPARISON_WAITS)
    assert said not in as_admin.get(page).text
    assert waiting.exists(), "its worker may be busy"

    WorkerQueues.objects.all().delete()
    assert said in as_admin.get(page).text
    end_waits(now=now())
    assert waiting.exists(), "a worker that restarts is waited for"
    end_waits(now=now() + COMPARISON_WAITS)
    scene.settled(mirror)

    assert mirror.state == Mirror.State.READY, mirror.status_message
    assert mirror.snapshots.get().compared_files == 0
    assert snapshots_at(mirror.template, mirror.site).exists()
    assert mirror_scene.labs.there.get_volume(mirror.volume_uuid).junction_path == ""


def test_a_sample_names_regular_files_and_tells_which_differ(tmp_path: Path) -> None:
    fill(tmp_path)
    sample = sample_files(tmp_path, seed="a build")

    assert sample == sample_files(tmp_path, seed="a build")
    paths = {each.path for each in sample}
    assert paths == {"deep/er/naïve name", "deep/linked", "deep/run", "secret"}
    assert differing_files(tmp_path, sample) == []

    (tmp_path / "deep" / "run").write_text("other")
    (tmp_path / "secret").unlink()
    (tmp_path / "secret").symlink_to("deep/linked")
    (tmp_path / "deep" / "er").rename(tmp_path / "moved")
    (tmp_path / "deep" / "er").symlink_to("../moved")
    assert differing_files(tmp_path, sample) == [
        "deep/er/naïve name",
        "deep/run",
        "secret",
    ]
