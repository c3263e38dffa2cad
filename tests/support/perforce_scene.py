"""Where the Perforce suite runs: on the lab, and on a real server when one is given.

A real server is named by PERFORCE_TEST_PORT, PERFORCE_TEST_USER,
PERFORCE_TEST_PASSWORD, PERFORCE_TEST_CHARSET, PERFORCE_TEST_FINGERPRINT and
PERFORCE_TEST_DEPOT (the name of a local depot; "depot" unless told). The suite submits
small files below //DEPOT/cytest_<tag>/, which stay, and makes clients, which it removes
again.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import pytest_socket

from provisioner.gateways.perforce.connection import (
    Connection,
    TicketHolder,
    connected,
)
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.types import (
    ClientSpec,
    PerforceAccount,
    SyncProgress,
)

REAL_PORT = os.environ.get("PERFORCE_TEST_PORT", "")
TARGETS = [
    "lab",
    *([pytest.param("real", marks=pytest.mark.real)] if REAL_PORT else []),
]


@dataclass(frozen=True, kw_only=True)
class PerforceTarget:
    """`lab_root` is None for a real server."""

    account: PerforceAccount
    depot: str
    lab_root: Path | None


@dataclass(kw_only=True)
class PerforceScene:
    """One test's view of a server; what it makes is named as its own."""

    target: PerforceTarget
    gateway: PerforceGateway
    tag: str
    place: Path
    holder: TicketHolder = field(default_factory=TicketHolder)
    clients: list[str] = field(default_factory=list)

    @property
    def account(self) -> PerforceAccount:
        return self.target.account

    @property
    def folder(self) -> str:
        return f"//{self.target.depot}/cytest_{self.tag}"

    @property
    def everything(self) -> str:
        return f"{self.folder}/..."

    def client_name(self, suffix: str = "ws") -> str:
        return f"cytest_{self.tag}_{suffix}"

    def client_spec(self, suffix: str = "ws", **changes: Any) -> ClientSpec:
        name = self.client_name(suffix)
        values: dict[str, Any] = {
            "name": name,
            "owner": self.account.user,
            "root": str(self.place / suffix),
            "description": f"Made by a test.\n\nTag {self.tag}.",
            "view": (f"{self.everything} //{name}/...",),
        }
        return ClientSpec(**{**values, **changes})

    def make_client(self, suffix: str = "ws", **changes: Any) -> ClientSpec:
        spec = self.client_spec(suffix, **changes)
        self.clients.append(spec.name)
        self.gateway.clients.save(spec)
        return spec

    def at_the_shell(self, client: str) -> AbstractContextManager[Connection]:
        """Return a connection for what a person does in a workspace."""
        return connected(self.account, holder=self.holder, client=client)

    def had(self, client: str) -> dict[str, int]:
        """Return the have list: revisions by depot path."""
        with self.at_the_shell(client) as shell:
            records = shell.run("have").records
        return {record["depotFile"]: int(record["haveRev"]) for record in records}

    def at_the_shell_as(
        self, account: PerforceAccount, client: str
    ) -> AbstractContextManager[Connection]:
        """Return a connection for what somebody else does there."""
        return connected(account, holder=TicketHolder(), client=client)

    def person(self, user: str) -> PerforceGateway:
        """Make a user without rights of administration on the lab; act as them."""
        form = f"User:\t{user}\n\nEmail:\t{user}@x\n\nFullName:\t{user}\n"
        with self.at_the_shell("none") as shell:
            shell.run("user", "-i", "-f", text=f"{form}\nPassword:\tpassword\n")
        return PerforceGateway(replace(self.account, user=user, password="password"))

    def submit(self, files: Mapping[str, bytes | Path | None]) -> int:
        """Submit contents by name below the folder; a Path is a symlink's target.

        None deletes. Returns the change.
        """
        name = self.client_name("author")
        root = self.place / "author"
        if name not in self.clients:
            self.make_client("author")
        for relative, content in files.items():
            path = root / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists() or path.is_symlink():
                path.unlink()
            if isinstance(content, Path):
                path.symlink_to(content)
            elif content is not None:
                path.write_bytes(content)
                path.chmod(0o755 if content.startswith(b"#!") else 0o644)
        with self.at_the_shell(name) as shell:
            shell.run("reconcile", "-f", "-a", "-e", "-d", f"//{name}/...")
            records = shell.run("submit", "-d", f"Change of {self.tag}").records
        return int(records[-1]["submittedChange"])

    def pending_change(self, client: str) -> int:
        """Make an empty numbered change on the client."""
        form = f"Change:\tnew\n\nClient:\t{client}\n\nDescription:\n\tWork.\n"
        with self.at_the_shell(client) as shell:
            reply = shell.run("change", "-i", text=form)
        return int(reply.texts[0].split()[1])

    def set_faults(self, *rules: dict[str, Any]) -> None:
        """Order faults of the lab; the next test starts without."""
        assert self.target.lab_root is not None
        path = self.target.lab_root / "faults.json"
        draft = path.with_suffix(".draft")
        draft.write_text(json.dumps({"rules": rules}))
        draft.rename(path)

    def clean(self) -> None:
        if self.target.lab_root is not None:
            self.set_faults()
        for client in self.clients:
            self.gateway.changes.revert_server_side(client)
            for pending in self.gateway.changes.list_pending(client):
                self.gateway.changes.delete_pending(
                    pending.change, delete_shelf=pending.is_shelved
                )
            found = self.gateway.clients.find(client)
            if found is not None:
                unlocked = found.options.replace(" locked", " unlocked")
                self.gateway.clients.save(replace(found, options=unlocked))
            self.gateway.clients.delete(client)


