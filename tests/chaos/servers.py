"""Everything that runs, each in a process of its own that can be killed alone."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import sys
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection

from provisioner.demo.processes import Child, ProcessFailed, manage
from provisioner.embedded_postgres.base import EmbeddedServer
from provisioner.engine.management.commands.worker import FROZEN
from tests.chaos.calm import Calm
from tests.chaos.clock import can_be_shifted, clock_ahead
from tests.chaos.patience import from_database, insist
from tests.chaos.ports import hold_port, number_of
from tests.chaos.wire import SOCKET, Wire
from tests.support.forkserver import Warm

READY_WITHIN_SECONDS = 90.0
POLL_EVERY_SECONDS = 0.25
# What ends so often in so long a time does not stay up at all.
ENDS_AT_MOST = 50
WITHIN_SECONDS = 60.0
# Long enough for another worker to have gone on with what the frozen one was at.
FROZEN_BEYOND_SECONDS = 3.0
# Beyond any stay in the trash; and long enough to start, and to do harm.
AHEAD_SECONDS = 40 * 24 * 3600
WRONG_FOR_SECONDS = 10.0
FIRST_PORT = 21000
LAST_FIRST_PORT = 29000


class StillAlive(Exception):
    """A killed process takes its time."""


def _must_be_dead(pid: int) -> None:
    """Raises: StillAlive. A zombie is dead."""
    with contextlib.suppress(FileNotFoundError):
        status = Path(f"/proc/{pid}/stat").read_text()
        if status.rpartition(")")[2].split()[0] != "Z":
            raise StillAlive


def _kill_now(child: Child) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(child.process.pid, signal.SIGKILL)
    child.process.wait()


class Servers:
    """The lab, the database, two workers and a web server."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.log_dir = scratch / "processes"
        self.children: dict[str, Child] = {}
        self.locks: dict[str, threading.Lock] = {}
        self.kills: Counter[str] = Counter()
        # What ended although nobody killed it: that is a failure.
        self.ended: Counter[str] = Counter()
        # Those that were frozen once, and may end because of it.
        self._may_end: set[str] = set()
        self._ends: dict[str, deque[float]] = defaultdict(
            lambda: deque(maxlen=ENDS_AT_MOST)
        )
        self.calm = Calm()
        self.ontap: dict[str, Any] = {}
        self.abroad: dict[str, Any] = {}
        self.perforce: dict[str, Any] = {}
        self.url = ""
        self._programs: list[Warm] = []
        self._ports: list[socket.socket] = []
        self._web_port = 0
        self._stopped = threading.Event()
        self._watch = threading.Thread(target=self._keep_running, daemon=True)

    # --- start and stop

    def start_lab(self) -> None:
        """Start ONTAP and Perforce at ports that they keep when they start again."""
        self._programs = [Warm({})]
        first = random.SystemRandom().randrange(FIRST_PORT, LAST_FIRST_PORT)
        self._ports = [hold_port(first) for _ in range(4)]
        ontap_port, peer_port, perforce_port, self._web_port = map(
            number_of, self._ports
        )
        root = self.scratch / "lab"
        root.mkdir(exist_ok=True)
        self._start(
            "ontap",
            [
                sys.executable,
                "-m",
                "provisioner.lab.ontap",
                "--root",
                str(root / "ontap"),
                "--port",
                str(ontap_port),
                "--peer-root",
                str(root / "ontap-abroad"),
                "--peer-port",
                str(peer_port),
            ],
            says_ready=True,
        )
        self._start(
            "perforce",
            [
                sys.executable,
                "-m",
                "provisioner.lab.perforce",
                "-r",
                str(root / "perforce"),
                "-p",
                f"127.0.0.1:{perforce_port}",
            ],
            says_ready=True,
        )
        self.ontap = {**self._ready("ontap"), "root": str(root / "ontap")}
        self.abroad = {**self.ontap.pop("peer"), "root": str(root / "ontap-abroad")}
        self.perforce = self._ready("perforce")
        self.perforce["port"] = f"{self.perforce.pop('host')}:{perforce_port}"
        os.environ["ONTAP_PASSWORD"] = self.ontap["password"]
        os.environ["ONTAP_PASSWORD_ABROAD"] = self.abroad["password"]
        os.environ["P4PASSWD"] = self.perforce["password"]

    def start_product(self) -> None:
        """Start workers and web server; from now on all are kept running."""
        self.url = f"http://127.0.0.1:{self._web_port}"
        self.wire = Wire(directory=self.scratch / "wire", to=self._data_dir() / SOCKET)
        through = {"DATABASE_URL": self._database_at(self.scratch / "wire")}
        self._start("worker-1", manage("worker", "--skip-checks"))
        # What has imported the settings uses the database that they name.
        self._programs.append(Warm(through))
        self._start("worker-2", manage("worker", "--skip-checks"))
        self._start(
            "web",
            [
                sys.executable,
                "-m",
                "gunicorn",
                "--config",
                "python:provisioner.webserver",
                "--bind",
                f"127.0.0.1:{self._web_port}",
                "--workers",
                "1",
                "--threads",
                "32",
            ],
        )
        self._watch.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._watch.is_alive():
            self._watch.join()
        for child in reversed(self.children.values()):
            child.stop()
        if self.children:
            for programs in self._programs:
                programs.end()
        for held in self._ports:
            held.close()

    def _start(
        self,
        name: str,
        command: list[str],
        *,
        says_ready: bool = False,
    ) -> None:
        self.locks[name] = threading.Lock()
        self.children[name] = Child(
            name,
            command,
            log_dir=self.log_dir,
            reads_output=says_ready,
            start=self._programs[-1 if name == "worker-2" else 0],
        )

    def _ready(self, name: str) -> dict[str, Any]:
        return self.children[name].read_json_line(timeout_seconds=READY_WITHIN_SECONDS)

    def _keep_running(self) -> None:
        """Start again what ended by itself, as a service manager would."""
        while not self._stopped.wait(POLL_EVERY_SECONDS):
            for name in list(self.children):
                if not self.locks[name].acquire(blocking=False):
                    continue
                try:
                    if not self.children[name].is_running:
                        self._note_end(self.children[name])
                        self._ends[name].append(time.monotonic())
                        self._again(name)
                finally:
                    self.locks[name].release()

    def _note_end(self, child: Child) -> None:
        """Hold an end against it that nobody ordered, with its last words."""
        if child.process.returncode == FROZEN and child.name in self._may_end:
            return
        self.ended[f"{child.name}: {child.ending}: {child.last_lines(count=3)}"] += 1

    def _again(self, name: str) -> None:
        before = self.children[name]
        if before.process.stdout is not None:
            before.process.stdout.close()
        self.children[name] = before.started_again()
        if name in ("ontap", "perforce"):
            self._ready(name)

    # --- kill

    def kill(self, name: str, *, down_seconds: float) -> None:
        """Kill one with SIGKILL and start it again after a while."""
        if name == "database":
            self._kill_database(down_seconds=down_seconds)
            return
        if name == "restart":
            self._restart_database()
            return
        if name == "backend":
            self._kill_backend()
            return
        if name == "clock":
            self._set_clock_ahead()
            return
        if name == "cut":
            self._cut_off()
            return
        away = self.calm.away() if name == "ontap" else contextlib.nullcontext()
        with away, self.locks[name]:
            child = self.children[name]
            # The web server's own processes die with it; what a worker has started
            # has to notice by itself.
            end = os.killpg if name == "web" else os.kill
            with contextlib.suppress(ProcessLookupError):
                end(child.process.pid, signal.SIGKILL)
            child.process.wait()
            self.kills[name.partition("-")[0]] += 1
            time.sleep(down_seconds)
            self._again(name)

    def _database_at(self, directory: Path) -> str:
        """Return the address of the database by a socket in a directory."""
        name = settings.DATABASES["default"]["NAME"]
        return f"postgres://postgres@/{name}?host={directory}"

    def _data_dir(self) -> Path:
        return Path(settings.DATABASES["default"]["DATA_DIR"])

    def _postmaster(self) -> int:
        pid_file = self._data_dir() / "postmaster.pid"
        return int(pid_file.read_text().splitlines()[0])

    def _kill_database(self, *, down_seconds: float) -> None:
        """Kill the whole database server; crash recovery follows at its start."""
        with self.locks.setdefault("database", threading.Lock()):
            postmaster = self._postmaster()
            os.kill(postmaster, signal.SIGKILL)
            self.kills["database"] += 1
            insist(lambda: _must_be_dead(postmaster), on=(StillAlive,))
            # Where nobody takes leave of the dead, its number still looks alive.
            for name in ("postmaster.pid", ".s.PGSQL.5432.lock"):
                (self._data_dir() / name).unlink(missing_ok=True)
            time.sleep(down_seconds)
            insist(
                EmbeddedServer(self._data_dir()).start,
                on=(Exception,),
                seconds=READY_WITHIN_SECONDS,
            )

    def _restart_database(self) -> None:
        """Restart the server in order, as an upgrade does; whoever uses it stays.

        Not while it recovers: PostgreSQL 18.4 then stops for ever, with nothing left
        but its checkpointer and I/O workers.
        """
        with self.locks.setdefault("database", threading.Lock()):
            from_database(lambda: connection.cursor().execute("SELECT"))
            connection.close()
            postmaster = self._postmaster()
            os.kill(postmaster, signal.SIGINT)  # a fast shutdown
            self.kills["restart"] += 1
            insist(lambda: _must_be_dead(postmaster), on=(StillAlive,))
            insist(
                EmbeddedServer(self._data_dir()).start,
                on=(Exception,),
                seconds=READY_WITHIN_SECONDS,
            )

    def freeze_process(
        self, process_id: int, *, once_stopped: Callable[[], None]
    ) -> str:
        """Stop a worker for longer than it takes to be taken for dead, and wake it.

        It may end itself then; whatever else it does is judged. Say which one it was,
        "" where it has ended meanwhile.
        """
        for name in ("worker-1", "worker-2"):
            if self.children[name].process.pid == process_id:
                return self._freeze(name, process_id, once_stopped)
        return ""

    def _freeze(
        self, name: str, process_id: int, once_stopped: Callable[[], None]
    ) -> str:
        with self.locks[name]:
            process = self.children[name].process
            if process.pid != process_id:
                return ""
            self._may_end.add(name)
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGSTOP)
                self.kills["frozen"] += 1
                once_stopped()
                time.sleep(settings.WORKER_STALLED_SECONDS + FROZEN_BEYOND_SECONDS)
                os.kill(process.pid, signal.SIGCONT)
        return name

    def _cut_off(self) -> None:
        """Cut one worker off from the database for longer than it may be silent."""
        with self.locks["worker-2"]:
            self.wire.cut()
            self.kills["cut off"] += 1
            time.sleep(settings.WORKER_STALLED_SECONDS + FROZEN_BEYOND_SECONDS)
            self.wire.mend()

    def _set_clock_ahead(self) -> None:
        """Run one worker with a clock that is weeks ahead, for a while."""
        if not can_be_shifted():
            self.kills["clock ahead: no compiler"] += 1
            return
        with self.locks["worker-2"]:
            before = self.children["worker-2"]
            _kill_now(before)
            wrong = Child(
                "worker-ahead",
                manage("worker", "--skip-checks"),
                log_dir=self.log_dir,
                # By address: it must not start a database, whose clock would be wrong.
                environment={
                    **clock_ahead(seconds=AHEAD_SECONDS, directory=self.scratch),
                    "DATABASE_URL": self._database_at(self._data_dir()),
                },
            )
            self.kills["clock ahead"] += 1
            time.sleep(WRONG_FOR_SECONDS)
            if not wrong.is_running:
                self._note_end(wrong)
            _kill_now(wrong)
            self._again("worker-2")

    def _kill_backend(self) -> None:
        """Kill one connection's process: the server ends all and recovers by itself."""
        with (
            self.locks.setdefault("database", threading.Lock()),
            contextlib.suppress(OSError, ValueError),
        ):
            postmaster = self._postmaster()
            children = Path(f"/proc/{postmaster}/task/{postmaster}/children")
            for pid in children.read_text().split():
                # A connection's process is called "postgres: USER DATABASE ...".
                if b"postgres postgres" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(int(pid), signal.SIGKILL)
                    self.kills["backend"] += 1
                    return

    # --- look

    def check(self) -> None:
        """Raises: ProcessFailed where something does not stay up."""
        if self.kills["cut off"] and not self.wire.is_used:
            raise ProcessFailed("worker-2 does not use the wire that was cut.")
        since = time.monotonic() - WITHIN_SECONDS
        for name, ends in list(self._ends.items()):
            if len(ends) == ENDS_AT_MOST and ends[0] > since:
                raise ProcessFailed(f"{name} again and again: see {self.log_dir}.")
