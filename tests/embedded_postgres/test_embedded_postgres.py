"""The embedded PostgreSQL: started by the first, stopped by the last, killed or not."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import psycopg
import pytest

from provisioner.embedded_postgres.base import LivingProcesses

pytestmark = pytest.mark.integration

STARTED_WITHIN_SECONDS = 60
USE_THE_DATABASE = """
import sys
from pathlib import Path
from provisioner.embedded_postgres.base import start_server
print(start_server(Path(sys.argv[1]))["host"], flush=True)
sys.stdin.read()
"""
# Each asks in a thread of its own, as requests do, and gives its connection back.
ASK_FROM_THREADS = """
import threading
import django
django.setup()
from django.db import Error, connection

def ask(sql):
    def run():
        try:
            with connection.cursor() as cursor:
                answers.append(cursor.execute(sql).fetchone()[0])
        except Error as error:
            answers.append(str(error))
        connection.close()
    answers = []
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return answers[0]
"""
COUNT_CONNECTIONS = """
while ask("SELECT count(*) FROM pg_stat_activity WHERE datname = 'postgres'") < 3:
    pass
print(len({ask("SELECT pg_backend_pid()") for _ in range(9)}))
"""
# As after a restart of the server: every connection that the pool has kept is dead.
ASK_AFTER_A_RESTART = """
ask("SELECT 1")
while connection.pool.get_stats()["pool_available"] < 12:
    pass
ask(
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
    " WHERE datname = 'postgres' AND pid <> pg_backend_pid()"
)
print([ask("SELECT 1") for _ in range(4)])
"""


@pytest.fixture(scope="module")
def used_before() -> Iterator[Path]:
    """The data of a server that was started and stopped."""
    with short_path() as root:
        leave(start_user(root / "postgres"))
        yield root / "postgres"


@pytest.fixture
def data_dir(used_before: Path) -> Iterator[Path]:
    with short_path() as root:
        subprocess.run(["cp", "-a", used_before, root], check=True)
        yield root / "postgres"


@contextmanager
def short_path() -> Iterator[Path]:
    """A directory that another uid can reach: the server has one of its own."""
    root = Path(tempfile.mkdtemp(prefix="cy-pg-", dir="/var/tmp"))
    root.chmod(0o755)
    yield root
    shutil.rmtree(root)


def start_user(data_dir: Path) -> subprocess.Popen[str]:
    """Start a process that uses the server until its standard input ends."""
    user = subprocess.Popen(
        [sys.executable, "-c", USE_THE_DATABASE, str(data_dir)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert user.stdout is not None
    assert user.stdout.readline().strip()
    return user


def leave(user: subprocess.Popen[str]) -> None:
    with user:
        user.communicate(timeout=STARTED_WITHIN_SECONDS)


def is_running(data_dir: Path) -> bool:
    return (data_dir / "postmaster.pid").exists()


def test_the_last_to_leave_stops_the_server(data_dir: Path) -> None:
    first, second = start_user(data_dir), start_user(data_dir)

    leave(first)
    assert is_running(data_dir)

    leave(second)
    assert not is_running(data_dir)


def test_it_has_connections_for_many_processes(data_dir: Path) -> None:
    user = start_user(data_dir)
    address = f"host={data_dir} user=postgres dbname=postgres"
    with psycopg.connect(address) as connection:
        [most] = connection.execute("SHOW max_connections").fetchone() or [""]
    leave(user)
    assert int(most) == 400


@pytest.mark.parametrize("is_reaped", [True, False])
def test_a_killed_user_does_not_keep_the_server(
    is_reaped: bool, data_dir: Path
) -> None:
    """Even before whoever has to takes leave of it, as the demo's children end."""
    killed, last = start_user(data_dir), start_user(data_dir)
    os.kill(killed.pid, signal.SIGKILL)
    if is_reaped:
        leave(killed)
    time.sleep(0.1)

    leave(last)

    assert not is_running(data_dir)
    leave(killed)


def replace(note: Path, text: str) -> None:
    """Write it at once: an empty one would be that of no server."""
    new = note.with_suffix(".new")
    new.write_text(text)
    new.replace(note)


def write_again_and_again(users: LivingProcesses) -> NoReturn:
    """Write the list for seconds at most, then end; a fork must not return."""
    try:
        for _ in range(20_000):
            users.put([os.getpid(), os.getppid()])
    finally:
        os._exit(0)


def test_a_user_that_is_killed_while_it_leaves_takes_nobody_along(
    tmp_path: Path,
) -> None:
    """Whoever came next would be the only user that the list knows."""
    users = LivingProcesses(tmp_path / "users.json")
    users.put([os.getpid()])

    for _ in range(30):
        child = os.fork()
        if not child:
            write_again_and_again(users)
        time.sleep(0.005)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

        assert os.getpid() in users.get_and_add(os.getpid())


def test_who_comes_while_the_server_starts_waits_for_it(data_dir: Path) -> None:
    first = start_user(data_dir)
    note = data_dir / "postmaster.pid"
    whole = note.read_text()
    replace(note, "".join(whole.splitlines(keepends=True)[:7]))
    with ThreadPoolExecutor() as beside:
        second = beside.submit(start_user, data_dir)
        time.sleep(1)
        assert not second.done()
        replace(note, whole)
        leave(second.result(STARTED_WITHIN_SECONDS))

    leave(first)


def test_a_server_that_was_killed_while_it_started_is_in_nobodys_way(
    data_dir: Path,
) -> None:
    leave(start_user(data_dir))
    (data_dir / "postmaster.pid").write_text("4194305\n")

    leave(start_user(data_dir))


def test_the_lock_lies_beside_the_data(used_before: Path) -> None:
    assert (used_before.parent / ".postgres.lock").exists()


def test_threads_share_a_pool_that_is_opened_ahead(data_dir: Path) -> None:
    asked = run_with_a_pool(COUNT_CONNECTIONS, data_dir, size=3)

    assert asked.returncode == 0, asked.stderr
    assert int(asked.stdout) <= 3
    assert asked.stderr == ""
    assert not is_running(data_dir)


def test_a_pool_whose_connections_have_died_refuses_nobody(
    data_dir: Path,
) -> None:
    asked = run_with_a_pool(ASK_AFTER_A_RESTART, data_dir, size=12)

    assert asked.returncode == 0, asked.stderr
    assert json.loads(asked.stdout) == [1, 1, 1, 1]


def run_with_a_pool(
    script: str, data_dir: Path, *, size: int
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", ASK_FROM_THREADS + script],
        env=os.environ
        | {
            "DJANGO_SETTINGS_MODULE": "provisioner.settings",
            "VAR_DIR": str(data_dir.parent),
            "DATABASE_URL": "",
            "DATABASE_POOL": str(size),
        },
        capture_output=True,
        text=True,
        timeout=STARTED_WITHIN_SECONDS,
        check=False,
    )
