"""What another user's commands take while 200 clients are defined and flushed.

Prints one JSON object. The lab's Perforce server runs in a process of its own, with its
locks on tables. The other user does what a developer does all day, file by file: has
it, looks at it, opens it, sees what is opened, reverts it, sees what is new, what is
had of a directory, and has it no longer. The server tells how long each command waited
for locks (-Ztrack): at rest, before and in between;
while the clients are flushed within the slots, so many at a time and in batches with
rests between; and while fifty at a time are flushed, each in one go. The slots are
given by the database; here as many threads stand for them.

`by_locks` is how many times as long their commands took as they would have without
those waits, at the same time on the same machine: what else is at work there lengthens
both. `have_list_by_locks` is the same of those alone that change their have list: these
are over in less than a millisecond, and wait for the very table that we write.
`on_the_clock` compares medians with those at rest; in it is what the lab, which
is one process, and all others take from the processors. NEIGHBOR_CLIENTS,
NEIGHBOR_FILES, NEIGHBOR_BUDGET and NEIGHBOR_COMMANDS change the numbers.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from lab_perforce import PER_DIRECTORY, USER, Lab, depot_path, fill
from P4 import P4
from shared.endings import end_in_order
from shared.verdicts import Limit, load, say

from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.locking import lock_use
from provisioner.gateways.perforce.types import ClientSpec, LockUse, PerforceAccount

CLIENTS = int(os.environ.get("NEIGHBOR_CLIENTS", "200"))
FILES = int(os.environ.get("NEIGHBOR_FILES", "2000"))
BUDGET = int(os.environ.get("NEIGHBOR_BUDGET", "4"))
COMMANDS = int(os.environ.get("NEIGHBOR_COMMANDS", "200"))
WORK = {
    "get": ("sync", "-k", "{path}#head"),
    "check": ("fstat", "{path}"),
    "open": ("edit", "-k", "{path}"),
    "opened": ("opened",),
    "revert": ("revert", "-k", "{path}"),
    "changes": ("changes", "-m", "10"),
    "have": ("have", "{above}/..."),
    "drop": ("sync", "-k", "{path}#none"),
}
CHANGES_HAVE_LIST = ("get", "drop")
AT_ONCE = 50
CHANGE = 1


@dataclass
class Seen:
    """What the other user's commands took, and how much of it was waiting for locks."""

    seconds: list[float] = field(default_factory=list)
    waited_ms: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def by_locks(self, *names: str) -> float:
        """How many times as long they, or those, took as without waits for locks."""
        chosen = [at for at, name in enumerate(self.names) if name in (names or WORK)]
        took = sum(self.seconds[at] for at in chosen)
        waited = sum(self.waited_ms[at] for at in chosen) / 1000
        return round(took / max(took - waited, 0.001), 3)

    def figures(self, *, rest: Seen) -> dict[str, Any]:
        return {
            "by_locks": self.by_locks(),
            "have_list_by_locks": self.by_locks(*CHANGES_HAVE_LIST),
            "on_the_clock": round(
                statistics.median(self.seconds) / statistics.median(rest.seconds), 3
            ),
            "commands": len(self.seconds),
            "commands_that_waited": sum(ms > 0 for ms in self.waited_ms),
            "median_ms": round(1000 * statistics.median(self.seconds), 2),
            "waited_ms_mean": round(statistics.fmean(self.waited_ms), 3),
            "waited_ms_most": max(self.waited_ms),
        }


class Neighbor:
    """Another user, with a client of their own."""

    def __init__(self, lab: Lab, place: Path) -> None:
        """Have the client, and nothing in its have list."""
        p4 = P4()
        p4.port, p4.user, p4.client = f"127.0.0.1:{lab.ready['port']}", USER, "alice"
        p4.charset, p4.exception_level, p4.track = "none", 1, 1
        p4.password = lab.ready["password"]
        p4.connect()
        form = p4.fetch_client("alice")
        form["Root"], form["Host"] = str(place / "alice"), ""
        form["View"] = ["//depot/product/... //alice/..."]
        p4.save_client(form)
        self._p4 = p4
        self._count = 0

    def work(self, seen: Seen) -> None:
        """Do the next thing of a day with one file after the other."""
        number, doing = divmod(self._count, len(WORK))
        name, path = list(WORK)[doing], depot_path(number % FILES)
        self._count += 1
        command = [
            word.format(path=path, above=Path(path).parent) for word in WORK[name]
        ]
        began = time.monotonic()
        self._p4.run(*command)
        seen.seconds.append(time.monotonic() - began)
        use = lock_use(name, map(str, self._p4.track_output))
        seen.waited_ms.append(use.waited_ms if use else 0)
        seen.names.append(name)


