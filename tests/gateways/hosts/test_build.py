"""Running a build command: whose, where, how long, and what it leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from provisioner.gateways import fence
from provisioner.gateways.hosts.build import (
    BuildProgress,
    BuildResult,
    _start,
    _started_at,
    note_of,
    run_build,
    stop_leftover,
)
from provisioner.gateways.hosts.processes import BEAT
from provisioner.gateways.hosts.sandbox.bounds import Bounds, Order
from provisioner.lib.refusals import StepCutShort
from tests.support.processes import pids_of, wait_until_ended

AS_ROOT = os.geteuid() == 0
UID = 20001 if AS_ROOT else os.getuid()
GID = 20002 if AS_ROOT else os.getgid()

Build = Callable[..., BuildResult]


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
def build(tree: Path, tmp_path: Path) -> Build:
    def run(
        command: str,
        *,
        timeout_seconds: float = 30.0,
        environment: dict[str, str] | None = None,
        progress: Callable[[BuildProgress], None] | None = None,
        **bounds: Any,
    ) -> BuildResult:
        return run_build(
            command=command,
            cwd=tree,
            environment=environment or {},
            uid=UID,
            gid=GID,
            timeout_seconds=timeout_seconds,
            log_path=tmp_path / "build.log",
            progress=progress,
            bounds=Bounds(**bounds),
        )

    return run


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "build.log"


def test_all_output_goes_to_the_log(build: Build, log: Path) -> None:
    result = build("for n in 1 2 3; do echo line $n; done; echo oops >&2")

    assert result.exit_code == 0
    assert not result.timed_out
    assert log.read_text().splitlines() == ["line 1", "line 2", "line 3", "oops"]
    assert result.log_bytes == log.stat().st_size


def test_a_build_without_a_word_has_an_empty_log(build: Build, log: Path) -> None:
    result = build("true")

    assert (result.exit_code, result.log_bytes) == (0, 0)
    assert log.exists()


def test_output_that_is_no_text_is_kept_as_it_is(build: Build, log: Path) -> None:
    build(r"printf 'a\377b\000c\n'")

    assert log.read_bytes() == b"a\xffb\0c\n"


def test_a_second_build_replaces_the_log(build: Build, log: Path) -> None:
    build("echo first")
    build("echo second")

    assert log.read_text() == "second\n"


@pytest.mark.parametrize(
    ("command", "code"), [("exit 3", 3), ("kill -9 $$", -signal.SIGKILL)]
)
def test_how_it_ended_is_reported(command: str, code: int, build: Build) -> None:
    assert build(command).exit_code == code


@pytest.mark.skipif(not AS_ROOT, reason="only root can become others")
def test_it_runs_as_the_uid_for_good(build: Build, log: Path, tree: Path) -> None:
    build("id -u; id -g; id -G; umask; touch made; pwd")

    assert log.read_text().splitlines() == [
        str(UID),
        str(GID),
        str(GID),
        "0022",
        str(tree),
    ]
    assert ((tree / "made").stat().st_uid, (tree / "made").stat().st_gid) == (UID, GID)


@pytest.mark.skipif(not AS_ROOT, reason="root is the one to be refused")
@pytest.mark.parametrize(("uid", "gid"), [(0, GID), (UID, 0)])
def test_it_never_runs_as_root(uid: int, gid: int, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="do not run as root"):
        run_build(
            command="true",
            cwd=tmp_path,
            environment={},
            uid=uid,
            gid=gid,
            timeout_seconds=1,
            log_path=tmp_path / "log",
        )


def test_its_environment_is_what_was_given_and_little_more(
    build: Build, log: Path, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("P4PASSWD", "secret")

    build("env", environment={"FLAVOR": "a b=c", "PATH": "/bin:/usr/bin"})

    environment = dict(line.split("=", 1) for line in log.read_text().splitlines())
    assert environment["FLAVOR"] == "a b=c"
    assert environment["PATH"] == "/bin:/usr/bin"
    assert environment["HOME"] == str(tree)
    assert set(environment) <= {
        *("FLAVOR", "PATH", "HOME", "LANG", "SHELL"),
        *("PWD", "OLDPWD", "SHLVL", "_"),  # the shell's own
    }


def test_it_reads_nothing_from_us(build: Build, log: Path) -> None:
    build("cat; echo end")

    assert log.read_text() == "end\n"


def test_the_log_can_be_read_while_it_runs(build: Build, log: Path) -> None:
    seen: list[tuple[str, int]] = []

    def look(progress: BuildProgress) -> None:
        seen.append((log.read_text(), progress.log_bytes))

    build("echo first; sleep 0.4; echo last", progress=look)

    assert ("first\n", 6) in seen
    assert log.read_text() == "first\nlast\n"


@pytest.fixture
def nap(request: pytest.FixtureRequest) -> str:
    """Seconds that nobody else sleeps: what has them was started by this test."""
    return f"300.{abs(hash(request.node.name)) % 10**9}{os.getpid()}"


def test_at_the_limit_all_of_it_is_stopped(build: Build, nap: str) -> None:
    began = time.monotonic()

    result = build(
        f"sleep {nap} & setsid sleep {nap} & (sleep {nap}; true) & sleep {nap}",
        timeout_seconds=0.5,
    )

    assert result.timed_out
    assert result.exit_code == -signal.SIGTERM
    assert 0.5 <= time.monotonic() - began < 60
    assert pids_of("sleep", nap) == []


@pytest.mark.parametrize("start", ["{0} &", "setsid {0} &", "(setsid {0} & ) &"])
def test_nothing_in_the_background_outlives_the_command(
    start: str, build: Build, nap: str
) -> None:
    daemon = start.format(f"sh -c 'touch up; exec sleep {nap}'")

    result = build(f"{daemon} until [ -e up ]; do sleep 0.01; done")

    assert (result.exit_code, result.timed_out) == (0, False)
    assert pids_of("sleep", nap) == []


def test_what_does_not_listen_is_killed(build: Build, nap: str) -> None:
    result = build(f"trap '' TERM; sleep {nap} & exit 3", grace_seconds=0.1)

    assert result.exit_code == 3
    assert pids_of("sleep", nap) == []


@pytest.fixture
def worker(
    tree: Path, tmp_path: Path, nap: str, note: Path
) -> Iterator[subprocess.Popen[str]]:
    """Another worker, in a build that does not end."""
    program = (
        "import sys; from pathlib import Path; "
        "from provisioner.gateways.hosts.build import run_build; "
        "from provisioner.gateways.hosts.sandbox.bounds import Bounds; "
        "cwd, log, uid, gid, nap = sys.argv[1:]; "
        "run_build(command=f'setsid sleep {nap} & sleep {nap}', "
        "cwd=Path(cwd), environment={}, uid=int(uid), gid=int(gid), "
        "timeout_seconds=300, log_path=Path(log), "
        "bounds=Bounds(worker_silent_seconds=0.5))"
    )
    log = tmp_path / "of-another-operation.log"
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tree), str(log), str(UID), str(GID), nap],
        cwd=settings.BASE_DIR,
        stderr=subprocess.PIPE,
        text=True,
    ) as worker:
        ends = time.monotonic() + 10
        while not (note.exists() and len(pids_of("sleep", nap)) == 2):
            assert time.monotonic() < ends
            time.sleep(0.02)
        sandbox = int(note.read_text().split()[0])
        yield worker
        worker.kill()
        wait_until_ended(sandbox)


@pytest.fixture
def note(tree: Path, tmp_path: Path) -> Path:
    return note_of(tree, notes=tmp_path)


def test_a_build_ends_with_its_worker_and_all_that_it_started(
    worker: subprocess.Popen[str], build: Build, note: Path, nap: str
) -> None:
    worker.kill()
    wait_until_ended(int(note.read_text().split()[0]))
    for pid in pids_of("sleep", nap):
        wait_until_ended(pid)

    result = build("echo again")

    assert result.exit_code == 0
    assert not note.exists()


def test_the_build_of_a_frozen_worker_ends_before_another_begins(
    worker: subprocess.Popen[str], nap: str
) -> None:
    worker.send_signal(signal.SIGSTOP)

    for pid in pids_of("sleep", nap):
        wait_until_ended(pid)
    worker.send_signal(signal.SIGCONT)
    assert worker.stderr is not None
    assert "This worker was frozen" in worker.stderr.read()


def test_a_command_whose_leave_ended_as_it_began_does_not_run(
    build: Build, tree: Path, log: Path
) -> None:
    def leave() -> None:
        if log.exists():  # its worker was frozen as it started the sandbox
            raise StepCutShort

    with fence.asking(leave), pytest.raises(StepCutShort):
        build("touch begun")

    assert not list(tree.iterdir())


def test_a_command_takes_nothing_said_before_it_was_ready_for_leave(
    tree: Path, log: Path
) -> None:
    order = Order(
        command="touch begun",
        cwd=str(tree),
        environment={},
        uid=UID if AS_ROOT else None,
        gid=GID if AS_ROOT else None,
        umask=0o022,
        begins_within_seconds=0.5,
    )
    with log.open("wb") as output:
        sandbox = _start(order, log=output.fileno())
    with sandbox:
        assert sandbox.stdin is not None
        assert sandbox.stdout is not None
        os.write(sandbox.stdin.fileno(), BEAT)
        said = [json.loads(line) for line in sandbox.stdout]

    assert said == [{"ready": True}, {"silenced": True}]
    assert not list(tree.iterdir())


def test_a_stranger_with_an_old_number_is_left_alone(build: Build, note: Path) -> None:
    with subprocess.Popen(["sleep", "300"], start_new_session=True) as stranger:
        note.write_text(f"{stranger.pid} 1")

        build("true")

        assert stranger.poll() is None
        stranger.kill()


def test_what_cannot_be_read_or_written_as_a_note_stops_no_build(
    build: Build, note: Path, log: Path
) -> None:
    note.mkdir()

    assert build("echo built").exit_code == 0

    assert log.read_text() == "built\n"


def test_a_note_that_goes_while_its_build_is_stopped_is_gone(
    tree: Path, tmp_path: Path, note: Path
) -> None:
    """Whoever ran that build removes it, too."""
    program = f"trap 'rm {note}; exit' TERM; echo ready; while :; do sleep 0.01; done"
    with subprocess.Popen(["sh", "-c", program], stdout=subprocess.PIPE) as left:
        assert left.stdout is not None
        left.stdout.readline()
        note.write_text(f"{left.pid} {_started_at(left.pid)}")
        threading.Thread(target=left.wait).start()

        stop_leftover(tree, notes=tmp_path)

    assert not note.exists()


@pytest.mark.parametrize("text", ["", "garbage", "1", "-1 5"])
def test_an_unreadable_note_of_an_earlier_build_is_passed_over(
    text: str, build: Build, note: Path
) -> None:
    note.write_text(text)

    assert build("true").exit_code == 0
