"""Run a template's build command: unprivileged, in a sandbox, with a time limit."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provisioner.gateways.errors import Refused, TransientGatewayError
from provisioner.gateways.fence import require_leave, silent_seconds
from provisioner.gateways.hosts.beats import answer
from provisioner.gateways.hosts.capabilities import how_to_allow, lacks_sys_admin
from provisioner.gateways.hosts.log_files import begin_log
from provisioner.gateways.hosts.processes import bare_command, json_lines
from provisioner.gateways.hosts.sandbox.bounds import Bounds, Order
from provisioner.gateways.hosts.tree_lock import TreeLock

POLL_EVERY_SECONDS = 0.05
LONGEST_LOOK_SECONDS = 0.5
# On top of the time that it gives to processes that ignore SIGTERM.
SANDBOX_ENDS_WITHIN_SECONDS = 3.0
UMASK = 0o022
SANDBOX = "provisioner.gateways.hosts.sandbox"
DEFAULT_BOUNDS = Bounds()


@dataclass(frozen=True, kw_only=True)
class BuildProgress:
    seconds: float
    log_bytes: int


@dataclass(frozen=True, kw_only=True)
class BuildResult:
    """`exit_code` is negative if a signal ended the build.

    `in_force` names the sandbox features that this host supports, `missing` why it
    lacks the others.
    """

    exit_code: int
    seconds: float
    timed_out: bool
    log_bytes: int
    log_is_full: bool = False
    ran_out_of_memory: bool = False
    in_force: tuple[str, ...] = ()
    missing: Mapping[str, str] = dataclasses.field(default_factory=dict)


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
    bounds: Bounds = DEFAULT_BOUNDS,
) -> BuildResult:
    """Run `/bin/sh -c command` as uid and gid, and wait for it up to a time limit.

    Output goes to `log_path` as it arrives, replacing an earlier log of that name.
    Before it starts, leftovers are stopped as by `stop_leftover`, and commands of other
    hosts are waited for. Nothing that the command started outlives it: when it ends, at
    the time limit, or when this process ends, the kernel kills everything in the
    sandbox.

    The command starts only with permission, requested once its sandbox is ready.

    Raises: ValueError (uid 0 or gid 0 when the caller is root); Refused (the caller is
    root and may make no sandbox, or this host cannot provide what `bounds` require);
    TransientGatewayError (the sandbox did not
    start, or was killed); Busy (another host is running a command there); as
    require_leave.
    """
    is_root = os.geteuid() == 0
    if is_root and (uid <= 0 or gid <= 0):
        raise ValueError("Builds do not run as root.")
    if lacks_sys_admin():
        raise Refused(
            "This worker may not run commands of templates: without CAP_SYS_ADMIN it "
            f"can make no sandbox for them. {how_to_allow('commands')}",
            system="host",
            operation="run command",
        )
    require_leave()
    stop_leftover(cwd, notes=log_path.parent)
    order = Order(
        command=command,
        cwd=str(cwd),
        environment=_environment(environment, home=cwd),
        uid=uid if is_root else None,
        gid=gid if is_root else None,
        umask=UMASK,
        begins_within_seconds=silent_seconds(),
        bounds=bounds._replace(shown=((str(cwd), str(cwd)), *bounds.shown)),
    )
    note = note_of(cwd, notes=log_path.parent)
    with _lock_of(cwd, place=note.stem, bounds=bounds).held() as lock:
        require_leave()
        began = time.monotonic()
        with begin_log(log_path) as log:
            process = _start(order, log=log.fileno())
        with contextlib.suppress(OSError):  # the kernel ends it with its worker, too
            note.write_text(f"{process.pid} {_started_at(process.pid)}")
        try:
            _let_begin(process)
            with _saying_that_we_live(
                process, lock=lock, every_seconds=bounds.worker_silent_seconds / 5
            ):
                timed_out = _wait(
                    process,
                    ends_at=began + timeout_seconds,
                    on_check=lambda: _report(progress, began=began, log_path=log_path),
                )
        finally:
            told = _end(process, grace_seconds=bounds.grace_seconds)
            with contextlib.suppress(OSError):
                note.unlink()
    return BuildResult(
        exit_code=_exit_code(told, process.returncode, timed_out=timed_out),
        seconds=time.monotonic() - began,
        timed_out=timed_out,
        log_bytes=log_path.stat().st_size,
        log_is_full=any("log_is_full" in line for line in told),
        ran_out_of_memory=any("ran_out_of_memory" in line for line in told),
        in_force=tuple(line["in_force"] for line in told if "in_force" in line),
        missing={line["missing"]: line["why"] for line in told if "missing" in line},
    )


def _lock_of(tree: Path, *, place: str, bounds: Bounds) -> TreeLock:
    """Return the lock of a tree; it outlives a command whose worker falls silent."""
    return TreeLock(
        tree,
        place=place,
        stale_seconds=bounds.worker_silent_seconds
        + bounds.grace_seconds
        + SANDBOX_ENDS_WITHIN_SECONDS,
    )


def _start(order: Order, *, log: int) -> subprocess.Popen[bytes]:
    """Start the sandbox. It reads the order for the command on its standard input."""
    process = subprocess.Popen(
        bare_command(SANDBOX),
        cwd="/",
        env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        start_new_session=True,
    )
    assert process.stdin is not None
    said = json.dumps({**order._asdict(), "bounds": order.bounds._asdict()})
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(said.encode() + b"\n")
        process.stdin.flush()
    return process


def _let_begin(process: subprocess.Popen[bytes]) -> None:
    """Start the command once its sandbox is ready, if we still may.

    Raises: as require_leave; TransientGatewayError (the sandbox is not ready in time).
    """
    ends_at = time.monotonic() + silent_seconds()
    for line in json_lines(process.stdout):
        if line is not None:
            answer(process.stdin, line)
            return
        if time.monotonic() > ends_at:
            raise _not_run("The sandbox of the command did not start in time.")


@contextlib.contextmanager
def _saying_that_we_live(
    process: subprocess.Popen[bytes], *, lock: TreeLock, every_seconds: float
) -> Iterator[None]:
    """Send heartbeats, to the sandbox and in the tree, from a separate thread.

    An unavailable database is no reason to stop.
    """
    assert process.stdin is not None
    stdin, is_over = process.stdin, threading.Event()

    def beat() -> None:
        with contextlib.suppress(OSError):
            while not is_over.wait(every_seconds):
                os.write(stdin.fileno(), b".")
                lock.beat()

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _end(
    process: subprocess.Popen[bytes], *, grace_seconds: float
) -> list[dict[str, Any]]:
    """Stop the sandbox, and return its last report."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(grace_seconds + SANDBOX_ENDS_WITHIN_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            try:
                process.wait(SANDBOX_ENDS_WITHIN_SECONDS)
            except subprocess.TimeoutExpired:
                # It hangs in the kernel, on a dead mount, and ends when that answers.
                process.returncode = -signal.SIGKILL
                return []
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    with process.stdout as stdout:
        return [json.loads(line) for line in stdout]


