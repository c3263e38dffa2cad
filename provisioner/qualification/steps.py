"""How a run measures. Each step is safe to repeat: a repeat that is complete is kept.

Every repeat names clients of its own, so the server's log tells by them what belongs to
it.
"""

from __future__ import annotations

import contextvars
import datetime as dt
import gzip
import io
import os
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from django.db import connections

from provisioner.engine.results import StepResult
from provisioner.engine.step_run import StepRun
from provisioner.gateways import registry
from provisioner.gateways.hosts import page_cache
from provisioner.gateways.hosts.run_as import run_as
from provisioner.gateways.owners import Ids
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.lib.refusals import StepRefused
from provisioner.qualification.models import (
    LARGEST_LOG,
    HostRound,
    QualificationRun,
    RunFigure,
    RunLog,
)
from provisioner.qualification.profiles import BRANCHING, BROWSED, INTEGRATES, SYNCS
from provisioner.qualification.summaries import LogFigures
from provisioner.sandboxes.models import Sandbox
from provisioner.server_log.parsing import LogParser
from provisioner.server_log.refusals import NotAServerLog

_PIECE = 1 << 20
_MIB = 1 << 20
Answer = TypeVar("Answer")
Figures = dict[str, float]


class QualificationStep(StepRun):
    """One attempt at a step of a run."""

    @property
    def row(self) -> QualificationRun:
        row: QualificationRun = self.operation.subject.row
        return row

    @property
    def perforce(self) -> PerforceGateway:
        """The gateway to what is measured: the sandbox, or the scratch server."""
        account = registry.perforce_account(self.row.perforce_server)
        sandbox = self.row.sandbox
        if sandbox is not None:
            registry.require_secret_host(sandbox.host.address, system="perforce")
            account = replace(account, port=sandbox.p4port, fingerprint="")
        return registry.perforce_as(account)

    @property
    def owner(self) -> Ids:
        """Who works on the files of clients."""
        return Ids(uid=self.row.uid, gid=self.row.gid)

    @property
    def top(self) -> str:
        return self.result_of(DataMade).top

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """Have a directory on this host that belongs to whoever works on files."""
        with tempfile.TemporaryDirectory(
            prefix="cloneyard-", ignore_cleanup_errors=True
        ) as made:
            if os.geteuid() == 0:
                os.chown(made, self.row.uid, self.row.gid)
            yield Path(made)


@dataclass(frozen=True)
class DataMade(StepResult):
    """Where the files are that are measured with."""

    step = "data"
    top: str


# --- before anything is measured


def ensure_target(run: QualificationStep) -> None:
    """Check that what answers may be measured, and note where its log ends.

    Raises: StepRefused.
    """
    row = run.row
    _require_allowed(row)
    gateway = run.perforce
    info = gateway.get_info()
    sandbox = row.sandbox
    if sandbox is not None:
        if info.server_id != sandbox.server_id:
            raise StepRefused(
                f"What answers at {sandbox.p4port} is {info.server_id or 'nameless'}, "
                "not the sandbox. Nothing was measured.",
                code="another_server_answers",
            )
        for name, value in (("server", "3"), ("track", "1")):
            gateway.benchmarks.set(name, value)
    if row.log_start is None:
        end = gateway.benchmarks.log_end()
        with run.writing():
            QualificationRun.objects.filter(pk=row.pk).update(
                log_start=end, release=info.version[:200]
            )


def _require_allowed(row: QualificationRun) -> None:
    """Refuse what must not be measured any more. Raises: StepRefused."""
    if row.sandbox is not None:
        row.sandbox.refresh_from_db(fields=["state"])
        if row.sandbox.state != Sandbox.State.READY:
            raise StepRefused(
                f"The sandbox {row.sandbox.name} is not ready any more. Nothing was "
                "measured since.",
                code="sandbox_not_ready",
            )
        return
    row.perforce_server.refresh_from_db(fields=["is_scratch"])
    if not row.perforce_server.is_scratch:
        raise StepRefused(
            f"{row.perforce_server.name} is not marked as scratch any more. Nothing "
            "was measured since.",
            code="server_not_scratch",
        )