def main() -> None:
    """Measure all, in one run."""
    load_before = load()
    end_in_order()
    for variable, name in (("P4TICKETS", "tickets"), ("P4ENVIRO", "enviro")):
        os.environ[variable] = str(Path(tempfile.gettempdir()) / f"bench-{name}")
    with tempfile.TemporaryDirectory(prefix="neighbor-") as place:
        lab = Lab(Path(place) / "server")
        try:
            fill(lab.root, count=FILES, contents=lambda number: b"same\n")
            figures = _measure(lab, Path(place))
        finally:
            lab.stop()
    say(
        "neighbor",
        figures=figures,
        limits={
            "by_locks": Limit(at_most=1.1),
            "have_list_by_locks": Limit(at_most=1.1),
        },
        load_before=load_before,
    )


def _measure(lab: Lab, place: Path) -> dict[str, Any]:
    """Return what the other user saw, and what our flushes held and waited for."""
    gateway = PerforceGateway(
        PerforceAccount(
            port=f"127.0.0.1:{lab.ready['port']}",
            user=USER,
            password=lab.ready["password"],
            charset="none",
            fingerprint="",
        )
    )
    neighbor = Neighbor(lab, place)
    rest, seen = Seen(), {}
    for name, threads, in_batches in (
        ("governed", BUDGET, True),
        ("fifty_at_once", AT_ONCE, False),
    ):
        for _ in range(COMMANDS):
            neighbor.work(rest)
        ours: list[LockUse] = []
        provision = partial(
            _provision, gateway, place, ours, name=name, in_batches=in_batches
        )
        began = time.monotonic()
        busy = _while_busy(neighbor, provision, threads=threads)
        seen[name] = (
            busy,
            {
                "took_seconds": round(time.monotonic() - began, 1),
                "we_held_ms_most": max((use.held_ms for use in ours), default=0),
                "we_waited_ms_most": max((use.waited_ms for use in ours), default=0),
            },
        )
    figures = {
        name: {**busy.figures(rest=rest), **more} for name, (busy, more) in seen.items()
    }
    return {
        "by_locks": figures["governed"]["by_locks"],
        "have_list_by_locks": figures["governed"]["have_list_by_locks"],
        "clients": CLIENTS,
        "files": FILES,
        "directories": FILES // PER_DIRECTORY,
        "at_rest": rest.figures(rest=rest),
        **figures,
    }


def _provision(
    gateway: PerforceGateway,
    place: Path,
    ours: list[LockUse],
    number: int,
    *,
    name: str,
    in_batches: bool,
) -> None:
    client = f"{name}-{number}"
    gateway.clients.save(_spec(client, place))

    def note(use: LockUse | None) -> bool:
        """Keep what a command used; nobody is said to wait for it."""
        if use is not None:
            ours.append(use)
        return False

    gateway.files.flush(client, change=CHANGE, in_batches=in_batches, on_command=note)


def _spec(client: str, place: Path) -> ClientSpec:
    return ClientSpec(
        name=client,
        owner=USER,
        root=str(place / client),
        description="Benchmark.\n",
        view=(f"//depot/product/... //{client}/...",),
    )


def _while_busy(
    neighbor: Neighbor, provision: Callable[[int], None], *, threads: int
) -> Seen:
    """Return what the other user saw until all clients were flushed."""
    seen, done = Seen(), threading.Event()

    def go_on() -> None:
        while not done.is_set():
            neighbor.work(seen)

    watching = threading.Thread(target=go_on)
    watching.start()
    try:
        with ThreadPoolExecutor(max_workers=threads) as pool:
            list(pool.map(provision, range(CLIENTS)))
    finally:
        done.set()
        watching.join()
    return seen


if __name__ == "__main__":
    main()
