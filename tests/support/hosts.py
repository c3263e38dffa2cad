"""An empty host: system directories and a network of its own, in namespaces.

What is written below /etc, /opt and so on lies in a temporary directory, and is gone
with it. Loopback is its own as well, so that commands of a page have the ports that
they name.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from provisioner.embedded_postgres.base import PROGRAMS
from tests.support import systemctl

PRIVATE = ("/etc", "/opt", "/usr/local", "/var/lib", "/var/backups", "/run", "/srv")
ANSWERS_WITHIN_SECONDS = 60
# What Debian's packages bring.
DATABASE_PROGRAMS = ("psql", "createdb", "pg_dump", "pg_restore")
APT = '#!/bin/sh\necho "$@" >>"$APT_LOG"\n'
_UP = (
    "import fcntl, socket, struct; s = socket.socket(); "
    "fcntl.ioctl(s, 0x8914, struct.pack('16sh14x', b'lo', 0x1))"  # SIOCSIFFLAGS: IFF_UP
)


@dataclass(frozen=True)
class Host:
    """One that is entered by nsenter; `home` is where its commands are run."""

    directory: Path
    pid: int
    settings: dict[str, str] = field(default_factory=dict)  # of its shell

    @property
    def home(self) -> Path:
        return self.directory / "home"

    @property
    def environment(self) -> dict[str, str]:
        """That of root's shell; pip keeps its cache and index of here."""
        own = {name: text for name, text in os.environ.items() if name[:4] == "PIP_"}
        return {
            "PIP_CACHE_DIR": str(Path.home() / ".cache/pip"),
            **own,
            "PATH": f"{self.directory}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:"
            "/usr/bin:/sbin:/bin",
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            # Debian's client programs look there unasked.
            "PGHOST": "/run/postgresql",
            "SYSTEMCTL_STATE": str(self.directory / "units"),
            "APT_LOG": str(self.directory / "apt.log"),
            **self.settings,
        }

    def within(self, *, has_index: bool = False) -> tuple[str, ...]:
        """Return what a command follows; one that asks an index needs our network."""
        networks = () if has_index else ("--net",)
        where = ("env", f"--chdir={self.home}")
        return ("nsenter", f"--target={self.pid}", "--mount", *networks, "--", *where)

    def run(
        self, *command: str | Path, has_index: bool = False
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.within(has_index=has_index), *command],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def logs(self) -> str:
        """Return the end of what each unit wrote."""
        found = sorted((self.directory / "units").glob("*.log"))
        return "\n".join(f"{log.stem}: {log.read_text()[-3000:]}" for log in found)

    def path(self, text: str) -> Path:
        """Return where a path of the host is for us."""
        return Path(f"/proc/{self.pid}/root{text}")


@contextmanager
def empty_host() -> Iterator[Host]:
    """Give a host; a test that cannot have one is skipped, and says why."""
    if os.geteuid() != 0:
        pytest.skip("only root can have directories of a host for itself")
    with tempfile.TemporaryDirectory(prefix="cy-host-", dir="/var/tmp") as name:
        directory = Path(name)
        directory.chmod(0o755)
        for part in ("bin", "home", "units"):
            (directory / part).mkdir()
        _put_programs(directory / "bin")
        script = "\n".join(["set -e", *_mounts(directory), _lines()])
        anchor = subprocess.Popen(
            ["unshare", "--mount", "--net", "sh", "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert anchor.stdout is not None
            assert anchor.stderr is not None
            if anchor.stdout.readline() != "ready\n":
                pytest.skip(f"no namespaces here: {anchor.stderr.read()}")
            yield Host(directory, anchor.pid)
        finally:
            anchor.kill()
            anchor.communicate()


def _mounts(directory: Path) -> Iterator[str]:
    for number, path in enumerate(PRIVATE):
        upper, work = directory / f"root{number}", directory / f"work{number}"
        options = f"lowerdir={path},upperdir={upper},workdir={work}"
        yield f"mkdir {upper} {work}; chmod 755 {upper}"
        yield f"mount -t overlay overlay -o {options} {path}"


def _lines() -> str:
    return f'{sys.executable} -c "{_UP}"; echo ready; read -r end'


def _put_programs(into: Path) -> None:
    for program in DATABASE_PROGRAMS:
        (into / program).symlink_to(PROGRAMS / program)
    script = Path(systemctl.__file__).read_text()
    (into / "systemctl").write_text(f"#!{sys.executable}\n{script}")
    (into / "apt-get").write_text(APT)
    for name in ("systemctl", "apt-get"):
        (into / name).chmod(0o755)


def keep_packages(host: Host, *, lock: str) -> None:
    """Have pip take packages from a directory: later, the host has no network."""
    wanted = ("--no-deps", "--only-binary", ":all:", "--require-hashes")
    kept = host.run(
        *("python3", "-m", "pip", "download", "--quiet", *wanted),
        *("-r", lock, "-d", "packages"),
        has_index=True,
    )
    assert kept.returncode == 0, kept.stderr
    host.settings["PIP_NO_INDEX"] = "1"
    host.settings["PIP_FIND_LINKS"] = str(host.home / "packages")


@contextmanager
def database_server(host: Host) -> Iterator[None]:
    """Run the PostgreSQL that the package of that name starts."""
    if not shutil.which("runuser"):
        pytest.skip("runuser is not here")
    if host.run("getent", "passwd", "postgres").returncode:
        host.run("useradd", "--system", "--user-group", "postgres")
    data, socket = host.directory / "database", "/run/postgresql"
    host.run("install", "-d", "-o", "postgres", data, socket)
    (host.directory / "pg_hba.conf").write_text(
        "local all all peer\nhost all all 127.0.0.1/32 scram-sha-256\n"
    )
    as_postgres = ("runuser", "-u", "postgres", "--")
    made = host.run(*as_postgres, PROGRAMS / "initdb", "--no-sync", "-D", data)
    assert made.returncode == 0, made.stdout + made.stderr
    hba = f"hba_file={host.directory}/pg_hba.conf"
    server = subprocess.Popen(
        [
            *host.within(),
            *(*as_postgres, str(PROGRAMS / "postgres"), "-D", str(data)),
            *("-k", socket, "-c", "fsync=off", "-c", hba),
        ],
        env=host.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        ends = time.monotonic() + ANSWERS_WITHIN_SECONDS
        while host.run(*as_postgres, "psql", "-qc", "SELECT 1").returncode:
            assert time.monotonic() < ends, "PostgreSQL did not start"
            assert server.poll() is None, "PostgreSQL ended"
            time.sleep(0.2)
        yield
    finally:
        server.terminate()
        server.wait(timeout=ANSWERS_WITHIN_SECONDS)
