"""What a host does in one repeat of each profile, and how long that took."""

from __future__ import annotations

import contextvars
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TypeVar

from django.db import connections

from provisioner.gateways.hosts import checkpoint_files
from provisioner.gateways.hosts.run_as import run_as
from provisioner.gateways.perforce.benchmarks import Synced
from provisioner.qualification.profiles import INTEGRATES, SYNCS
from provisioner.qualification.steps.run import Figures, QualificationStep

_MIB = 1 << 20
LONGEST_SECONDS = 24 * 3600.0
# Of the database's size: its dump, which is compressed, and the database rebuilt.
ROOM_OF_DATABASE = 1.5
Answer = TypeVar("Answer")


def _of_children(
    run: QualificationStep, child: Callable[[int], Answer], *, stagger_ms: int = 0
) -> list[Answer]:
    """Return what each child did: processes of their own, that begin in turn."""

    def begin(number: int) -> Answer:
        time.sleep(number * stagger_ms / 1000)
        try:
            return child(number)
        finally:
            connections.close_all()

    children = run.row.children
    with ThreadPoolExecutor(children, thread_name_prefix="child") as pool:
        begun = [
            pool.submit(contextvars.copy_context().run, begin, number)
            for number in range(children)
        ]
        return [each.result() for each in begun]


def _browse(run: QualificationStep, token: str, repeat: int) -> Figures:
    row, benchmarks = run.row, run.perforce.benchmarks

    def child(number: int) -> tuple[float, float, int]:
        done = run_as(
            run.owner,
            benchmarks.browse,
            f"{token}-{number}",
            top=f"{run.top}/main",
            browses=row.rounds,
            seed=row.seed + 1000 * number,
        )
        return done.began, done.ended, done.browses

    done = _of_children(run, child, stagger_ms=row.stagger_ms)
    return {**_span(done), "browses": sum(browses for _, _, browses in done)}


def _sync(run: QualificationStep, token: str, repeat: int) -> Figures:
    done = _of_children(run, partial(_synced, run, token))
    took = [each.ended - each.began for each in done]
    return {
        **_span([(each.began, each.ended, each.files) for each in done]),
        "clients": len(took),
        "client_seconds": sum(took),
        "client_longest": max(took),
        "files": sum(each.files for each in done),
        "mib": sum(each.bytes for each in done) / _MIB,
    }


def _synced(run: QualificationStep, token: str, number: int) -> Synced:
    """Sync everything into an empty client of its own, which is deleted then."""
    benchmarks, client = run.perforce.benchmarks, f"{token}-{number}"
    with run.scratch() as root:
        done = run_as(
            run.owner,
            benchmarks.sync,
            client,
            top=f"{run.top}/main",
            root=str(root / "tree"),
        )
    benchmarks.delete_client(client)
    return done


def _span(done: list[tuple[float, float, int]]) -> Figures:
    return {
        "began": min(began for began, _, _ in done),
        "ended": max(ended for _, ended, _ in done),
    }


def _branch(run: QualificationStep, token: str, repeat: int) -> Figures:
    benchmarks, edits = run.perforce.benchmarks, run.row.profile != "branchsubmit"
    client = f"{token}-0"
    with run.scratch() as root:
        done = run_as(
            run.owner,
            benchmarks.branch,
            client,
            root=str(root / "tree"),
            source=f"{run.top}/main",
            target=f"{run.top}/{token}",
            edits=edits,
        )
    benchmarks.delete_client(client)
    edit = {"edit": done.edit_seconds} if edits else {}
    return {
        "integrate": done.integrate_seconds,
        **edit,
        "submit": done.submit_seconds,
        "files": done.files,
    }


def _six(run: QualificationStep, token: str, repeat: int) -> Figures:
    """Measure RIM's six phases, in their order."""
    benchmarks, client = run.perforce.benchmarks, f"{token}-1"
    locked = benchmarks.lock(client, top=f"{run.top}/main")
    benchmarks.delete_client(client)
    populated = _synced(run, token, 2)
    branched = _branch(run, token, repeat)
    return {
        "lock": locked,
        "populate": populated.ended - populated.began,
        **branched,
        **_rebuilt(run),
    }


def _rebuilt(run: QualificationStep) -> Figures:
    """Dump the sandbox's database, and replay it into an empty root beside it."""
    p4d = run.p4d(ignores_case=not run.original.is_case_sensitive)
    size = run_as(run.owner, checkpoint_files.database_bytes, p4d.root)
    work = run_as(
        run.owner,
        checkpoint_files.begin_work,
        p4d.root,
        run.work_tag,
        int(size * ROOM_OF_DATABASE),
    )
    try:
        began = time.monotonic()
        p4d.checkpoint(work / "measured.gz", within_seconds=LONGEST_SECONDS)
        dumped = time.monotonic()
        run_as(run.owner, checkpoint_files.empty_directory, work / "root")
        other = replace(
            p4d,
            root=work / "root",
            journal=work / "root" / "journal",
            log=work / "root" / "log",
        )
        restarted = time.monotonic()
        other.restore(work / "measured.gz", within_seconds=LONGEST_SECONDS)
        rebuilt = time.monotonic()
    finally:
        run_as(run.owner, checkpoint_files.end_work, p4d.root, run.work_tag)
    return {"checkpoint": dumped - began, "rebuild": rebuilt - restarted}


def _deltas(run: QualificationStep, token: str, repeat: int) -> Figures:
    gateway, client = run.perforce, f"{token}-0"
    gateway.benchmarks.define(client, top=run.top)
    seconds = gateway.timing.seconds_of
    leaves = [f"{run.top}/main/0{number}" for number in range(10)]
    try:
        integrated = sum(
            seconds(
                ("integrate", "-n", f"{leaf}/...", f"{run.top}/{token}/{number}/..."),
                client=client,
            )
            for number, leaf in enumerate((leaves * INTEGRATES)[:INTEGRATES])
        )
        synced = sum(
            seconds(("sync", "-n", f"{leaf}/..."), client=client)
            for leaf in (leaves * SYNCS)[:SYNCS]
        )
    finally:
        gateway.benchmarks.delete_client(client)
    return {"integrate_n": integrated, "sync_n": synced}


WORKLOADS: dict[str, Callable[[QualificationStep, str, int], Figures]] = {
    "browse": _browse,
    "branchsubmit": _branch,
    "branchsubmit-edit": _branch,
    "sync": _sync,
    "build-load": _sync,
    "rim": _six,
    "deltas": _deltas,
}
