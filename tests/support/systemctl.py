"""Plays systemctl on a host where systemd does not run.

A unit's program is started by its file: environment, user, umask, directories and
capabilities are as it says. Sandboxing of the file system is not: systemd-analyze
reads that in tests/shipping/test_units.py. It is copied to a PATH, and needs nothing.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

UNITS = Path("/etc/systemd/system")
ENDS_WITHIN_SECONDS = 60


def main(words: list[str]) -> None:
    verb, *names = [word for word in words if word != "--now"]
    if verb == "daemon-reload":
        return
    if verb not in ("enable", "start", "restart", "stop", "disable"):
        sys.exit(f"systemctl: {verb}?")
    for name in names:
        if verb in ("stop", "restart", "disable"):
            stop(name)
        if verb in ("enable", "start", "restart"):
            start(name)


def start(name: str) -> None:
    unit = read_unit(name)
    [user] = unit.get("User", ["root"])
    for kind, parent in (("StateDirectory", "/var/lib"), ("RuntimeDirectory", "/run")):
        for directory in unit.get(kind, []):
            made = Path(parent, directory)
            made.mkdir(exist_ok=True)
            if "User" in unit:  # without, systemd leaves what is there as it is
                shutil.chown(made, user, user)
    environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"}
    for file in unit.get("EnvironmentFile", []):
        for line in Path(file).read_text().splitlines():
            if "=" in line and not line.startswith("#"):
                key, _, value = line.partition("=")
                environment[key] = value.strip("'\"")
    [umask] = unit["UMask"]
    [command] = unit["ExecStart"]
    with state_of(name).with_suffix(".log").open("ab") as log:
        started = subprocess.Popen(
            [*privileges(unit, user=user), *shlex.split(command)],
            cwd="/",
            env=environment,
            umask=int(umask, 8),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    state_of(name).write_text(str(started.pid))


def read_unit(name: str) -> dict[str, list[str]]:
    """Return the settings of a unit and its drop-ins, all values of each."""
    template, at, instance = name.partition("@")
    unit = UNITS / f"{template}{at}.service"
    found: dict[str, list[str]] = {}
    for file in (unit, *sorted(Path(f"{unit}.d").glob("*.conf"))):
        for line in file.read_text().splitlines():
            key, is_setting, value = line.replace("%i", instance).partition("=")
            if is_setting and not line.startswith("#"):
                found.setdefault(key, []).append(value)
    return found


def privileges(unit: dict[str, list[str]], *, user: str) -> list[str]:
    options = ["--reuid", user, "--regid", user, "--init-groups"]
    if "CapabilityBoundingSet" in unit:
        names = " ".join(unit["CapabilityBoundingSet"]).lower().split()
        kept = [f"+{name.removeprefix('cap_')}" for name in names]
        options.append(f"--bounding-set={','.join(['-all', *kept])}")
    if unit.get("NoNewPrivileges") == ["true"]:
        options.append("--no-new-privs")
    return ["setpriv", *options, "--"]


def stop(name: str) -> None:
    if not state_of(name).exists():
        return
    pid = int(state_of(name).read_text())
    ends = time.monotonic() + ENDS_WITHIN_SECONDS
    number = signal.SIGTERM
    while is_running(pid):
        os.kill(pid, number)
        time.sleep(0.2)
        if time.monotonic() > ends:
            number = signal.SIGKILL
    state_of(name).unlink()


def is_running(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def state_of(name: str) -> Path:
    return Path(os.environ["SYSTEMCTL_STATE"], name)


if __name__ == "__main__":
    main(sys.argv[1:])
