"""Run a template's build command: unprivileged, in its own process group, in time."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from provisioner.gateways.hosts.log_files import begin_log

LOOK_EVERY_SECONDS = 0.05
LONGEST_LOOK_SECONDS = 0.5
KILL_AFTER_SECONDS = 5.0
LAST_LINES = 5
LAST_BYTES = 4000
UMASK = 0o022
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


@dataclass(frozen=True, kw_only=True)
class BuildProgress:
    seconds: float
    log_bytes: int


@dataclass(frozen=True, kw_only=True)
class BuildResult:
    """`exit_code` is negative for the signal that ended the build.

    `last_lines` is text that a database takes; the log has the bytes as they came.
    """

    exit_code: int
    seconds: float
    timed_out: bool
    log_bytes: int
    last_lines: str


def run_build(
    *,
    command: str,
    cwd: Path,
    environment: Mapping[str, str],
    uid: int,
    gid: int,
    timeout_seconds: float,
    log_path: Path,
    progress: Callable[[BuildProgress], None] | None = None,
) -> BuildResult:
    """Run `/bin/sh -c command` as uid and gid and wait for it, no longer than allowed.

    Output goes to `log_path` as it comes; an earlier log of the same name is replaced.
    What `stop_leftover` stops is stopped first. At the time limit the whole process
    group is stopped; at the end, too, so that only what has left the group (setsid)
    outlives the command.

    Raises: ValueError for uid 0 or gid 0 when the caller is root.
    """
    if os.geteuid() == 0 and (uid <= 0 or gid <= 0):
        raise ValueError("Builds do not run as root.")
    stop_leftover(cwd, notes=log_path.parent)
    began = time.monotonic()
    with begin_log(log_path) as log:
        process = subprocess.Popen(  # noqa: S603 - an administrator's own command
            ["/bin/sh", "-c", command],
            cwd=cwd,
            env=_environment(environment, home=cwd),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            umask=UMASK,
            preexec_fn=lambda: _become(uid, gid),
        )
    note = note_of(cwd, notes=log_path.parent)
    note.write_text(f"{process.pid} {_started_at(process.pid)}")
    try:
        timed_out = _wait(
            process,
            ends_at=began + timeout_seconds,
            on_look=lambda: _report(progress, began=began, log_path=log_path),
        )
    finally:
        _stop_group(process.pid)
        process.wait()
        note.unlink(missing_ok=True)
    return BuildResult(
        exit_code=process.returncode,
        seconds=time.monotonic() - began,
        timed_out=timed_out,
        log_bytes=log_path.stat().st_size,
        last_lines=_last_lines(log_path),
    )


def stop_leftover(cwd: Path, *, notes: Path) -> None:
    """Stop the build that a killed worker of this host left running in a directory.

    `notes` is where the log of that build was. A number is not given to a new process
    while a group of that number has members: so a group without its leader is still
    the old one.
    """
    note = note_of(cwd, notes=notes)
    try:
        pid, started_at = note.read_text().split()
    except (OSError, ValueError):
        return
    try:
        is_ours = _started_at(int(pid)) == started_at
    except OSError:
        is_ours = _group_is_alive(int(pid))
    if is_ours:
        _stop_group(int(pid))
    note.unlink()


def note_of(cwd: Path, *, notes: Path) -> Path:
    """Return the file with the process of the build that runs in a directory.

    Other hosts, and containers, have other files: the number means nothing there.

    Source: proc(5) boot_id, namespaces(7).
    """
    boot = Path("/proc/sys/kernel/random/boot_id").read_bytes()
    here = b"\0".join([boot, os.fsencode(os.readlink("/proc/self/ns/pid"))])
    name = hashlib.blake2b(here + os.fsencode(cwd), digest_size=12).hexdigest()
    return notes / f"build-{name}.pid"


def _become(uid: int, gid: int) -> None:
    """Drop privileges for good; then ask to die with the worker."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _environment(given: Mapping[str, str], *, home: Path) -> dict[str, str]:
    return {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "C.UTF-8",
        "HOME": str(home),
        "SHELL": "/bin/sh",
        **{name: str(value) for name, value in given.items()},
    }


def _wait(
    process: subprocess.Popen[bytes], *, ends_at: float, on_look: Callable[[], None]
) -> bool:
    """Wait for the command; return whether its time ran out."""
    pause = LOOK_EVERY_SECONDS
    while True:
        left = ends_at - time.monotonic()
        if left <= 0:
            return True
        try:
            process.wait(min(pause, left))
            return False
        except subprocess.TimeoutExpired:
            on_look()
            pause = min(pause * 1.5, LONGEST_LOOK_SECONDS)


def _report(
    progress: Callable[[BuildProgress], None] | None, *, began: float, log_path: Path
) -> None:
    if progress is not None:
        progress(
            BuildProgress(
                seconds=time.monotonic() - began, log_bytes=log_path.stat().st_size
            )
        )


def _stop_group(group: int) -> None:
    """End a process group: asked first, killed where it does not listen."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGTERM)
        ends = time.monotonic() + KILL_AFTER_SECONDS
        while time.monotonic() < ends and _group_is_alive(group):
            time.sleep(LOOK_EVERY_SECONDS)
        os.killpg(group, signal.SIGKILL)


def _group_is_alive(group: int) -> bool:
    """Say whether the group has a process that has not ended (zombies have)."""
    # A list: a generator left half-way would leave its directory open.
    for stat in list(Path("/proc").glob("[0-9]*/stat")):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[2]) == group and fields[0] != "Z":
                return True
    return False


def _started_at(pid: int) -> str:
    """Return when a process began, in clock ticks since boot (proc(5), field 22)."""
    stat = Path(f"/proc/{pid}/stat").read_text()
    return stat.rpartition(")")[2].split()[19]


def _last_lines(log_path: Path) -> str:
    with log_path.open("rb") as log:
        log.seek(max(0, log_path.stat().st_size - LAST_BYTES))
        text = log.read().decode(errors="replace").replace("\0", "\ufffd")
    return "\n".join(text.strip().splitlines()[-LAST_LINES:])
