"""What the lab's Perforce takes: flush, have and sync, by the official client.

Prints JSON lines. The lab runs in a process of its own, whose memory is measured. What
comes from the lab comes in turn from a pump, too: a server that only writes the same
messages, made beforehand. So `pump / lab` says what the lab's own work costs, and
the pump's figure is what the client can take on this machine. `--only` names the parts;
LAB_BENCH_MANY, LAB_BENCH_FEW and LAB_BENCH_SYNCED change the numbers. TMPDIR decides
where the lab and the client write.
"""

from __future__ import annotations

import argparse
import collections
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
from shared.endings import end_in_order

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
Record = dict[str, str | int]


class Lab:
    """A lab in a process of its own."""

    def __init__(self, root: Path) -> None:
        """Start it below `root`."""
        self.root = root
        command = [sys.executable, "-m", "provisioner.lab.perforce", "-r", str(root)]
        self.process = subprocess.Popen(
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


class Count(OutputHandler):  # type: ignore[misc]  # the library has no types
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


class Taken:
    """What one command took, at best: seconds, and processor seconds of both sides."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.server_cpu: list[float] = []
        self.client_cpu: list[float] = []

    def run(self, p4: P4, *command: str, lab: Lab | None = None) -> int:
        """Run a command once more; return how many records it gave."""
        ours, theirs = lab.cpu_seconds() if lab else 0.0, time.process_time()
        seconds, records = timed(p4, *command)
        self.times.append(seconds)
        self.client_cpu.append(time.process_time() - theirs)
        self.server_cpu.append(lab.cpu_seconds() - ours if lab else 0.0)
        return records

    def say(self, name: str, *, limit: str = "", **more: object) -> None:
        """Print the figures."""
        say(
            name,
            min(self.times),
            limit=limit,
            median=round(statistics.median(self.times), 3),
            server_cpu=round(min(self.server_cpu), 2),
            client_cpu=round(min(self.client_cpu), 2),
            **more,
        )


def say_ratio(name: str, *, lab: Taken, pump: Taken, limit: str = "") -> None:
    """Print how much of what the client can take the lab gives it."""
    say(
        f"{name}, pump / lab",
        min(pump.times) / min(lab.times),
        limit=limit,
        of_medians=round(
            statistics.median(pump.times) / statistics.median(lab.times), 3
        ),
    )


def measure_have_lists(
    place: Path, *, count: int, rounds: int, limits: dict[str, str]
) -> None:
    """Time flush and have of a tree, and the memory it took."""
    lab = Lab(place / "server")
    fill(lab.root, count=count, contents=lambda number: b"same\n")
    p4 = make_client(lab, "bench", place / "ws")
    taken: dict[str, Taken] = collections.defaultdict(Taken)
    records: dict[str, int] = {}
    try:
        with running_pump(place / "ws", kind="records", count=count) as port:
            pumped = connection(port, "bench")
            for _ in range(rounds):
                for name in ("flush", "have"):
                    records[name] = taken[name].run(p4, name, lab=lab)
                    pumped_records = taken[f"{name} from the pump"].run(pumped, name)
                    assert records[name] == pumped_records == count
                for name in ("flush again", "flush -f -q", "flush #0"):
                    command = name.removesuffix(" again").split()
                    records[name] = taken[name].run(p4, *command, lab=lab)
            pumped.disconnect()
        for name, figures in taken.items():
            more = {"records": records[name]} if name in records else {}
            figures.say(f"{name} of {count}", limit=limits.get(name, ""), **more)
        for name in ("flush", "have"):
            say_ratio(name, lab=taken[name], pump=taken[f"{name} from the pump"])
        memory = lab.memory_bytes() / 1e9
        say(f"memory after {count}", memory, limit=limits.get("memory", ""), unit="GB")
    finally:
        p4.disconnect()
        lab.stop()


# --- the pump


def small_file(number: int) -> bytes:
    """Return about two kilobytes that no other file has."""
    seed = hashlib.sha256(str(number).encode()).hexdigest()
    return f"// {seed}\n".encode() + b"int main() { return 0; }\n" * 80


class Pump:
    """A server that answers with messages made beforehand."""

    def __init__(self, root: Path, *, kind: str, count: int) -> None:
        """Make the messages for a client below `root`, and listen.

        They are those of a sync of `count` files, or the records of flush and have.
        """
        makers = {"flush": self._synced, "have": self._had}
        if kind == "sync":
            makers = {"sync": self._of_file}
        # Of many records the same ones come again and again: they weigh the same.
        once = min(count, SYNCED)
        self._messages = {
            f"user-{command}": b"".join(make(root, n) for n in range(once))
            for command, make in makers.items()
        }
        self._times = count // once
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    @staticmethod
    def _synced(root: Path, number: int) -> bytes:
        depot = depot_path(number)
        path = f"{root}/{depot.removeprefix('//depot/product/')}"
        record: Record = {"depotFile": depot, "clientFile": path}
        record |= {"rev": 1, "action": "added"}
        return encode("client-FstatInfo", {**record, "fileSize": 5})

    @staticmethod
    def _had(root: Path, number: int) -> bytes:
        depot = depot_path(number)
        relative = depot.removeprefix("//depot/product/")
        record: Record = {"depotFile": depot, "clientFile": f"//bench/{relative}"}
        record |= {
            "path": f"{root}/{relative}",
            "haveRev": 1,
            "syncTime": 1_800_000_000,
        }
        return encode("client-FstatInfo", record)

    @staticmethod
    def _of_file(root: Path, number: int) -> bytes:
        data = small_file(number)
        depot = depot_path(number)
        path = f"{root}/{depot.removeprefix('//depot/product/')}"
        digest = hashlib.md5(data, usedforsecurity=False).hexdigest().upper()
        record: Record = {"depotFile": depot, "clientFile": path}
        record |= {"rev": 1, "action": "added"}
        opening: Record = {
            **{"path": path, "type": "00", "handle": "sync", "perms": "ro"},
            **{"noclobber": "", "digest": digest, "fileSize": len(data)},
        }
        ack: Record = {"handle": "sync", "step": number}
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
                if message.func in self._messages:
                    self._pump(link, self._messages[message.func])
            link.close()

    def _pump(self, link: Connection, messages: bytes) -> None:
        link.send("protocol", {"server": 3, "server2": 59, "xfiles": 7})
        link.flush()
        for _ in range(self._times):
            for start in range(0, len(messages), 131072):
                link.send_raw(messages[start : start + 131072])
        link.send("flush1", {"himark": 0, "fseq": 1})
        while link.receive().func != "flush2":
            pass
        link.send("release", {})
        link.flush()

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()


def serve_pump(root: str, kind: str, count: str) -> None:
    """Be the pump's process."""
    pump = Pump(Path(root), kind=kind, count=int(count))
    print(pump.port, flush=True)
    sys.stdin.read()
    pump.close()


@contextmanager
def running_pump(root: Path, *, kind: str, count: int) -> Iterator[int]:
    """Run the pump in a process of its own; yield its port."""
    command = [sys.executable, __file__, "--pump", str(root), kind, str(count)]
    with subprocess.Popen(
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
    taken = {"lab": Taken(), "pump": Taken()}
    with running_pump(root, kind="sync", count=SYNCED) as port:
        pumped = connection(port, "bench")
        for _ in range(ROUNDS):
            for name, link in (("lab", p4), ("pump", pumped)):
                shutil.rmtree(root, ignore_errors=True)
                p4.run("flush", "#0")
                os.sync()
                server = lab if name == "lab" else None
                records = taken[name].run(link, "sync", lab=server)
                written = sum(1 for path in root.rglob("*.cpp"))
                assert records == written == SYNCED, (name, records, written)
        pumped.disconnect()
    p4.disconnect()
    lab.stop()
    for name, figures in taken.items():
        figures.say(f"sync of {SYNCED} from the {name}")
    say_ratio("sync", lab=taken["lab"], pump=taken["pump"], limit=">= 0.8")


PARTS: dict[str, Callable[[Path], None]] = {
    "many": lambda place: measure_have_lists(
        place, count=MANY, rounds=1, limits={"flush": "< 12", "memory": "<= 1.2"}
    ),
    "few": lambda place: measure_have_lists(
        place, count=FEW, rounds=ROUNDS, limits={"flush": "< 1", "have": "< 0.6"}
    ),
    "sync": measure_sync,
}


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=sorted(PARTS))
    parser.add_argument("--pump", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.pump:
        serve_pump(*arguments.pump)
        return
    end_in_order()
    for variable, name in (("P4TICKETS", "tickets"), ("P4ENVIRO", "enviro")):
        os.environ[variable] = str(Path(tempfile.gettempdir()) / f"bench-{name}")
    for name, measure in PARTS.items():
        if arguments.only in (None, name):
            with tempfile.TemporaryDirectory(prefix="lab-perforce-") as place:
                measure(Path(place))


if __name__ == "__main__":
    main()
