"""A server that was restored from a checkpoint: checkpointed, verified, diagnosed.

Ours is small and made here. A real one is tried, too, where it is named, such as Jam's
public one (jenkinsci/p4-plugin, src/test/resources/r17.1):

    LAB_CHECKPOINT=…/checkpoint.gz LAB_CHECKPOINT_DEPOTS=…/depot.tar.gz \\
    LAB_CHECKPOINT_VIEW=//depot/... LAB_CHECKPOINT_BUILD=true \\
    pytest -m integration tests/recipes/test_restored_server.py
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from provisioner.recipes.actions import (
    checkpoint_make,
    checkpoint_plan_save,
    verification_make,
    verification_plan_save,
)
from provisioner.recipes.models import Checkpoint, Verification, VerifiedDepot
from provisioner.sandboxes.actions.keeping import sandbox_retire
from provisioner.sandboxes.models import Sandbox
from tests.support.checkpoints import CHECKPOINTS, Real
from tests.support.jobs import settle
from tests.support.sandboxes import (
    SandboxScene,
    free_port,
)

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.integration,
    pytest.mark.timeout(900, method="thread"),
]


@pytest.fixture(params=CHECKPOINTS, ids=lambda make: make.__name__)
def restored(
    request: pytest.FixtureRequest, sandbox_scene: SandboxScene, tmp_path: Path
) -> SandboxScene:
    """The original, with the database and the files of a checkpoint in its volumes."""
    real: Real = request.param(tmp_path)
    scene, original = sandbox_scene, sandbox_scene.original
    archives = scene.site.path_of("/prod_depot")
    original.stop()
    for place in (original.root, archives, original.journal.parent):
        for path in place.iterdir():
            if path.name == ".snapshot":
                continue  # ONTAP's
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
    command = [sys.executable, "-m", "provisioner.lab.perforce"]
    command += ["-r", str(original.root), "-jr", str(real.checkpoint)]
    command += ["--depots", str(real.depots)]
    subprocess.run(command, check=True, capture_output=True)
    for path in list(original.root.iterdir()):
        if path.is_dir():
            shutil.move(path, archives / path.name)
    moved = [path for path in archives.iterdir() if path.name != ".snapshot"]
    below = [each for path in moved for each in path.rglob("*")]
    for path in (*original.root.iterdir(), *moved, *below):
        if os.geteuid() == 0:
            os.chown(path, scene.host.uid, scene.host.gid)
    original.give_id("production")
    original.set("server.depot.root", str(archives))
    original.upgrade(within_seconds=120)
    original.start(scene.server.p4port)
    p4 = scene.connected(scene.server.p4port)
    p4.save_client(p4.fetch_client("scene"))  # “have” of others is asked from one
    p4.disconnect()
    return scene


def test_it_goes_through_checkpoint_verify_and_diagnose(
    restored: SandboxScene,
) -> None:
    scene, port = restored, restored.server.p4port
    before = scene.facts(port)
    assert before["digests"]
    assert before["damaged"] == []
    place = Path(tempfile.mkdtemp(prefix="checkpoints-", dir=scene.scratch))
    if os.geteuid() == 0:
        os.chown(place, scene.host.uid, scene.host.gid)
    plan: dict[str, Any] = {"by": scene.by, "server": scene.server, "host": scene.host}
    plan["version"] = scene.version
    checkpoint_plan_save(**plan, directory=str(place))
    verification_plan_save(**plan, has_shelved=True)

    made_in = settle(checkpoint_make(by=scene.by, server=scene.server))
    verified_in = settle(verification_make(by=scene.by, server=scene.server))

    assert made_in.state == Sandbox.State.RETIRED, made_in.status_message
    made = Checkpoint.objects.get()
    assert (made.is_proven, made.remark) == (True, "")
    assert made.change == max(int(each["change"]) for each in before["changes"])
    assert verified_in.state == Sandbox.State.RETIRED, verified_in.status_message
    depots = VerifiedDepot.objects.filter(verification=Verification.objects.get())
    assert any(depot.seconds is not None for depot in depots)
    assert {(d.bad, d.missing, d.shelved_bad, d.shelved_missing) for d in depots} == {
        (0, 0, 0, 0)
    }
    root = place / "restored"
    root.mkdir()
    if os.geteuid() == 0:
        os.chown(root, scene.host.uid, scene.host.gid)
    elsewhere = replace(
        scene.original, root=root, journal=root / "journal", log=root / "log"
    )
    elsewhere.restore(Path(made.path), within_seconds=300)
    other = f"127.0.0.1:{free_port()}"
    elsewhere.start(other)
    assert scene.facts(other) == before

    sandbox = scene.ready(name="diagnose")

    copied = scene.facts(sandbox.p4port)
    for fact in ("changes", "users", "have", "digests"):
        assert copied[fact] == before[fact], fact
    scene.submit(sandbox.p4port, text="mine\n", name="mine-alone.txt")
    assert scene.facts(port) == before, "a write in a sandbox shows nowhere else"
    sandbox_retire(by=scene.by, sandbox=sandbox)
    assert settle(sandbox).state == Sandbox.State.RETIRED
    assert scene.left() == []
