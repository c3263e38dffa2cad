"""What the lab's Perforce takes: flush, have and sync, by the official client.

Prints JSON lines. The lab runs in a process of its own, whose memory is measured. The
files of a sync come once from the lab and once from a pump: a server that only writes
messages made beforehand, so the ratio says what the lab's own work costs. `--only`
names the parts; LAB_BENCH_MANY, LAB_BENCH_FEW and LAB_BENCH_SYNCED change the numbers.
TMPDIR decides where the lab and the client write.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from P4 import P4, OutputHandler

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from provisioner.lab.perforce.content import Content  # noqa: E402
from provisioner.lab.perforce.database import Database  # noqa: E402
from provisioner.lab.perforce.wire import Connection, encode  # noqa: E402

MANY = int(os.environ.get("LAB_BENCH_MANY", "1000000"))
FEW = int(os.environ.get("LAB_BENCH_FEW", "100000"))
SYNCED = int(os.environ.get("LAB_BENCH_SYNCED", "10000"))
PER_DIRECTORY = 100
ROUNDS = 5
USER = "cloneyard"


class Lab:
    """A lab in a process of its own."""

    def __init__(self, root: Path) -> None:
        """Start it below `root`."""
        self.root = root
        command = [sys.executable, "-m", "provisioner.lab.perforce", "-r", str(root)]
        self.process = subprocess.Popen(  # noqa: S603 - our own program
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=REPOSITORY,
        )
        assert self.process.stdout is not None
        self.ready = json.loads(self.process.stdout.readline())

    def connect(self, client: str) -> P4:
        """Return a connected client."""
        p4 = connection(self.ready["port"], client)
        p4.password = self.ready["password"]
        return p4

    def memory_bytes(self) -> int:
        """Return the largest resident memory the process had."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(row for row in status.splitlines() if row.startswith("VmHWM"))
        return int(line.split()[1]) * 1024

    def cpu_seconds(self) -> float:
        """Return the processor time the process has had."""
        stat = Path(f"/proc/{self.process.pid}/stat").read_text()
        user, system = stat.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait(timeout=60)


def connection(port: int, client: str) -> P4:
    """Return a connected client of some server on this machine."""
    p4 = P4()
    p4.port, p4.user, p4.client = f"127.0.0.1:{port}", USER, client
    p4.charset, p4.exception_level = "none", 1
    p4.connect()
    return p4


def depot_path(number: int) -> str:
    """Return where file `number` of a tree is; names as long as usual ones."""
    directory = number // PER_DIRECTORY
    return f"//depot/product/component_{directory:05}/src/file_{number:07}.cpp"


def fill(root: Path, *, count: int, contents: Callable[[int], bytes]) -> None:
    """Submit files by writing to the database: a client would take minutes."""
    database, content = Database(root / "db.sqlite3"), Content(root)
    known: dict[bytes, tuple[str, int]] = {}

    def rows() -> Iterator[tuple[object, ...]]:
        for number in range(count):
            data = contents(number)
            digest, size = known.get(data) or content.add(data)
            if len(known) < PER_DIRECTORY:
                known[data] = digest, size
            yield depot_path(number), 1, 1, "add", "text", 1, 1, digest, size

    with database.writing():
        change = database.next_change()
        database.execute(
            "INSERT INTO changes VALUES (?,'submitted',?,'c',1,'public','all','')",
            *(change, USER),
        )
        database.execute_many(
            "INSERT INTO revisions VALUES (?,?,?,?,?,?,?,?,?)", rows()
        )
    database.close()


def make_client(lab: Lab, name: str, root: Path) -> P4:
    """Return a connection with a client over the whole tree."""
    p4 = lab.connect(name)
    form = p4.fetch_client(name)
    form["Root"], form["Host"] = str(root), ""
    form["View"] = [f"//depot/product/... //{name}/..."]
    p4.save_client(form)
    return p4


class Count(OutputHandler):  # type: ignore[misc] - the library has no types
    """Counts records and forgets them."""

    def __init__(self) -> None:
        super().__init__()
        self.records = 0

    def outputStat(self, record: Any) -> int:
        """Count one."""
        self.records += 1
        return int(OutputHandler.HANDLED)


def timed(p4: P4, *command: str) -> tuple[float, int]:
    """Run a command; return its seconds and how many records it gave."""
    counter = Count()
    began = time.monotonic()
    with p4.using_handler(counter):
        p4.run(*command)
    return time.monotonic() - began, counter.records


def say(name: str, value: float, *, limit: str = "", **more: object) -> None:
    """Print one figure."""
    line = {"benchmark": name, "value": round(value, 3), "limit": limit, **more}
    print(json.dumps({**line, "load": round(os.getloadavg()[0], 2)}), flush=True)


def measure_have_lists(place: Path, *, count: int, limits: dict[str, str]) -> None:
    """Time flush and have of a tree, and the memory it took."""
    lab = Lab(place / "server")
    fill(lab.root, count=count, contents=lambda number: b"same\n")
    p4 = make_client(lab, "bench", place / "ws")
    try:
        for name, command in (
            ("flush", ("flush",)),
            ("have", ("have",)),
            ("flush again", ("flush",)),
            ("flush -f -q", ("flush", "-f", "-q")),
            ("flush #0", ("flush", "#0")),
        ):
            ours, theirs = lab.cpu_seconds(), time.process_time()
            seconds, records = timed(p4, *command)
            say(
                f"{name} of {count}",
                seconds,
                limit=limits.get(name, ""),
                records=records,
                server_cpu=round(lab.cpu_seconds() - ours, 2),
                client_cpu=round(time.process_time() - theirs, 2),
            )
        memory = lab.memory_bytes() / 1e9
        say(f"memory after {count}", memory, limit=limits.get("memory", ""), unit="GB")
    finally:
        p4.disconnect()
        lab.stop()


