"""What a command sees, may and cannot do, with namespaces and without."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from provisioner.catalog.steps.sandboxing import excess_of
from provisioner.gateways.errors import Refused, TransientGatewayError
from provisioner.gateways.hosts.build import BuildResult, run_build
from provisioner.gateways.hosts.sandbox.bounds import Bounds
from provisioner.gateways.hosts.sandbox.cgroup import make_cgroup
from tests.support.processes import pids_of, wait_until_ended

AS_ROOT = os.geteuid() == 0
UID = 20001 if AS_ROOT else os.getuid()
GID = 20002 if AS_ROOT else os.getgid()
needs_root = pytest.mark.skipif(not AS_ROOT, reason="only root can become others")

Run = Callable[..., BuildResult]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    tree.mkdir()
    if AS_ROOT:
        os.chown(tree, UID, GID)
        # pytest's own directories are closed to others.
        for parent in (tmp_path, *tmp_path.parents[:3]):
            parent.chmod(parent.stat().st_mode | 0o011)
    return tree


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "build.log"


@pytest.fixture
def run(tree: Path, log: Path) -> Run:
    def run(command: str, **bounds: Any) -> BuildResult:
        return run_build(
            command=command,
            cwd=tree,
            environment={},
            uid=UID,
            gid=GID,
            timeout_seconds=30,
            log_path=log,
            bounds=Bounds(**{"grace_seconds": 0.2, **bounds}),
        )

    return run


@pytest.fixture
def isolated(run: Run) -> Run:
    """The same, where this host can make namespaces."""
    result = run("true")
    if not {"processes", "mounts", "proc"} <= set(result.in_force):
        pytest.skip(f"this host makes no namespaces: {result.missing}")
    return run


def test_a_command_has_no_privileges_and_gets_none(run: Run, log: Path) -> None:
    run("cat /proc/self/status; ulimit -c")

    *status, core = log.read_text().splitlines()
    told = dict(line.split(":\t", 1) for line in status if ":\t" in line)
    assert told["NoNewPrivs"] == "1"
    assert {int(told[f"Cap{kind}"], 16) for kind in ("Inh", "Prm", "Eff", "Amb")} == {0}
    assert core == "0"
    if AS_ROOT:
        assert int(told["CapBnd"], 16) == 0
        assert told["Groups"].strip() == ""


@needs_root
def test_a_set_uid_program_has_no_effect(run: Run, log: Path, tree: Path) -> None:
    program = tree / "whoami"
    shutil.copy("/usr/bin/id", program)
    program.chmod(0o755 | stat.S_ISUID)

    run("./whoami -u")

    assert log.read_text() == f"{UID}\n"


def test_temporary_directories_are_its_own_and_bounded(
    isolated: Run, log: Path, tree: Path
) -> None:
    mark = Path(tempfile.gettempdir()) / f"{tree.parent.name}-{os.getpid()}"
    mark.touch()
    try:
        result = isolated(
            "ls /tmp /dev/shm; for d in /tmp /var/tmp /dev/shm; do "
            "echo x > $d/x && head -c 9999999 /dev/zero > $d/full; done; true",
            tmp_bytes=1 << 20,
        )
    finally:
        mark.unlink()

    assert result.exit_code == 0
    assert mark.name not in log.read_text()
    assert log.read_text().count("No space left") == 3
    assert not mark.with_name("x").exists()


def test_what_is_hidden_cannot_be_seen_but_for_what_is_shown(
    isolated: Run, log: Path, tree: Path, tmp_path: Path
) -> None:
    svm = tmp_path / "svm"
    for name in ("mine", "theirs", "tools"):
        (svm / name).mkdir(parents=True)
        (svm / name / "file").write_text(f"{name}\n")
    secret = tmp_path / "password"
    secret.write_text("hunter2\n")
    secret.chmod(0o644)

    result = isolated(
        f"cat {svm}/*/file {secret}; ls {svm}; touch {svm}/new {svm}/theirs/new; "
        "touch here && pwd",
        hidden=(str(svm), str(secret), "/not/there"),
        shown=((str(svm / "mine"), str(tree)), (str(svm / "tools"),) * 2),
    )

    text = log.read_text()
    assert result.exit_code == 0, text
    assert "hunter2" not in text
    assert "theirs\n" not in text
    assert "tools\n" in text
    assert (tree / "here").exists()
    assert {path.name for path in svm.iterdir()} == {"mine", "theirs", "tools"}


def test_processes_of_the_host_cannot_be_seen(isolated: Run, log: Path) -> None:
    isolated(f"ls -d /proc/[0-9]*; kill -0 {os.getpid()}; kill -9 1; kill -9 -1; true")

    assert f"/proc/{os.getpid()}\n" not in log.read_text()
    assert len(log.read_text().split("/proc/")) < 6


def test_without_a_network_there_is_the_command_alone(isolated: Run, log: Path) -> None:
    program = (
        "import socket\n"
        "with socket.create_server(('127.0.0.1', 0)) as here:\n"
        "    socket.create_connection(here.getsockname()).close()\n"
        "print([name for _, name in socket.if_nameindex()][:1], "
        "open('/proc/net/route').read().count('\\n'))"
    )
    result = isolated(f'/usr/bin/env python3 -c "{program}"', has_network=False)

    if "python3" in log.read_text():
        pytest.skip("the system has no python3")
    assert result.exit_code == 0, log.read_text()
    assert log.read_text() == "['lo'] 1\n"


def test_a_log_that_is_full_stops_the_command(run: Run, log: Path) -> None:
    result = run("yes", log_bytes=100_000)

    assert result.log_is_full
    assert result.exit_code == -15
    assert 100_000 < result.log_bytes < 100_200
    assert "100,000 bytes" in log.read_text()[-300:]


@pytest.mark.parametrize("shell_says", ["", "; exit $?"])
def test_no_file_is_longer_than_allowed(
    shell_says: str, run: Run, log: Path, tree: Path
) -> None:
    result = run(f"head -c 9999 /dev/zero > big{shell_says}", file_bytes=1000)

    assert excess_of(result).startswith("It wrote a file larger than")
    assert (tree / "big").stat().st_size == 1000


@needs_root
def test_a_fork_bomb_ends_where_it_may(run: Run, log: Path) -> None:
    result = run("for n in $(seq 60); do sleep 5 & done; echo never", processes=20)

    assert result.exit_code != 0
    assert "never" not in log.read_text()


MIB = 1 << 20
HAS_100_MIB = "taken=$(head -c 100M /dev/zero | tr '\\0' x)"


def test_who_takes_too_much_memory_ends_without_a_cgroup(run: Run) -> None:
    greedy = f"({HAS_100_MIB}; sleep 25; :) & wait; exit 0"

    result = run(greedy, cgroup="/nowhere", memory_bytes=50 * MIB)

    assert result.ran_out_of_memory
    assert result.exit_code != 0
    assert "watched_memory" in result.in_force
    assert "memory" not in result.missing


def test_memory_that_is_shared_counts_once(run: Run) -> None:
    sharing = f"{HAS_100_MIB}; for n in 1 2 3; do (sleep 2.2; :) & done; wait"

    result = run(sharing, cgroup="/nowhere", memory_bytes=320 * MIB)

    assert not result.ran_out_of_memory
    assert result.exit_code == 0


def test_what_cannot_be_run_is_no_verdict(run: Run, tree: Path) -> None:
    tree.rmdir()

    with pytest.raises(TransientGatewayError, match="could not be run"):
        run("true")


def test_a_sandbox_that_is_killed_takes_the_command_with_it(
    isolated: Run, tree: Path
) -> None:
    nap = f"301.{os.getpid()}"

    def kill(*_: Any) -> None:
        if (tree / "up").exists():
            note = next(tree.parent.glob("build-*.pid"))
            os.kill(int(note.read_text().split()[0]), 9)

    with pytest.raises(TransientGatewayError, match="was killed"):
        run_build(
            command=f"touch up; setsid sleep {nap} & sleep {nap}",
            cwd=tree,
            environment={},
            uid=UID,
            gid=GID,
            timeout_seconds=30,
            log_path=tree.parent / "build.log",
            progress=kill,
        )

    for pid in pids_of("sleep", nap):
        wait_until_ended(pid)


def test_a_group_is_bounded_where_controllers_are_enabled(tmp_path: Path) -> None:
    group = make_cgroup("", memory_bytes=0, processes=10, cpus=0.5)
    if group is None:
        pytest.skip("no cgroup of version 2 can be made here")
    with subprocess.Popen(["sleep", "300"], preexec_fn=group.join) as sleeper:
        group.end()

        assert sleeper.wait(5) == -9
    group.end()  # twice is once


def test_a_group_that_a_killed_sandbox_left_is_removed_by_the_next() -> None:
    left = make_cgroup("", memory_bytes=0, processes=10, cpus=0)
    if left is None:
        pytest.skip("no cgroup of version 2 can be made here")

    def make_another() -> None:
        with contextlib.suppress(FileNotFoundError):  # somebody else was faster
            os.utime(left.path, (0, 0))
        another = make_cgroup("", memory_bytes=0, processes=10, cpus=0)
        assert another is not None
        another.end()

    with subprocess.Popen(["sleep", "300"], preexec_fn=left.join) as sleeper:
        make_another()
        assert left.path.exists(), "it is in use"
        sleeper.kill()
    make_another()

    assert not left.path.exists()


def test_a_directory_that_is_no_group_is_left_as_it_was(tmp_path: Path) -> None:
    below = str(tmp_path)

    assert make_cgroup(below, memory_bytes=1, processes=1, cpus=1) is None
    assert [path.name for path in tmp_path.iterdir()] == []


PROGRAM = """
import json, sys
from dataclasses import asdict
from pathlib import Path
from provisioner.gateways.errors import GatewayError
from provisioner.gateways.hosts.build import run_build
from provisioner.gateways.hosts.sandbox.bounds import Bounds
told = json.load(sys.stdin)
try:
    result = run_build(
        command=told["command"], cwd=Path(told["cwd"]), environment={},
        uid=told["uid"], gid=told["gid"], timeout_seconds=30,
        log_path=Path(told["log"]), bounds=Bounds(**told["bounds"]),
    )