def _exit_code(
    told: list[dict[str, Any]], sandbox_code: int, *, timed_out: bool
) -> int:
    for line in told:
        if "refused" in line:
            raise Refused(line["refused"], system="host", operation="run command")
        if "broke" in line:
            raise _not_run(f"The command could not be run: {line['broke']}.")
        if "silenced" in line:
            raise _not_run(
                "This worker was frozen, so its command was ended. Another worker may "
                "have started it."
            )
    for line in told:
        if "ended" in line:
            return int(line["ended"])
    if timed_out:
        return -signal.SIGKILL
    raise _not_run(
        f"The sandbox of the command was killed (exit code {sandbox_code}), and the "
        "command with it."
    )


def _not_run(sentence: str) -> TransientGatewayError:
    return TransientGatewayError(sentence, system="host", operation="run command")


def require_nobody_else(cwd: Path, *, notes: Path, bounds: Bounds) -> None:
    """Return once no command runs in a directory, so that it may be written to.

    One left by a killed worker of this host is stopped, as by `stop_leftover`; one of
    another host, which may be cut off from the database, is waited for.

    Raises: Busy (another host is running a command there).
    """
    stop_leftover(cwd, notes=notes)
    place = note_of(cwd, notes=notes).stem
    _lock_of(cwd, place=place, bounds=bounds).wait()


def stop_leftover(cwd: Path, *, notes: Path) -> None:
    """Stop the sandbox that a killed worker of this host left running in a directory.

    `notes` is the directory of that build's log. The kernel ends a sandbox with its
    worker; one that is still alive is killed without grace.
    """
    note = note_of(cwd, notes=notes)
    try:
        pid, started_at = note.read_text().split()
    except (OSError, ValueError):
        return
    is_ours = False
    with contextlib.suppress(OSError, ValueError):
        is_ours = _started_at(int(pid)) == started_at
    if is_ours:
        _stop_sandbox(int(pid))
    with contextlib.suppress(OSError):  # who ran it, or another of us, was faster
        note.unlink()


def _stop_sandbox(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGTERM)
        ends = time.monotonic() + DEFAULT_BOUNDS.grace_seconds
        while time.monotonic() < ends:
            os.kill(pid, 0)
            time.sleep(POLL_EVERY_SECONDS)
        os.kill(pid, signal.SIGKILL)


def note_of(cwd: Path, *, notes: Path) -> Path:
    """Return the file that records the process of a build in a directory.

    Other hosts and containers use other files, as the number means nothing there.

    Source: proc(5) boot_id, namespaces(7).
    """
    boot = Path("/proc/sys/kernel/random/boot_id").read_bytes()
    here = b"\0".join([boot, os.fsencode(os.readlink("/proc/self/ns/pid"))])
    name = hashlib.blake2b(here + os.fsencode(cwd), digest_size=12).hexdigest()
    return notes / f"build-{name}.pid"


def _environment(given: Mapping[str, str], *, home: Path) -> dict[str, str]:
    return {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "C.UTF-8",
        "HOME": str(home),
        "SHELL": "/bin/sh",
        **{name: str(value) for name, value in given.items()},
    }


def _wait(
    process: subprocess.Popen[bytes], *, ends_at: float, on_check: Callable[[], None]
) -> bool:
    """Wait for the command; return whether it ran out of time."""
    pause = POLL_EVERY_SECONDS
    while True:
        left = ends_at - time.monotonic()
        if left <= 0:
            return True
        try:
            process.wait(min(pause, left))
            return False
        except subprocess.TimeoutExpired:
            on_check()
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


def _started_at(pid: int) -> str:
    """Return when a process started, in clock ticks since boot (proc(5), field 22)."""
    stat = Path(f"/proc/{pid}/stat").read_text()
    return stat.rpartition(")")[2].split()[19]