@contextmanager
def running_lab(*arguments: str) -> Iterator[PerforceTarget]:
    """Run a lab of its own for the length of a with block."""
    root = Path(tempfile.mkdtemp(prefix="cloneyard-p4lab-"))
    with (
        (root / "log").open("w") as log,
        subprocess.Popen(
            [
                *(sys.executable, "-m", "provisioner.lab.perforce"),
                *("-r", str(root / "server"), "-p", "127.0.0.1:0", *arguments),
            ],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as server,
    ):
        try:
            assert server.stdout is not None
            said = json.loads(server.stdout.readline())
            account = PerforceAccount(
                port=f"{said['host']}:{said['port']}",
                user=said["user"],
                password=said["password"],
                timeout_seconds=20,
            )
            yield PerforceTarget(
                account=account, depot="depot", lab_root=root / "server"
            )
        finally:
            server.terminate()
            server.wait(timeout=20)
            shutil.rmtree(root)


@pytest.fixture(scope="session")
def perforce_lab() -> Iterator[PerforceTarget]:
    with running_lab() as target:
        yield target


@pytest.fixture(params=TARGETS)
def perforce_target(request: pytest.FixtureRequest) -> PerforceTarget:
    if request.param == "lab":
        target: PerforceTarget = request.getfixturevalue("perforce_lab")
        return target
    host = REAL_PORT.removeprefix("ssl:").removeprefix("tcp:").rpartition(":")[0]
    pytest_socket.socket_allow_hosts(["127.0.0.1", "::1", "localhost", host])
    account = PerforceAccount(
        port=REAL_PORT,
        user=os.environ["PERFORCE_TEST_USER"],
        password=os.environ["PERFORCE_TEST_PASSWORD"],
        charset=os.environ.get("PERFORCE_TEST_CHARSET", "none"),
        fingerprint=os.environ.get("PERFORCE_TEST_FINGERPRINT", ""),
    )
    return PerforceTarget(
        account=account,
        depot=os.environ.get("PERFORCE_TEST_DEPOT", "depot"),
        lab_root=None,
    )


@pytest.fixture
def perforce(perforce_target: PerforceTarget) -> Iterator[PerforceScene]:
    yield from scene_at(perforce_target)


@pytest.fixture
def lab_perforce(perforce_lab: PerforceTarget) -> Iterator[PerforceScene]:
    """A scene on the lab alone, where faults can be ordered."""
    yield from scene_at(perforce_lab)


def scene_at(target: PerforceTarget) -> Iterator[PerforceScene]:
    """Yield a scene on a server; what it made there is gone afterwards."""
    # Not below pytest's own directory, which other uids cannot enter.
    place = Path(tempfile.mkdtemp(prefix="cloneyard-p4-", dir="/var/tmp"))
    place.chmod(0o755)
    scene = PerforceScene(
        target=target,
        gateway=PerforceGateway(target.account),
        tag=uuid.uuid4().hex[:10],
        place=place,
    )
    try:
        yield scene
        scene.clean()
    finally:
        shutil.rmtree(place)


def ignore_progress(progress: SyncProgress) -> None:
    """Take progress and do nothing with it."""