except GatewayError as error:
    print(json.dumps({"error": type(error).__name__, "sentence": error.sentence}))
else:
    print(json.dumps(asdict(result)))
"""


def run_as(prefix: list[str], tree: Path, command: str, **bounds: Any) -> Any:
    """Run a command from a worker with fewer rights than ours."""
    (tree / "logs").mkdir(exist_ok=True)
    os.chown(tree / "logs", UID, GID)
    done = subprocess.run(
        [*prefix, sys.executable, "-c", PROGRAM],
        cwd=settings.BASE_DIR,
        input=json.dumps(
            {
                "command": command,
                "cwd": str(tree),
                "uid": UID,
                "gid": GID,
                "log": str(tree / "logs" / "build.log"),
                "bounds": {"grace_seconds": 0.2, **bounds},
            }
        ),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


NO_NAMESPACES = [sys.executable, "-m", "tests.support.no_namespaces"]
# The interpreter may lie where this uid may not go.
MAY_READ = ["--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search"]
NO_ROOT = [
    *("setpriv", "--reuid", str(UID), "--regid", str(GID), "--clear-groups"),
    *MAY_READ,
]


@needs_root
def test_where_there_are_no_namespaces_all_descendants_end_all_the_same(
    tree: Path,
) -> None:
    nap = f"302.{os.getpid()}"

    told = run_as(
        NO_NAMESPACES,
        tree,
        f"(setsid sh -c 'touch up; exec sleep {nap}' &) & "
        "until [ -e up ]; do sleep 0.01; done; exit 4",
    )

    assert "error" not in told, told
    assert "processes" in told["missing"]
    assert told["exit_code"] == 4
    assert pids_of("sleep", nap) == []
    offline = run_as(NO_NAMESPACES, tree, "true", has_network=False)
    assert offline["error"] == Refused.__name__
    assert "without a network" in offline["sentence"]


@needs_root
def test_without_root_there_is_a_user_namespace(tree: Path) -> None:
    nap = f"303.{os.getpid()}"

    told = run_as(
        NO_ROOT,
        tree,
        f"(setsid sh -c 'touch up; exec sleep {nap}' &) & id -u; ls /tmp; "
        "until [ -e up ]; do sleep 0.01; done; ls -d /proc/[0-9]*; kill 0; exit 4",
    )

    if "processes" in told["missing"]:
        pytest.skip(f"no user namespaces here: {told['missing']}")
    assert {"processes", "mounts", "ipc", "proc"} <= set(told["in_force"])
    assert told["exit_code"] == -15, "`kill 0` reached the command alone"
    assert (tree / "logs" / "build.log").read_text().startswith(f"{UID}\n")
    assert pids_of("sleep", nap) == []
