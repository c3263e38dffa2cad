"""A sync as templates do it beside a bare `P4().run_sync`: same lab, same files.

Prints a JSON line per figure. Ours runs in a process of its own as the owner of the
files, counts what arrives and tells its progress; the bare one does nothing of that.
Rounds in turn, each into a new directory with a new client. TEMPLATE_SYNC_FILES and
TEMPLATE_SYNC_ROUNDS change the numbers; TMPDIR decides where everything is written.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from lab_perforce import USER, Lab, fill, make_client, small_file
from shared.endings import end_in_order

from provisioner.gateways.hosts.run_as import run_as
from provisioner.gateways.owners import Ids
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.types import PerforceAccount, SyncProgress

FILES = int(os.environ.get("TEMPLATE_SYNC_FILES", "20000"))
ROUNDS = int(os.environ.get("TEMPLATE_SYNC_ROUNDS", "4"))
CHANGE = 1
# Without root the files are the caller's.
OWNER = 12345 if os.geteuid() == 0 else os.geteuid()


def main() -> None:
    """Measure both, in turn."""
    end_in_order()
    for variable, name in (("P4TICKETS", "tickets"), ("P4ENVIRO", "enviro")):
        os.environ[variable] = str(Path(tempfile.gettempdir()) / f"bench-{name}")
    with tempfile.TemporaryDirectory(prefix="template-sync-") as place:
        Path(place).chmod(0o755)
        _measure(Path(place))


def _measure(place: Path) -> None:
    lab = Lab(place / "server")
    fill(lab.root, count=FILES, contents=small_file)
    taken: dict[str, list[float]] = {"bare": [], "ours": []}
    worked: dict[str, list[float]] = {"bare": [], "ours": []}
    told = 0
    try:
        for number in range(ROUNDS):
            for name in taken:
                busy = _cpu_seconds()
                seconds, progress = _sync(lab, place, name=name, number=number)
                taken[name].append(seconds)
                worked[name].append(_cpu_seconds() - busy)
                told = max(told, len(progress))
    finally:
        lab.stop()
    for name, seconds_of_it in taken.items():
        best = min(seconds_of_it)
        _say(
            name,
            best,
            unit="s",
            median=round(statistics.median(seconds_of_it), 3),
            files_per_second=round(FILES / best),
            client_cpu=round(min(worked[name]), 2),
        )
    medians = statistics.median(taken["bare"]) / statistics.median(taken["ours"])
    _say(
        "ours / bare, throughput",
        min(taken["bare"]) / min(taken["ours"]),
        limit=">= 0.9",
        of_medians=round(medians, 3),
        progress_told=told,
    )


def _cpu_seconds() -> float:
    """Return the processor time of this process and of its children that ended."""
    both = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    used = [resource.getrusage(who) for who in both]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _sync(
    lab: Lab, place: Path, *, name: str, number: int
) -> tuple[float, list[SyncProgress]]:
    """Sync once; return its seconds and what progress it told."""
    client, root = f"{name}-{number}", place / f"{name}-{number}"
    root.mkdir()
    os.chown(root, OWNER, OWNER if os.geteuid() == 0 else os.getegid())
    p4 = make_client(lab, client, root)
    told: list[SyncProgress] = []
    os.sync()
    began = time.monotonic()
    if name == "bare":
        records = len(p4.run_sync(f"//{client}/...@{CHANGE}"))
    else:
        account = PerforceAccount(
            port=f"127.0.0.1:{lab.ready['port']}",
            user=USER,
            password=lab.ready["password"],
        )
        report = run_as(
            Ids(OWNER, OWNER if os.geteuid() == 0 else os.getegid()),
            PerforceGateway(account).files.sync,
            client,
            change=CHANGE,
            on_progress=told.append,
            replace_leftovers=True,
        )
        records = report.files
    seconds = time.monotonic() - began
    written = sum(1 for path in root.rglob("*.cpp"))
    assert records == written == FILES, (name, records, written)
    p4.disconnect()
    shutil.rmtree(root)
    return seconds, told


def _say(figure: str, value: float, **more: object) -> None:
    line = {"benchmark": "template_sync", "figure": figure, "value": round(value, 3)}
    load = round(os.getloadavg()[0], 2)
    print(json.dumps({**line, "files": FILES, **more, "load": load}), flush=True)


if __name__ == "__main__":
    main()
