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
from provisioner.sandboxes.actions.describing import server_volumes_save
from provisioner.sandboxes.actions.hosts import p4d_version_save, sandbox_host_save
from provisioner.sandboxes.actions.policies import sandbox_policy_save
from provisioner.sandboxes.models import Sandbox
from provisioner.sandboxes.steps.run import program_of
from provisioner.sites.models import PerforceServer, Site

NAME = "production"
HOST = "isolated"
TEAM = "Gameplay"
PARTS = ("db", "journal", "depot")
PLACES = "db prod_db/root\njournal prod_journal/journal\ndepot prod_depot\n"
RELEASES = ("2024.2", "2025.1")
VOLUME_BYTES = 2**30
TRIGGER = 'mail change-commit //... "/usr/bin/mail all"'
SETTINGS = (f"{NAME}#startup.1=pull -i 1", "auth.ldap.order.1=corporate")


class Production:
    """The server on the lab's volumes; it runs until `stop`."""

    def __init__(self, site: Site, *, password: str) -> None:
        is_root = os.geteuid() == 0
        self._site, self._password = site, password
        self._directory = settings.VAR_DIR / "demo" / "p4d"
        self._uid = seed.TEMPLATE_UID if is_root else os.geteuid()
        self._gid = seed.GID if is_root else os.getegid()
        root = site.path_of("/prod_db") / "root"
        self._p4d = P4d(
            program=str(self._directory / RELEASES[0]),
            root=root,
            journal=site.path_of("/prod_journal") / "journal",
            log=root / "log",
            uid=self._uid,
            gid=self._gid,
            tag=f"production of {settings.VAR_DIR}",
        )

    def start(self) -> None:
        """Start the server, with files, people and what a sandbox needs of it."""
        self._directory.mkdir(parents=True, exist_ok=True)
        for release in RELEASES:
            launcher(self._directory / release, release=release)
        self._p4d.stop()
        is_new = self._ensure_volumes()
        port = f"127.0.0.1:{_free_port()}"
        if is_new:
            self._p4d.give_id(NAME)
            self._p4d.set("server.depot.root", str(self._site.path_of("/prod_depot")))
        self._p4d.start(port)
        if is_new:
            self._fill(port)
        self._save(port)

    def stop(self) -> None:
        """Stop it, and the servers of its sandboxes: each can be started again."""
        self._p4d.stop()
        for sandbox in Sandbox.objects.filter(host__name=HOST).select_related("host"):
            program_of(sandbox).stop()

    def _ensure_volumes(self) -> bool:
        """Ensure its volumes; return whether there was no server in them."""
        gateway = registry.ontap(self._site)
        for part in PARTS:
            name = f"prod_{part}"
            volume = gateway.find_volume(name)
            if volume is None:
                spec = VolumeSpec(
                    name=name,
                    aggregate=self._site.aggregate,
                    comment="the demo's production server",
                    export_policy="default",
                    size_bytes=VOLUME_BYTES,
                    uid=self._uid,
                    gid=self._gid,
                )
                volume = gateway.create_volume(spec)
                gateway.mount_volume(volume.uuid, junction_path=f"/{name}")
                self._own(self._site.path_of(f"/{name}"))
        root = self._p4d.root
        if root.exists():
            return False
        root.mkdir()
        self._own(root)
        return True

    def _own(self, path: Path) -> None:
        if os.geteuid() == 0:
            os.chown(path, self._uid, self._gid)

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
            for setting in SETTINGS:
                p4.run("configure", "set", setting)
        finally:
            p4.disconnect()
            shutil.rmtree(source)

    def _save(self, port: str) -> None:
        """Save what Cloneyard knows of it: once, but for its port."""
        admin = User.objects.get(username="admin")
        server, is_new = PerforceServer.objects.update_or_create(
            name=NAME,
            defaults={"p4port": port, "p4user": "cloneyard", "server_id": NAME},
        )
        if not is_new:
            return
        server_volumes_save(by=admin, server=server, site=self._site, places=PLACES)
        for release in RELEASES:
            path = str(self._directory / release)
            p4d_version_save(by=admin, release=release, path=path)
        sandbox_host_save(
            by=admin,
            name=HOST,
            site=self._site,
            address="127.0.0.1",
            first_port=16660,
            at_most=3,
            uid=self._uid,
            gid=self._gid,
        )
        team, _ = Team.objects.get_or_create(name=TEAM)
        User.objects.filter(username="alice", team=None).update(team=team)
        sandbox_policy_save(
            by=admin, team=team, at_most=1, longest_hours=24, team_at_most=2
        )


def _free_port() -> int:
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])
