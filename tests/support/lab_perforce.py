"""A lab Perforce server in its own process, and real clients of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from P4 import P4, P4Exception

ADMIN = "cloneyard"
BASE = "1\n2\n3\n4\n5\n"


def refused(p4: P4, *command: str) -> int:
    """Run a command that must fail; return the number of the message."""
    with pytest.raises(P4Exception):
        p4.run(*command)
    numbers: list[int] = [
        message.msgid for message in p4.messages if message.severity >= 3
    ]
    return max(numbers)


def warned(p4: P4, *command: str) -> list[int]:
    """Run a command; return the numbers of its warnings."""
    p4.run(*command)
    return [message.msgid for message in p4.messages if message.severity == 2]


@dataclass
class LabServer:
    """A server process on one root; it can be killed and started again."""

    root: Path
    options: tuple[str, ...] = ()
    process: subprocess.Popen[str] | None = None
    port: int = 0
    password: str = field(default="", repr=False)
    # Of an `ssl:` port: the server gets one for "ssl:" in front of its address.
    prefix: str = ""
    fingerprint: str = ""
    clients: list[P4] = field(default_factory=list)

    def start(self) -> None:
        """Start serving, on the same port as before if there was one."""
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "provisioner.lab.perforce"),
                *("-r", str(self.root), "-p", f"{self.prefix}127.0.0.1:{self.port}"),
                *("-L", str(self.root.parent / "log")),
                *self.options,
            ],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        assert self.process.stdout is not None
        ready = json.loads(self.process.stdout.readline())
        self.port, self.password = ready["port"], ready["password"]
        self.fingerprint = ready.get("fingerprint", "")

    def kill(self, *, number: int = signal.SIGKILL) -> None:
        """End the process and wait for it."""
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(timeout=20)
            assert self.process.stdout is not None
            self.process.stdout.close()
            self.process = None

    def connect(self, *, client: str, user: str = ADMIN, password: str = "") -> P4:
        """Return a connected client that raises for errors, not for warnings."""
        p4 = P4()
        p4.port = f"{self.prefix}127.0.0.1:{self.port}"
        p4.user, p4.client = user, client
        p4.password = password or self.password
        p4.charset = "none"
        p4.exception_level = 1
        p4.host = "lab-host"
        p4.connect()
        self.clients.append(p4)
        return p4

    def person(self, name: str, *, client: str = "neutral") -> P4:
        """Make a user with a password; return a connection of theirs."""
        admin = self.connect(client="neutral")
        admin.save_user(
            {"User": name, "Email": f"{name}@x", "FullName": name, "Password": name},
            "-f",
        )
        return self.connect(client=client, user=name, password=name)

    def faults(self, *rules: dict[str, Any]) -> None:
        """Replace the fault settings while the server runs."""
        self._set_faults({"rules": rules})

    def lag(self, **settings: Any) -> None:
        """Hold its replication (held=True), or let it lag (lag_seconds=N)."""
        self._set_faults({"replication": settings})

    def _set_faults(self, settings: dict[str, Any]) -> None:
        path = self.root / "faults.json"
        path.with_suffix(".new").write_text(json.dumps(settings))
        path.with_suffix(".new").replace(path)

    def stop(self) -> None:
        for p4 in self.clients:
            if p4.connected():
                p4.disconnect()
        self.kill(number=signal.SIGTERM)


@contextmanager
def lab_server(directory: Path, *options: str, prefix: str = "") -> Iterator[LabServer]:
    """Run a server below a directory; its clients keep their files there too."""
    os.environ["P4TICKETS"] = str(directory / "tickets")
    os.environ["P4ENVIRO"] = str(directory / "enviro")
    os.environ["P4CONFIG"] = ""
    os.environ.pop("P4PASSWD", None)
    server = LabServer(root=directory / "root", options=options, prefix=prefix)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def following(
    server: LabServer, directory: Path, *, kind: str, name: str
) -> Iterator[LabServer]:
    """Run a server that replicates from another one."""
    options = [
        *("--server-id", name, "--services", kind, "--replicates", str(server.root)),
        *("--target", f"127.0.0.1:{server.port}"),
    ]
    with lab_server(directory, *options) as replica:
        yield replica


def eventually(is_so: Callable[[], bool], *, within_seconds: float = 60.0) -> None:
    """Wait until something is so; fail if it does not become so."""
    ends_at = time.monotonic() + within_seconds
    while not is_so():
        assert time.monotonic() < ends_at, "it did not become so"
        time.sleep(0.05)


def shelved(p4: P4, path: Path) -> str:
    """Shelve what a depot's file is now on disk, by a new change; return its number."""
    p4.run("edit", str(path))
    form = p4.fetch_change()
    form["Description"] = "shelved"
    change = str(p4.save_change(form)[0].split()[1])
    p4.run("shelve", "-c", change)
    return change


@dataclass
class Workspace:
    """A client with a directory, mapped to its own part of the depot."""

    p4: P4
    root: Path
    name: str
    depot: str

    def write(self, name: str, content: bytes | str = "x\n", mode: int = 0) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        if mode:
            path.chmod(mode)
        return path

    def add(self, files: Mapping[str, bytes | str], *, message: str = "add") -> str:
        """Write files and submit them; return the change number."""
        for name, content in files.items():
            self.write(name, content)
        self.p4.run("add", "-f", *files)
        return self.submit(message)

    def submit(self, message: str = "change") -> str:
        return str(self.p4.run("submit", "-d", message)[-1]["submittedChange"])

    def edit(self, name: str, content: bytes | str) -> str:
        self.p4.run("edit", name)
        self.write(name, content)
        return self.submit()

    def tree(self) -> dict[str, bytes]:
        """Return every file on disk by its relative name."""
        return {
            str(path.relative_to(self.root)): (
                os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
            )
            for path in sorted(self.root.rglob("*"))
            if path.is_symlink() or path.is_file()
        }


def workspace(
    server: LabServer, directory: Path, *, name: str, depot: str, **fields: Any
) -> Workspace:
    """Create a client over one depot directory."""
    root = directory / name
    root.mkdir(parents=True)
    p4 = server.connect(client=name)
    p4.cwd = str(root)
    spec = p4.fetch_client()
    spec["Root"], spec["Host"] = str(root), ""
    spec["View"] = [f"{depot}/... //{name}/..."]
    for tag, value in fields.items():
        spec[tag] = value
    p4.save_client(spec)
    return Workspace(p4=p4, root=root, name=name, depot=depot)
