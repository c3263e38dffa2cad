"""A Perforce server on volumes of the lab's ONTAP, and what a sandbox of it needs."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from provisioner.accounts.models import User
from provisioner.demo import depot
from provisioner.engine import subjects, workflow
from provisioner.engine.models import Operation, Step
from provisioner.engine.sweeps.watchdog import fail_lost
from provisioner.gateways import registry
from provisioner.gateways.hosts.p4d import P4d
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.gateways.ontap.types import VolumeSpec
from provisioner.lab.perforce.p4d import launcher
from provisioner.lib import clocks
from provisioner.lib.typed_json import to_json
from provisioner.sandboxes.actions.creating import sandbox_create
from provisioner.sandboxes.actions.describing import server_volumes_save
from provisioner.sandboxes.actions.hosts import p4d_version_save, sandbox_host_save
from provisioner.sandboxes.models import (
    P4dVersion,
    Sandbox,
    SandboxHost,
    SandboxVolume,
)
from provisioner.sites.models import PerforceServer, Site
from tests.support.jobs import settle
from tests.support.lab import Lab

PARTS = ("db", "journal", "depot")
PLACES = "db prod_db/root\njournal prod_journal/journal\ndepot prod_depot\n"
MIB = 1 << 20
PASSWORD = "lab-perforce-admin"


def free_port() -> int:
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])


@dataclass(kw_only=True)
class SandboxScene:
    """The original, and the rows that describe it."""

    lab: Lab
    site: Site
    server: PerforceServer
    version: P4dVersion
    host: SandboxHost
    by: User
    original: P4d
    scratch: Path

    @property
    def gateway(self) -> OntapGateway:
        return registry.ontap(self.site)

    def create(self, **given: Any) -> Sandbox:
        """Request a sandbox, without running any job."""
        asked: dict[str, Any] = {
            "name": "try",
            "purpose": Sandbox.Purpose.DIAGNOSE,
            "version": self.version,
            "host": self.host,
            "server": self.server,
            "hours": 4,
        }
        return sandbox_create(by=self.by, **(asked | given))

    def ready(self, **given: Any) -> Sandbox:
        sandbox = settle(self.create(**given))
        assert sandbox.state == Sandbox.State.READY, sandbox.status_message
        return sandbox

    def connected(self, port: str) -> Any:
        """Return a P4 connection of the super user to a server of this scene."""
        account = depot.DepotAccount(port=port, user="cloneyard", password=PASSWORD)
        return depot.connect(account, client="scene", scratch=self.scratch)

    def changes_at(self, port: str) -> list[str]:
        p4 = self.connected(port)
        try:
            return [each["change"] for each in p4.run("changes", "-s", "submitted")]
        finally:
            p4.disconnect()

    def facts(self, port: str) -> dict[str, Any]:
        """Return what a server knows of changes, people, have lists and digests."""
        p4 = self.connected(port)
        try:
            have = {}
            for name in (each["client"] for each in p4.run("clients")):
                p4.host = p4.fetch_client(name).get("Host", "")
                p4.client = name
                with p4.at_exception_level(1):  # a client may have no files
                    have[name] = p4.run("have")
            return {
                # A restore at the lab ends each description with a line end.
                "changes": [
                    {**each, "desc": each["desc"].rstrip("\n")}
                    for each in p4.run("changes", "-l")
                ],
                "users": sorted(each["User"] for each in p4.run("users", "-a")),
                "have": have,
                "digests": {
                    (each["depotFile"], each["rev"]): each["digest"]
                    for each in p4.run("verify", "//...")
                },
                "damaged": p4.run("verify", "-q", "//..."),
                "triggers": p4.run("triggers", "-o"),
            }
        finally:
            p4.disconnect()

    def submit(self, port: str, *, text: str, name: str) -> None:
        """Submit a file at a server of this scene."""
        root = self.scratch / f"ws-{port.rpartition(':')[2]}"
        root.mkdir(exist_ok=True)
        p4 = self.connected(port)
        try:
            client = p4.fetch_client("scene")
            client["Root"], client["View"] = str(root), ["//depot/... //scene/..."]
            p4.save_client(client)
            p4.client, p4.cwd = "scene", str(root)
            (root / name).write_text(text)
            p4.run("add", str(root / name))
            p4.run("submit", "-d", f"add {name}")
        finally:
            p4.disconnect()

    def left(self) -> list[str]:
        """Return what there is of sandboxes at ONTAP and on this host."""
        gateway, found = self.gateway, []
        found += [v.name for v in gateway.list_volumes() if "sandbox" in v.name]
        for part in PARTS:
            volume = gateway.find_volume(f"prod_{part}")
            assert volume is not None
            found += [s.name for s in gateway.list_snapshots(volume.uuid)]
        found += [group.name for group in gateway.list_groups()]
        for sandbox in Sandbox.with_retired.all():
            found += map(
                str,
                P4d(
                    program="",
                    root=Path(),
                    journal=Path(),
                    log=Path(),
                    uid=1,
                    gid=1,
                    tag=str(sandbox.tag),
                ).processes(),
            )
        return found


def perform_until(operation: Operation, *, killed: str) -> None:
    """Do an operation's steps in turn; of the last nobody writes down that it is done.

    Then nothing goes on with the operation, as after a `kill -9` of every worker.
    """
    now = clocks.database_now()
    rows = Step.objects.filter(operation=operation)
    for spec in workflow.specs_of(operation):
        rows.filter(name=spec.name).update(state=Step.State.RUNNING, started_at=now)
        step = rows.select_related("operation__subject").get(name=spec.name)
        subjects.load_rows([step.operation])
        result = workflow.perform(step)
        if spec.name == killed:
            break
        kept = to_json(result) if result is not None else None
        rows.filter(name=spec.name).update(
            state=Step.State.DONE, ended_at=now, result=kept
        )
    SandboxVolume.objects.update(clone_uuid="", snapshot_uuid="")
    rows.exclude(state=Step.State.DONE).update(state=Step.State.SKIPPED, ended_at=now)
    Operation.objects.filter(pk=operation.pk).update(
        state=Operation.State.FAILED, ended_at=now
    )
    fail_lost(next(kind for kind in subjects.kinds() if kind.field == "sandbox"))


@pytest.fixture
def sandbox_scene(
    lab_site: Site, lab: Lab, admin_user_row: User
) -> Iterator[SandboxScene]:
    """A server with two changes, triggers and a replica's settings, at four volumes."""
    uid = 20000 if os.geteuid() == 0 else os.geteuid()
    gid = 20000 if os.geteuid() == 0 else os.getegid()
    gateway = registry.ontap(lab_site)
    paths = {}
    for part in PARTS:
        spec = VolumeSpec(
            name=f"prod_{part}",
            aggregate=lab_site.aggregate,
            comment="a server of others",
            export_policy="default",
            size_bytes=200 * MIB,
            uid=uid,
            gid=gid,
        )
        volume = gateway.create_volume(spec)
        gateway.mount_volume(volume.uuid, junction_path=f"/prod_{part}")
        paths[part] = lab_site.path_of(f"/prod_{part}")
        if os.geteuid() == 0:
            os.chown(paths[part], uid, gid)
    scratch = Path(lab_site.mount_root).parents[2] / "sandboxes"
    scratch.mkdir(exist_ok=True)
    scratch.chmod(0o755)
    program = launcher(scratch / "p4d")
    root = paths["db"] / "root"
    root.mkdir()
    if os.geteuid() == 0:
        os.chown(root, uid, gid)
    original = P4d(
        program=str(program),
        root=root,
        journal=paths["journal"] / "journal",
        log=root / "log",
        uid=uid,
        gid=gid,
        # Tests beside this one have an original too.
        tag=f"original-{os.getpid()}",
    )
    original.give_id("production")
    original.set("server.depot.root", str(paths["depot"]))
    original.set("server.allowpush", "3")
    port = f"127.0.0.1:{free_port()}"
    original.start(port)
    server = PerforceServer.objects.create(
        name="production", p4port=port, p4user="cloneyard", server_id="production"
    )
    scene = SandboxScene(
        lab=lab,
        site=lab_site,
        server=server,
        version=p4d_version_save(
            by=admin_user_row, release="2024.2", path=str(program)
        ),
        host=sandbox_host_save(
            by=admin_user_row,
            name="isolated",
            site=lab_site,
            address="127.0.0.1",
            first_port=free_port(),
            at_most=2,
            uid=uid,
            gid=gid,
        ),
        by=admin_user_row,
        original=original,
        scratch=scratch,
    )
    server_volumes_save(by=admin_user_row, server=server, site=lab_site, places=PLACES)
    try:
        scene.submit(port, text="one\n", name="one.txt")
        scene.submit(port, text="two\n", name="two.txt")
        p4 = scene.connected(port)
        p4.input = {"Triggers": ['mail change-commit //... "/usr/bin/mail all"']}
        p4.run("triggers", "-i")
        p4.run("configure", "set", "production#P4TARGET=other:1666")
        p4.run("configure", "set", "startup.1=pull -i 1")
        p4.run("configure", "set", "auth.ldap.order.1=corporate")
        p4.save_user({"User": "ann", "Email": "ann@x", "FullName": "Ann"}, "-f")
        p4.run("configure", "set", "security=0")
        p4.disconnect()
        yield scene
    finally:
        original.stop()
        for sandbox in Sandbox.with_retired.all():
            P4d(
                program="",
                root=root,
                journal=root,
                log=root,
                uid=uid,
                gid=gid,
                tag=str(sandbox.tag),
            ).stop()
        for group in gateway.list_groups():
            gateway.delete_group(group.uuid)
        for volume in gateway.list_volumes():
            if "sandbox" in volume.name:
                gateway.delete_volume(volume.uuid, force=True)
        for part in PARTS:
            found = gateway.find_volume(f"prod_{part}")
            if found is not None:
                gateway.delete_volume(found.uuid, force=True)


@pytest.fixture
def admin_user_row(transactional_db: None) -> User:
    from tests.support.factories import UserFactory

    return UserFactory.create(username="admin", is_staff=True)
