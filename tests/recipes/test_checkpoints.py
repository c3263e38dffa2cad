"""Checkpoints: made from a copy, proved elsewhere, kept, and nothing else is left."""

from __future__ import annotations

import datetime as dt
import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from provisioner.audit_log.models import Event
from provisioner.engine import subjects, workflow
from provisioner.engine.models import Step
from provisioner.lab.perforce.p4d import launcher
from provisioner.lib import clocks
from provisioner.lib.typed_json import to_json
from provisioner.recipes.actions import checkpoint_make, checkpoint_plan_save
from provisioner.recipes.models import Checkpoint, CheckpointPlan
from provisioner.recipes.workflows import CHECKPOINT
from provisioner.sandboxes.actions.keeping import sandbox_retire, sandbox_retry
from provisioner.sandboxes.models import P4dVersion, Sandbox, SandboxVolume
from tests.support.jobs import settle
from tests.support.sandboxes import (
    SandboxScene,
    free_port,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.integration]

NOW = dt.datetime(2026, 11, 29, 2, 30, tzinfo=dt.UTC)


@pytest.fixture
def place(sandbox_scene: SandboxScene) -> Path:
    """The directory in which the plan of the original keeps checkpoints."""
    return planned(sandbox_scene)


def planned(scene: SandboxScene) -> Path:
    # The lab, and what is beside it, serves other tests, too.
    place = Path(tempfile.mkdtemp(prefix="checkpoints-", dir=scene.scratch))
    if os.geteuid() == 0:
        os.chown(place, scene.host.uid, scene.host.gid)
    checkpoint_plan_save(
        by=scene.by,
        server=scene.server,
        host=scene.host,
        version=scene.version,
        directory=str(place),
        keep_daily=1,
        keep_weekly=0,
    )
    return place


def make(scene: SandboxScene, **given: Any) -> Sandbox:
    return settle(checkpoint_make(by=scene.by, server=scene.server, **given))


def test_a_checkpoint_restored_elsewhere_has_what_the_original_had(
    sandbox_scene: SandboxScene, place: Path
) -> None:
    scene = sandbox_scene
    before = scene.facts(scene.server.p4port)

    sandbox = make(scene)

    assert sandbox.state == Sandbox.State.RETIRED, sandbox.status_message
    made = Checkpoint.objects.get()
    assert (made.is_proven, made.remark, made.change) == (True, "", 2)
    assert made.tables["db.change"] == 2
    assert made.size_bytes == Path(made.path).stat().st_size
    assert scene.left() == []
    assert sorted(each.name for each in place.iterdir()) == [
        Path(made.path).name,
        f"{Path(made.path).name}.md5",
    ]
    plan = CheckpointPlan.objects.get()
    assert not plan.has_failed
    assert "change 2" in plan.status
    root = place / "restored"
    root.mkdir()
    if os.geteuid() == 0:
        os.chown(root, scene.host.uid, scene.host.gid)
    restored = replace(
        scene.original, root=root, journal=root / "journal", log=root / "log"
    )
    restored.restore(Path(made.path), within_seconds=60)
    port = f"127.0.0.1:{free_port()}"
    restored.start(port)
    # What stops the original in the end stops this one, too: both have its tag.
    assert scene.facts(port) == before
    assert before["triggers"] != [{}]
    assert any(before["have"].values())


def test_a_server_copied_volume_by_volume_has_its_journal_replayed(
    sandbox_scene: SandboxScene, place: Path
) -> None:
    scene = sandbox_scene
    refused = {"method": "*", "path": "/api/application/*", "status": 404, "code": "3"}
    scene.lab.break_ontap(refused)

    sandbox = make(scene)

    scene.lab.break_ontap()
    assert sandbox.state == Sandbox.State.RETIRED, sandbox.status_message
    assert sandbox.consistency == Sandbox.Consistency.ORDERED
    assert Checkpoint.objects.get().is_proven


def steps_of(sandbox: Sandbox) -> Iterator[tuple[str, Step]]:
    """Yield each step as running, one after the other."""
    rows = Step.objects.filter(operation=sandbox.operations.get())
    for name in [spec.name for spec in CHECKPOINT]:
        now = clocks.database_now()
        rows.filter(name=name).update(state=Step.State.RUNNING, started_at=now)
        step = rows.select_related("operation__subject").get(name=name)
        subjects.load_rows([step.operation])
        yield name, step


