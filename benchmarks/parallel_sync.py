"""A sync through one connection and through four, over a line that takes its time.

Client and server are on one machine; a relay between them holds everything back for
half the latency each way, and lets a connection have no more than WINDOW bytes under
way, as TCP does. Rounds in turn, each into a new directory with a new client; a JSON
line for each figure. PARALLEL_SYNC_MS, _WINDOW and _ROUNDS change the numbers; TMPDIR
decides where everything is written.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import shutil
import statistics
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

from lab_perforce import Lab, connection, fill, make_client
from shared.endings import end_in_order

LATENCY_MS = float(os.environ.get("PARALLEL_SYNC_MS", "20"))
WINDOW = int(os.environ.get("PARALLEL_SYNC_WINDOW", str(2**20)))
ROUNDS = int(os.environ.get("PARALLEL_SYNC_ROUNDS", "3"))
CONNECTIONS = (1, 4)
# How many files, and how large: a tree of sources, and one of assets.
TREES = {"small": (5000, 4 * 2**10), "large": (64, 2 * 2**20)}
_PIECE = 2**16


def main() -> None:
    """Measure each tree with each number of connections."""
    end_in_order()
    for variable, name in (("P4TICKETS", "tickets"), ("P4ENVIRO", "enviro")):
        os.environ[variable] = str(Path(tempfile.gettempdir()) / f"bench-{name}")
    for tree in TREES:
        with tempfile.TemporaryDirectory(prefix="parallel-sync-") as place:
            _measure(Path(place), tree)


def _measure(place: Path, tree: str) -> None:
    count, size = TREES[tree]
    lab = Lab(place / "server")
    fill(
        lab.root,
        count=count,
        contents=lambda number: f"{number:08}".encode() * (size // 8),
    )
    relay, port = _start_relay(lab.ready["port"])
    taken: dict[int, list[float]] = {number: [] for number in CONNECTIONS}
    try:
        admin = lab.connect("admin")
        admin.run("configure", "set", "net.parallel.max=10")
        for turn in range(ROUNDS):
            for number in CONNECTIONS:
                root = place / f"{tree}-{number}-{turn}"
                taken[number].append(_sync(lab, port, root, number, count=count))
    finally:
        relay.kill()  # it has nothing to end in order
        lab.stop()
    for number, seconds in taken.items():
        best = min(seconds)
        _say(
            f"{tree}, {number} connections",
            count * size / best / 1e6,
            unit="MB/s",
            files_per_second=round(count / best),
            median_seconds=round(statistics.median(seconds), 2),
        )
    _say(f"{tree}, 4 / 1", min(taken[1]) / min(taken[4]))


def _sync(lab: Lab, port: int, root: Path, number: int, *, count: int) -> float:
    """Sync all files through the relay; return the seconds it took."""
    root.mkdir()
    make_client(lab, root.name, root).disconnect()
    p4 = connection(port, root.name)
    p4.password = lab.ready["password"]
    os.sync()
    began = time.monotonic()
    records = len(
        p4.run("sync", "--parallel=" + (f"threads={number}", "0")[number < 2])
    )
    seconds = time.monotonic() - began
    assert records == count, records
    assert sum(path.is_file() for path in root.rglob("*")) == count
    p4.disconnect()
    shutil.rmtree(root)
    return seconds


# --- the line


def _start_relay(target: int) -> tuple[multiprocessing.Process, int]:
    """Return the process of a relay to a local port, and its own port."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=_relay, args=(target, theirs), daemon=True)
    process.start()
    return process, int(ours.recv())


def _relay(target: int, said: Connection) -> None:
    asyncio.run(_serve(target, said))


async def _serve(target: int, said: Connection) -> None:
    async def accept(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", target)
        await asyncio.gather(_pass(reader, far_writer), _pass(far_reader, writer))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    said.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass bytes on half the latency later; at most WINDOW without an answer."""
    half = LATENCY_MS / 2000
    waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
    window = asyncio.Semaphore(max(WINDOW // _PIECE, 1))
    loop = asyncio.get_running_loop()

    async def deliver() -> None:
        while True:
            due, data = await waiting.get()
            await asyncio.sleep(max(0.0, due - loop.time()))
            if not data:
                writer.close()
                return
            writer.write(data)
            await writer.drain()
            # Who sent it learns of it when as much time has passed again.
            loop.call_later(half, window.release)

    delivering = asyncio.create_task(deliver())
    while data := await reader.read(_PIECE):
        await window.acquire()
        waiting.put_nowait((loop.time() + half, data))
    waiting.put_nowait((loop.time() + half, b""))
    await delivering


def _say(figure: str, value: float, **more: object) -> None:
    line = {"benchmark": "parallel_sync", "figure": figure, "value": round(value, 2)}
    settings = {"latency_ms": LATENCY_MS, "window": WINDOW}
    load = round(os.getloadavg()[0], 2)
    print(json.dumps({**line, **more, **settings, "load": load}), flush=True)


if __name__ == "__main__":
    main()
