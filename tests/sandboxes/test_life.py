"""The life of a sandbox: created, used, retired, without a trace in the original."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
from dataclasses import replace

import pytest

from provisioner.audit_log.models import Event
from provisioner.engine.models import Step
from provisioner.gateways import registry
from provisioner.gateways.perforce.library import text_library
from provisioner.gateways.perforce.types import ServerInfo
from provisioner.lab.perforce.p4d import launcher
from provisioner.lib import clocks
from provisioner.sandboxes.actions.describing import server_volumes_save
from provisioner.sandboxes.actions.keeping import (
    sandbox_retire,
    sandbox_retry,
    sandbox_start,
)
from provisioner.sandboxes.models import P4dVersion, Sandbox
from provisioner.sandboxes.steps import defanging
from provisioner.sandboxes.steps.run import program_of
from provisioner.sandboxes.sweeps import look_for_sandboxes
from provisioner.sandboxes.workflows import CREATE, RETIRE
from provisioner.sites.models import PerforceServer
from tests.support.jobs import perform_again, settle
from tests.support.sandboxes import (
    PARTS,
    PLACES,
    SandboxScene,
    free_port,
    perform_until,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.integration
def test_a_write_in_a_sandbox_never_shows_in_its_source(
    sandbox_scene: SandboxScene,
) -> None:
    scene = sandbox_scene

    sandbox = scene.ready()

    before = scene.changes_at(scene.server.p4port)
    assert scene.changes_at(sandbox.p4port) == before
    scene.submit(sandbox.p4port, text="mine\n", name="mine.txt")
    assert len(scene.changes_at(sandbox.p4port)) == len(before) + 1
    assert scene.changes_at(scene.server.p4port) == before
    assert sandbox.consistency == Sandbox.Consistency.GROUP
    p4 = scene.connected(sandbox.p4port)
    [info] = p4.run("info")
    assert (info["ServerID"], info["serverServices"]) == ("sandbox-try", "standard")
    assert "replica" not in info
    assert p4.run("triggers", "-o") == [{}]
    names = {each["Name"] for each in p4.run("configure", "show")}
    assert names == {"server.depot.root", *(name for name, _, _ in defanging.GUARDS)}
    p4.disconnect()
    said = "\n".join(sandbox.defanged)
    for word in ("P4TARGET", "startup.1", "auth.ldap", "the trigger", "production"):
        assert word in said
    assert asked_as("ann", scene.server.p4port, "clients") == []
    for person, command in (
        *(("ann", "clients"), ("ann", "passwd"), ("zoe", "clients")),
    ):
        assert asked_as(person, sandbox.p4port, command), (person, command)

    sandbox_retire(by=scene.by, sandbox=sandbox)

    assert settle(sandbox).state == Sandbox.State.RETIRED, sandbox.status_message
    assert scene.left() == []
    kinds = list(sandbox_events(sandbox))
    assert kinds == [
        f"sandbox_{each}" for each in ("requested", "ready", "retiring", "retired")
    ]


def asked_as(user: str, port: str, *command: str) -> list[str]:
    """Return the errors that somebody without a password is answered with."""
    p4 = text_library()
    p4.port, p4.user, p4.client, p4.charset = port, user, "neutral", "none"
    p4.exception_level = 0
    p4.connect()
    try:
        p4.input = ["long-enough", "long-enough"]
        p4.run(*command)
        return [str(each) for each in p4.errors]
    finally:
        p4.disconnect()


def sandbox_events(sandbox: Sandbox) -> list[str]:
    events = Event.objects.filter(subject_kind="sandbox", subject_id=sandbox.pk)
    return list(events.order_by("pk").values_list("kind", flat=True))


@pytest.mark.integration
def test_steps_done_again_change_nothing_and_lost_replies_do_no_harm(
    sandbox_scene: SandboxScene,
) -> None:
    scene = sandbox_scene
    writes = [
        {"method": method, "path": path, "drop": True, "when": "after", "times": 1}
        for method, path in (
            ("POST", "/api/application/consistency-groups"),
            ("POST", "/api/application/consistency-groups/*/snapshots"),
            ("POST", "/api/storage/volumes"),
            ("PATCH", "/api/storage/volumes/*"),
            ("DELETE", "/api/storage/volumes/*"),
            ("DELETE", "/api/application/consistency-groups/*"),
        )
    ]
    scene.lab.break_ontap(*writes)

    sandbox = scene.ready()

    clones = scene.left()
    before = Sandbox.objects.values().get()
    for step in sandbox.operations.get().steps.all():
        perform_again(step)
    assert scene.left() == clones
    assert scene.changes_at(sandbox.p4port) == scene.changes_at(scene.server.p4port)
    after = Sandbox.objects.values().get()
    changed = {key for key, value in after.items() if dict(before)[key] != value}
    assert changed == set()
    sandbox_retire(by=scene.by, sandbox=sandbox)
    assert settle(sandbox).state == Sandbox.State.RETIRED, sandbox.status_message
    scene.lab.break_ontap()
    retired = sandbox.operations.latest("pk")
    for step in retired.steps.exclude(name="quiet"):
        perform_again(step)
    assert scene.left() == []


@pytest.mark.integration
def test_without_groups_the_journal_is_replayed(sandbox_scene: SandboxScene) -> None:
    scene = sandbox_scene
    refused = {"method": "*", "path": "/api/application/*", "status": 404, "code": "3"}
    scene.lab.break_ontap(refused)

    sandbox = scene.ready()

    scene.lab.break_ontap()
    assert sandbox.consistency == Sandbox.Consistency.ORDERED
    assert any("Replayed the journal" in said for said in sandbox.defanged)
    assert scene.changes_at(sandbox.p4port) == scene.changes_at(scene.server.p4port)
    volumes = [scene.gateway.find_volume(f"prod_{part}") for part in PARTS]
    taken = [
        snapshot.created_at
        for volume in volumes
        if volume is not None
        for snapshot in scene.gateway.list_snapshots(volume.uuid)
    ]
    assert len(taken) == len(PARTS)
    assert taken == sorted(taken, key=str)


@pytest.mark.integration
@pytest.mark.parametrize("killed", [spec.name for spec in CREATE])
def test_a_worker_killed_in_any_step_of_a_creation_leaves_nothing(
    sandbox_scene: SandboxScene, killed: str
) -> None:
    scene = sandbox_scene
    sandbox = scene.create()
    perform_until(sandbox.operations.get(), killed=killed)
    assert bool(scene.left()) == (killed not in ("server", "host"))
    sandbox.refresh_from_db()

    sandbox_retire(by=scene.by, sandbox=sandbox)

    assert settle(sandbox).state == Sandbox.State.RETIRED, sandbox.status_message
    assert scene.left() == []


@pytest.mark.integration
def test_a_worker_killed_in_any_step_of_a_retirement_leaves_nothing(
    sandbox_scene: SandboxScene,
) -> None:
    scene = sandbox_scene
    for killed in [spec.name for spec in RETIRE]:
        sandbox = scene.ready(name=f"killed-in-{killed}")
        perform_until(
            sandbox_retire(by=scene.by, sandbox=sandbox),
            killed=killed,
        )
        sandbox.refresh_from_db()
        assert sandbox.status_code == "operation_lost"

        sandbox_retry(by=scene.by, sandbox=sandbox)

        assert settle(sandbox).state == Sandbox.State.RETIRED, sandbox.status_message
        assert scene.left() == [], killed


# --- hosts that restart, and hosts that are lost


@pytest.mark.integration
def test_a_server_that_ended_is_started_again_with_its_data(
    sandbox_scene: SandboxScene,
) -> None:
    scene = sandbox_scene
    sandbox = scene.ready()
    scene.submit(sandbox.p4port, text="mine\n", name="mine.txt")
    changes = scene.changes_at(sandbox.p4port)
    look_for_sandboxes(sandbox.host_id)
    sandbox.refresh_from_db()
    assert sandbox.state == Sandbox.State.READY
    for process in program_of(sandbox).processes():
        os.kill(process, signal.SIGKILL)

    look_for_sandboxes(sandbox.host_id)

    sandbox.refresh_from_db()
    assert sandbox.state == Sandbox.State.STOPPED
    assert "Start it again" in sandbox.status_message
    sandbox_start(by=scene.by, sandbox=sandbox)
    assert settle(sandbox).state == Sandbox.State.READY, sandbox.status_message
    assert scene.changes_at(sandbox.p4port) == changes
    # Somebody else started it: it is ready again.
    Sandbox.objects.update(state=Sandbox.State.STOPPED)
    look_for_sandboxes(sandbox.host_id)
    sandbox.refresh_from_db()
    assert sandbox.state == Sandbox.State.READY


@pytest.mark.integration
def test_a_sandbox_is_retired_without_its_host_which_ends_the_rest_when_it_is_back(
    sandbox_scene: SandboxScene,
) -> None:
    scene = sandbox_scene
    sandbox = scene.ready()
    # A worker that is lost has begun with this, and never ends it.
    waits = sandbox_retire(by=scene.by, sandbox=sandbox)
    waits.steps.filter(name="stop").update(
        state=Step.State.RUNNING, started_at=clocks.database_now()
    )
    sandbox.refresh_from_db()

    sandbox_retire(by=scene.by, sandbox=sandbox, without_host=True)

    assert settle(sandbox).state == Sandbox.State.RETIRED, sandbox.status_message
    assert sandbox.was_left_at_host
    assert "was not asked" in sandbox.status_message
    processes = program_of(sandbox).processes()
    assert processes
    assert scene.left() == [str(process) for process in processes]

    look_for_sandboxes(sandbox.host_id)

    sandbox.refresh_from_db()
    assert (sandbox.state, sandbox.status_code) == (Sandbox.State.RETIRED, "")
    assert scene.left() == []
    assert sandbox_events(sandbox)[-2:] == ["sandbox_retired", "sandbox_host_cleared"]


@pytest.mark.integration
def test_a_server_outlives_the_worker_that_started_it(
    sandbox_scene: SandboxScene,
) -> None:
    """As systemd ends a worker with KillMode=process: the worker, not its group."""
    scene = sandbox_scene
    program = (
        "import os, pickle, sys\n"
        "p4d, port = pickle.load(sys.stdin.buffer)\n"
        "p4d.start(port)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    root = scene.original.root.with_name("other")
    root.mkdir()
    os.chown(root, scene.original.uid, scene.original.gid)
    p4d = replace(
        scene.original,
        root=root,
        journal=root / "journal",
        log=root / "log",
        tag=f"outlives-{os.getpid()}",
    )
    port = f"127.0.0.1:{free_port()}"
    try:
        worker = subprocess.run(
            [sys.executable, "-c", program],
            input=pickle.dumps((p4d, port)),
            check=False,
        )
        assert worker.returncode == -signal.SIGKILL
        assert p4d.processes()
        assert scene.changes_at(port) == []
    finally:
        p4d.stop()


@pytest.mark.integration
def test_what_is_taken_or_missing_at_the_host_is_refused_before_anything_is_cloned(
    sandbox_scene: SandboxScene,
) -> None:
    scene = sandbox_scene
    port = int(scene.server.p4port.rpartition(":")[2])
    PerforceServer.objects.filter(pk=scene.server.pk).update(server_id="")
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        codes = [
            settle(scene.create(name=f"n-{number}", **given)).status_code
            for number, given in enumerate(
                [{"port": taken}, {"server_id": "production"}]
            )
        ]
    assert codes == ["port_in_use", "server_id_of_a_server"]
    assert port not in Sandbox.objects.values_list("port", flat=True)
    for sandbox in Sandbox.objects.all():
        sandbox_retire(by=scene.by, sandbox=sandbox)
        settle(sandbox)
    old = launcher(scene.scratch / "p4d-old", release="2020.1")
    versions = [
        P4dVersion(release="2020.1", path=str(old)),
        P4dVersion(release="2025.1", path=str(old)),
        P4dVersion(release="2024.2", path="/nonexistent/p4d"),
    ]
    codes = []
    for number, version in enumerate(versions):
        sandbox = settle(scene.create(name=f"v-{number}", version=version))
        codes.append(sandbox.status_code)
        sandbox_retire(by=scene.by, sandbox=sandbox)
        settle(sandbox)
    assert codes == ["p4d_too_old", "p4d_of_another_release", "p4d_missing"]
    assert scene.left() == []


@pytest.mark.integration
def test_a_newer_p4d_upgrades_the_copy_alone(sandbox_scene: SandboxScene) -> None:
    scene = sandbox_scene
    newer = launcher(scene.scratch / "p4d-newer", release="2025.1")
    version = P4dVersion(release="2025.1", path=str(newer))

    sandbox = scene.ready(version=version)

    assert registry_info(scene, sandbox.p4port).version.startswith("P4D/")
    assert "2025.1" in registry_info(scene, sandbox.p4port).version
    assert "2024.2" in registry_info(scene, scene.server.p4port).version
    assert sandbox.upgraded_from == "2024.2"
    took = sandbox.upgrade_seconds
    assert took is not None
    # Another attempt has nothing to do, and does not replace the time.
    sandbox_retire(by=scene.by, sandbox=sandbox)
    settle(sandbox)
    assert sandbox.upgrade_seconds == took
    interrupted = scene.create(name="interrupted", version=version)
    Sandbox.objects.filter(pk=interrupted.pk).update(upgraded_from="2024.2")
    assert settle(interrupted).upgrade_seconds is None


def registry_info(scene: SandboxScene, port: str) -> ServerInfo:
    account = replace(registry.perforce_account(scene.server), port=port)
    return registry.perforce_as(account).get_info()


@pytest.mark.integration
def test_links_to_the_original_are_refused_before_anything_follows_them(
    sandbox_scene: SandboxScene,
) -> None:
    scene = sandbox_scene
    root, license = scene.original.root, scene.original.root / "license"
    license.write_text("the original's")
    linked = root.with_name("linked")
    linked.symlink_to(root)
    server_volumes_save(
        by=scene.by,
        server=scene.server,
        site=scene.site,
        places=PLACES.replace("prod_db/root", "prod_db/linked"),
    )

    sandbox = settle(scene.create())

    assert sandbox.status_code == "links_lead_out", sandbox.status_message
    assert license.exists()
    sandbox_retire(by=scene.by, sandbox=sandbox)
    assert settle(sandbox).state == Sandbox.State.RETIRED, sandbox.status_message
    assert scene.left() == []