def ensure_data(run: QualificationStep) -> DataMade:
    """Ensure that the files of the seed are at the server."""
    row, gateway = run.row, run.perforce
    _require_allowed(row)
    depot = gateway.benchmarks.depot()
    top = f"//{depot}/cloneyard-measures/{row.seed}-{row.size}-{row.files}"
    if gateway.benchmarks.count(f"{top}/main") < row.files:
        client = f"cyq{row.pk}data"
        with run.scratch() as root:
            run_as(
                run.owner,
                gateway.benchmarks.add,
                client,
                top=top,
                root=str(root / "data"),
                files=row.files,
                size=row.size,
                seed=row.seed,
                on_progress=partial(_made, run),
            )
        gateway.benchmarks.delete_client(client)
    return DataMade(top=top)


def _made(run: QualificationStep, files: int) -> None:
    run.progress(
        "Making files", done=files, total=run.row.files, unit="files", phase="data"
    )


# --- the measurement


def ensure_measured(run: QualificationStep, *, host_number: int) -> None:
    """Measure every repeat that has not been measured on this host yet."""
    row = run.row
    first = 1 if row.is_cold else 0
    known = row.host_rounds.filter(host_number=host_number)
    done = set(known.values_list("repeat", flat=True))
    for repeat in range(first, row.repeats + 1):
        if repeat in done:
            continue
        _require_allowed(row)
        if row.is_cold:
            _forget_files(run)
        _measure(run, host_number=host_number, repeat=repeat)
        run.progress(
            f"Repeat {repeat} of {row.repeats}",
            done=repeat,
            total=row.repeats,
            unit="repeats",
        )


def _forget_files(run: QualificationStep) -> None:
    """Make the host of a sandbox forget the server's database and archives."""
    sandbox = run.row.sandbox
    assert sandbox is not None
    page_cache.forget(
        run.visible_root(volume.junction_path)
        for volume in sandbox.volumes.select_related("sandbox")
    )


def _measure(run: QualificationStep, *, host_number: int, repeat: int) -> None:
    row = run.row
    token = f"cyq{row.pk}h{host_number}r{repeat}a{run.step.attempt}"
    began, load_before = dt.datetime.now(dt.UTC), os.getloadavg()[0]
    figures = _PROFILES[row.profile](run, token, repeat)
    ended = dt.datetime.now(dt.UTC)
    with run.writing():
        HostRound.objects.create(
            run=row,
            host_number=host_number,
            repeat=repeat,
            host=socket.gethostname()[:255],
            token=token,
            began=began,
            ended=ended,
            processors=os.cpu_count() or 1,
            load_before=load_before,
            load_after=os.getloadavg()[0],
        )
        RunFigure.objects.bulk_create(
            RunFigure(
                run=row,
                repeat=repeat,
                host_number=host_number,
                code=code,
                value=value,
            )
            for code, value in figures.items()
        )


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
    benchmarks = run.perforce.benchmarks

    def child(number: int) -> tuple[float, float, int, int]:
        with run.scratch() as root:
            done = run_as(
                run.owner,
                benchmarks.sync,
                f"{token}-{number}",
                top=f"{run.top}/main",
                root=str(root / "tree"),
            )
        benchmarks.delete_client(f"{token}-{number}")
        return done.began, done.ended, done.files, done.bytes

    done = _of_children(run, child)
    return {
        **_span([(began, ended, files) for began, ended, files, _ in done]),
        "files": sum(files for _, _, files, _ in done),
        "mib": sum(size for _, _, _, size in done) / _MIB,
    }


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


_PROFILES: dict[str, Callable[[QualificationStep, str, int], Figures]] = {
    "browse": _browse,
    "branchsubmit": _branch,
    "branchsubmit-edit": _branch,
    "sync": _sync,
    "deltas": _deltas,
}


# --- the analysis


def ensure_figures(run: QualificationStep) -> None:
    """Read the server's log of the run, keep it, and compute the figures."""
    row = run.row
    rounds = list(row.host_rounds.filter(repeat__gt=0))
    log, told = _read_log(run, [each.token for each in rounds])
    figures: list[RunFigure] = []
    said: list[str] = []
    for repeat in range(1, row.repeats + 1):
        tokens = [each.token for each in rounds if each.repeat == repeat]
        found = _on_hosts(row, repeat)
        sentences = _combined(row, found, tokens, told)
        said += [f"Repeat {repeat}: {sentence}" for sentence in sentences]
        figures += [
            RunFigure(run=row, repeat=repeat, code=code, value=value)
            for code, value in found.items()
            if row.described.figure(code) is not None
        ]
    with run.writing():
        row.figures.filter(host_number=0).delete()
        RunFigure.objects.bulk_create(figures)
        RunLog.objects.update_or_create(run=row, defaults=log)
        QualificationRun.objects.filter(pk=row.pk).update(summary="\n".join(said))