# --- sync against a pump


def small_file(number: int) -> bytes:
    """Return about two kilobytes that no other file has."""
    seed = hashlib.sha256(str(number).encode()).hexdigest()
    return f"// {seed}\n".encode() + b"int main() { return 0; }\n" * 80


class Pump:
    """A server that answers `sync` with messages made beforehand."""

    def __init__(self, root: Path, *, count: int) -> None:
        """Make the messages for a client below `root`, and listen."""
        self._messages = b"".join(self._of_file(root, n) for n in range(count))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    @staticmethod
    def _of_file(root: Path, number: int) -> bytes:
        data = small_file(number)
        depot = depot_path(number)
        path = f"{root}/{depot.removeprefix('//depot/product/')}"
        digest = hashlib.md5(data, usedforsecurity=False).hexdigest().upper()
        record = {"depotFile": depot, "clientFile": path, "rev": 1, "action": "added"}
        opening: dict[str, str | int] = {
            **{"path": path, "type": "00", "handle": "sync", "perms": "ro"},
            **{"noclobber": "", "digest": digest, "fileSize": len(data)},
        }
        ack: dict[str, str | int] = {"handle": "sync", "step": number}
        return b"".join(
            (
                encode("client-FstatInfo", {**record, "fileSize": len(data)}),
                encode("client-OpenFile", opening),
                encode("client-WriteFile", {"handle": "sync", "data": data}),
                encode("client-CloseFile", {"handle": "sync", "commit": ""}),
                encode("client-Ack", {**ack, "confirm": "done", "decline": "no"}),
            )
        )

    def _serve(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link = Connection(sock, timeout_seconds=60)
            while (message := link.receive(forever=True)).func != "release2":
                if message.func == "user-sync":
                    self._pump(link)
            link.close()

    def _pump(self, link: Connection) -> None:
        link.send("protocol", {"server": 3, "server2": 59, "xfiles": 7})
        link.flush()
        for start in range(0, len(self._messages), 131072):
            link.send_raw(self._messages[start : start + 131072])
        link.send("flush1", {"himark": 0, "fseq": 1})
        while link.receive().func != "flush2":
            pass
        link.send("release", {})
        link.flush()

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()


def serve_pump(root: str, count: str) -> None:
    """Be the pump's process."""
    pump = Pump(Path(root), count=int(count))
    print(pump.port, flush=True)
    sys.stdin.read()
    pump.close()


@contextmanager
def running_pump(root: Path) -> Iterator[int]:
    """Run the pump in a process of its own; yield its port."""
    command = [sys.executable, __file__, "--pump", str(root), str(SYNCED)]
    with subprocess.Popen(  # noqa: S603 - our own program
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield int(process.stdout.readline())
        process.stdin.close()


def measure_sync(place: Path) -> None:
    """Time a sync from the lab and from the pump, in turn."""
    lab = Lab(place / "server")
    fill(lab.root, count=SYNCED, contents=small_file)
    root = place / "ws"
    p4 = make_client(lab, "bench", root)
    taken: dict[str, list[float]] = {"lab": [], "pump": []}
    busy = lab.cpu_seconds()
    with running_pump(root) as port:
        pumped = connection(port, "bench")
        for _ in range(ROUNDS):
            for name, link in (("lab", p4), ("pump", pumped)):
                shutil.rmtree(root, ignore_errors=True)
                p4.run("flush", "#0")
                os.sync()
                seconds, records = timed(link, "sync")
                written = sum(1 for path in root.rglob("*.cpp"))
                assert records == written == SYNCED, (name, records, written)
                taken[name].append(seconds)
        pumped.disconnect()
    p4.disconnect()
    busy = (lab.cpu_seconds() - busy) / ROUNDS
    lab.stop()
    for name, times in taken.items():
        say(
            f"sync of {SYNCED} from the {name}",
            min(times),
            median=round(statistics.median(times), 3),
        )
    ratio = min(taken["pump"]) / min(taken["lab"])
    medians = statistics.median(taken["pump"]) / statistics.median(taken["lab"])
    say(
        "sync, pump / lab",
        ratio,
        limit=">= 0.8",
        of_medians=round(medians, 3),
        server_cpu=round(busy, 2),
    )


PARTS: dict[str, Callable[[Path], None]] = {
    "many": lambda place: measure_have_lists(
        place, count=MANY, limits={"flush": "< 12", "memory": "<= 1.2"}
    ),
    "few": lambda place: measure_have_lists(
        place, count=FEW, limits={"flush": "< 1", "have": "< 0.6"}
    ),
    "sync": measure_sync,
}


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=sorted(PARTS))
    parser.add_argument("--pump", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.pump:
        serve_pump(*arguments.pump)
        return
    for variable, name in (("P4TICKETS", "tickets"), ("P4ENVIRO", "enviro")):
        os.environ[variable] = str(Path(tempfile.gettempdir()) / f"bench-{name}")
    for name, measure in PARTS.items():
        if arguments.only in (None, name):
            with tempfile.TemporaryDirectory(prefix="lab-perforce-") as place:
                measure(Path(place))


if __name__ == "__main__":
    main()
