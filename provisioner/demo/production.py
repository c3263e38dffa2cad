"""A second Perforce server of the demo, on volumes of the lab: sandboxes copy it.

It is what an installation has: a database, a journal and archives on volumes of their
own, settings of a server that others follow, and a trigger that sends mail.
"""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path
from typing import Any

from django.conf import settings

from provisioner.accounts.models import Team, User
from provisioner.demo import depot, seed
from provisioner.gateways import registry
from provisioner.gateways.hosts.p4d import P4d
from provisioner.gateways.ontap.types import VolumeSpec
from provisioner.lab.perforce.p4d import launcher
from provisioner.recipes.actions import checkpoint_plan_save, verification_plan_save
from provisioner.recipes.models import CheckpointPlan, VerificationPlan
from provisioner.sandboxes.actions.describing import server_volumes_save
from provisioner.sandboxes.actions.hosts import p4d_version_save, sandbox_host_save
from provisioner.sandboxes.actions.policies import sandbox_policy_save
from provisioner.sandboxes.models import (
    P4dVersion,
    Sandbox,
    SandboxHost,
    SandboxPolicy,
    ServerVolumes,
)
from provisioner.sandboxes.steps.run import program_of
from provisioner.sites.models import PerforceServer, Site

NAME = "production"
HOST = "isolated"
FIRST_PORT = 16660
TEAM = "Gameplay"
PARTS = ("db", "journal", "depot")
PLACES = "db prod_db/root\njournal prod_journal/journal\ndepot prod_depot\n"
RELEASES = ("2024.2", "2025.1")
VOLUME_BYTES = 2**30
TRIGGER = 'mail change-commit //... "/usr/bin/mail all"'
FANGS = ((f"{NAME}#startup.1", "pull -i 1"), ("auth.ldap.order.1", "corporate"))


def directory() -> Path:
    """Return where each release of p4d is."""
    return Path(settings.VAR_DIR) / "demo" / "p4d"


def identity() -> tuple[int, int]:
    """Return the uid and gid that p4d runs as."""
    if os.geteuid() == 0:
        return seed.TEMPLATE_UID, seed.GID
    return os.geteuid(), os.getegid()


class Production:
    """The server on the lab's volumes; it runs until `stop`."""

    def __init__(self, site: Site, *, password: str) -> None:
        self.site, self._password = site, password
        self._directory = directory()
        self.uid, self.gid = identity()
        root = site.path_of("/prod_db") / "root"
        self._p4d = P4d(
            program=str(self._directory / RELEASES[0]),
            root=root,
            journal=site.path_of("/prod_journal") / "journal",
            log=root / "log",
            uid=self.uid,
            gid=self.gid,
            tag=f"production of {settings.VAR_DIR}",
        )

    def start(self) -> PerforceServer:
        """Start the server, with files, people and what a sandbox needs of it."""
        self._directory.mkdir(parents=True, exist_ok=True)
        for release in RELEASES:
            launcher(self._directory / release, release=release)
        self._p4d.stop()
        is_new = self._ensure_volumes()
        port = f"127.0.0.1:{_free_port()}"
        if is_new:
            self._p4d.give_id(NAME)
            self._p4d.set("server.depot.root", str(self.site.path_of("/prod_depot")))
        self._p4d.start(port)
        if is_new:
            self._fill(port)
        return self._save(port)

    def stop(self) -> None:
        """Stop it, and the servers of its sandboxes: each can be started again."""
        self._p4d.stop()
        for sandbox in Sandbox.objects.select_related("host"):
            program_of(sandbox).stop()

    def _ensure_volumes(self) -> bool:
        """Ensure its volumes; return whether there was no server in them."""
        gateway = registry.ontap(self.site)
        for part in PARTS:
            name = f"prod_{part}"
            volume = gateway.find_volume(name)
            if volume is None:
                spec = VolumeSpec(
                    name=name,
                    aggregate=self.site.aggregate,
                    comment="the demo's production server",
                    export_policy="default",
                    size_bytes=VOLUME_BYTES,
                    uid=self.uid,
                    gid=self.gid,
                )
                volume = gateway.create_volume(spec)
                gateway.mount_volume(volume.uuid, junction_path=f"/{name}")
                self._own(self.site.path_of(f"/{name}"))
        root = self._p4d.root
        if root.exists():
            return False
        root.mkdir()
        self._own(root)
        return True

    def _own(self, path: Path) -> None:
        if os.geteuid() == 0:
            os.chown(path, self.uid, self.gid)

    def _fill(self, port: str) -> None:
        scratch = settings.VAR_DIR / "demo"
        account = depot.DepotAccount(
            port=port, user="cloneyard", password=self._password
        )
        p4: Any = depot.connect(account, client="production-admin", scratch=scratch)
        source = scratch / "production"
        shutil.copytree(settings.BASE_DIR / "docs", source, dirs_exist_ok=True)
        try:
            for person in seed.PEOPLE:
                depot.create_p4_user(p4, user=person.username, password=seed.PASSWORD)
            depot.fill_depot(p4, source=source, name="game", scratch=scratch)
            p4.input = {"Triggers": [TRIGGER]}
            p4.run("triggers", "-i")
            for name, value in FANGS:
                p4.run("configure", "set", f"{name}={value}")
        finally:
            p4.disconnect()
            shutil.rmtree(source)

    def _save(self, port: str) -> PerforceServer:
        """Save what Cloneyard knows of it: each part once, but for its port."""
        admin = User.objects.get(username="admin")
        server, _ = PerforceServer.objects.update_or_create(
            name=NAME,
            defaults={"p4port": port, "p4user": "cloneyard", "server_id": NAME},
        )
        if not ServerVolumes.objects.filter(server=server).exists():
            server_volumes_save(by=admin, server=server, site=self.site, places=PLACES)
        for release in RELEASES:
            if not P4dVersion.objects.filter(release=release).exists():
                path = str(self._directory / release)
                p4d_version_save(by=admin, release=release, path=path)
        host = SandboxHost.objects.filter(name=HOST).first()
        if host is None:
            host = sandbox_host_save(
                by=admin,
                name=HOST,
                site=self.site,
                address="127.0.0.1",
                first_port=FIRST_PORT,
                at_most=3,
                uid=self.uid,
                gid=self.gid,
            )
        team, _ = Team.objects.get_or_create(name=TEAM)
        User.objects.filter(username="alice", team=None).update(team=team)
        if not SandboxPolicy.objects.filter(team=team).exists():
            sandbox_policy_save(
                by=admin, team=team, at_most=1, longest_hours=24, team_at_most=2
            )
        self._plan(server, host=host, by=admin)
        return server

    def _plan(self, server: PerforceServer, *, host: SandboxHost, by: User) -> None:
        """Say where checkpoints are kept and archives verified: when somebody asks."""
        version = P4dVersion.objects.get(release=RELEASES[0])
        kept = self._directory.parent / "checkpoints"
        kept.mkdir(exist_ok=True)
        self._own(kept)
        if not CheckpointPlan.objects.filter(server=server).exists():
            checkpoint_plan_save(
                by=by, server=server, host=host, version=version, directory=str(kept)
            )
        if not VerificationPlan.objects.filter(server=server).exists():
            verification_plan_save(by=by, server=server, host=host, version=version)


def _free_port() -> int:
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])