def test_a_worker_killed_in_any_step_leaves_nothing_and_again_is_the_same(
    sandbox_scene: SandboxScene, place: Path
) -> None:
    """Each step is done twice: as after an answer that was lost."""
    scene = sandbox_scene
    for day, killed in enumerate(("dump", "replay", "compare", "keep", "prune")):
        sandbox = checkpoint_make(
            by=scene.by, server=scene.server, at=NOW + dt.timedelta(days=day)
        )
        for name, step in steps_of(sandbox):
            workflow.perform(step)
            result = workflow.perform(step)
            if name == killed:
                break
            now = clocks.database_now()
            Step.objects.filter(pk=step.pk).update(
                state=Step.State.DONE,
                ended_at=now,
                result=to_json(result) if result is not None else None,
            )
        assert scene.left()
        SandboxVolume.objects.update(clone_uuid="", snapshot_uuid="")
        sandbox.operations.get().steps.exclude(state=Step.State.DONE).update(
            state=Step.State.SKIPPED, ended_at=clocks.database_now()
        )

        sandbox_retire(by=scene.by, sandbox=sandbox)

        assert settle(sandbox).state == Sandbox.State.RETIRED, sandbox.status_message
        assert scene.left() == [], killed
        assert list(place.glob(".*")) == [], killed
    # Two were kept: of this day the newest stays.
    there = Checkpoint.objects.filter(removed_at__isnull=True)
    assert len(there) == 1
    assert {each.name for each in place.iterdir()} == {
        Path(there[0].path).name,
        f"{Path(there[0].path).name}.md5",
    }


# A p4d that does as `trouble` says: a file beside it with one word.
WRAPPER = """#!/bin/sh
here=$(dirname "$0")
trouble=$(cat "$here/trouble" 2>/dev/null)
for word; do case "$word" in -jd|-jr) verb=$word;; esac; last=$word; done
case "$trouble$verb" in
  full-jd) head -c 9 /dev/zero > "$last"; echo "$last: No space left" >&2; exit 1;;
  torn-jd) "$here/p4d" "$@" && truncate -s -20 "$last";;
  lossy-jr)
    gzip -dc "$last" | grep -v '@db.have@' | gzip > "$last.less"
    "$here/p4d" -r "$2" -z -jr "$last.less";;
  refused-jr) echo "Journal record is bad" >&2; exit 1;;
  *) exec "$here/p4d" "$@";;
esac
"""


@pytest.mark.parametrize(
    ("trouble", "code", "is_kept"),
    [
        ("full", "dump_failed", False),
        ("torn", "checkpoint_torn", False),
        ("lossy", "checkpoint_not_proven", True),
        ("refused", "checkpoint_not_proven", True),
    ],
)
def test_one_that_fails_says_so_and_a_retry_goes_on(
    sandbox_scene: SandboxScene, place: Path, trouble: str, code: str, is_kept: bool
) -> None:
    scene = sandbox_scene
    program = scene.scratch / "p4d-troubled"
    program.write_text(WRAPPER)
    program.chmod(0o755)
    P4dVersion.objects.update(path=str(program))
    (scene.scratch / "trouble").write_text(trouble)

    sandbox = make(scene)

    assert sandbox.status_code == code, sandbox.status_message
    assert CheckpointPlan.objects.get().has_failed
    assert Event.objects.filter(kind="checkpoint_failed").count() == 1
    kept = Checkpoint.objects.first()
    assert (kept is not None) == is_kept
    if kept is not None:
        assert not kept.is_proven
        assert ("db.have has 0 records" in kept.remark) == (trouble == "lossy")
    (scene.scratch / "trouble").unlink()
    sandbox_retry(by=scene.by, sandbox=sandbox)

    assert settle(sandbox).state == Sandbox.State.RETIRED, sandbox.status_message
    assert Checkpoint.objects.get().is_proven
    assert not CheckpointPlan.objects.get().has_failed
    assert scene.left() == []
    assert len(list(place.iterdir())) == 2


def test_what_cannot_be_kept_is_refused_before_anything_is_cloned(
    sandbox_scene: SandboxScene, place: Path
) -> None:
    scene = sandbox_scene
    newer = launcher(scene.scratch / "p4d-newer", release="2025.1")
    version = P4dVersion.objects.create(release="2025.1", path=str(newer))
    checkpoint_plan_save(by=scene.by, server=scene.server, version=version)
    codes = [make(scene, at=NOW).status_code]
    checkpoint_plan_save(
        by=scene.by,
        server=scene.server,
        version=scene.version,
        directory="/nonexistent/checkpoints",
    )
    codes.append(make(scene, at=NOW + dt.timedelta(days=1)).status_code)

    assert codes == ["p4d_of_another_release", "no_place_for_checkpoint"]
    assert not SandboxVolume.objects.exclude(clone_uuid="").exists()