def _on_hosts(row: QualificationRun, repeat: int) -> Figures:
    """Return the figures of all hosts of a repeat together."""
    found: Figures = {}
    rows = row.figures.filter(repeat=repeat, host_number__gt=0)
    for code, value in rows.values_list("code", "value"):
        if code == "began":
            found[code] = min(found.get(code, value), value)
        elif code == "ended":
            found[code] = max(found.get(code, value), value)
        else:
            found[code] = found.get(code, 0.0) + value
    if "began" in found:
        found["elapsed"] = found["ended"] - found["began"]
    if found.get("elapsed") and "mib" in found:
        found["rate"] = found["mib"] / found["elapsed"]
    return found


def _combined(
    row: QualificationRun, found: Figures, tokens: list[str], told: LogFigures
) -> list[str]:
    """Add what the log tells of a repeat to its figures; return it as sentences."""
    if row.profile in BRANCHING:
        return _of_commit(found, tokens, told)
    if row.profile != "browse":
        return []
    together = told.together(tokens)
    for name in BROWSED:
        if busiest := together.busiest(name):
            found[f"max_{name}"] = busiest[0]
    found |= {"concurrent": together.concurrent, "unique": len(together.paths)}
    return [
        f"{row.children * row.hosts} children over {row.hosts} hosts browsed for "
        f"{found.get('elapsed', 0):.0f} seconds.",
        *together.sentences(),
        f"{found.get('browses', 0):.0f} total browses browsed "
        f"{len(together.paths)} unique filepaths.",
    ]


def _of_commit(found: Figures, tokens: list[str], told: LogFigures) -> list[str]:
    """Add what the log tells of a commit, or the host where it tells nothing."""
    commit = told.commit(tokens[0]) if tokens else None
    if commit is None or commit.commit is None:
        found["elapsed"] = found.get("submit", 0.0)
        return ["The log has no dm-CommitSubmit, so there is no commit rate."]
    found["commit"] = commit.commit
    found["commit_rate"] = found.get("files", 0.0) / commit.commit
    found["elapsed"] = commit.elapsed or found.get("submit", 0.0)
    if commit.compute is not None:
        found["compute"] = commit.compute
    if commit.exiting is not None:
        found["exiting"] = commit.exiting
    by = (
        "by the longest hold of a write lock"
        if commit.is_by_locks
        else "by all of dm-CommitSubmit, as the log tells no locks: set track=1"
    )
    return [
        f"{found.get('files', 0):,.0f} files in {commit.commit:.3f} s, {by}: "
        f"{found['commit_rate']:,.0f} files/s."
    ]


def _read_log(
    run: QualificationStep, tokens: list[str]
) -> tuple[dict[str, object], LogFigures]:
    """Return the log since the run began, and what it tells of these repeats."""
    told, parser = LogFigures(), LogParser()
    packed, size, kept = io.BytesIO(), 0, 0
    # Each look is logged, too: without an end it would go on for ever.
    offset, end = run.row.log_start or 0, run.perforce.benchmarks.log_end()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=6) as log:
        while offset < end:
            piece = run.perforce.log.read(offset=offset, at_most=_PIECE)
            if not piece.data:
                break
            told.take(parser.feed(piece.data), tokens=tokens)
            if kept + len(piece.data) <= LARGEST_LOG:
                log.write(piece.data)
                kept += len(piece.data)
            size += len(piece.data)
            offset = piece.next_offset
            run.progress(f"Read {size / _MIB:.0f} MiB of the log", phase="log")
    try:
        told.take(parser.finish(), tokens=tokens)
    except NotAServerLog:
        # Nothing was logged since: the server has no log, or says nothing in it.
        size = 0
    kept_whole = kept == size
    return {"data": packed.getvalue(), "size": size, "is_whole": kept_whole}, told
