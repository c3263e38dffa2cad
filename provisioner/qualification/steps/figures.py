"""How the server's log of a run is read, and its figures computed."""

from __future__ import annotations

import gzip
import io

from provisioner.qualification.models import (
    LARGEST_LOG,
    QualificationRun,
    RunFigure,
    RunLog,
)
from provisioner.qualification.profiles import BRANCHING, BROWSED
from provisioner.qualification.steps.run import Figures, QualificationStep
from provisioner.qualification.summaries import LogFigures
from provisioner.server_log.parsing import LogParser
from provisioner.server_log.refusals import NotAServerLog

_PIECE = 1 << 20
_MIB = 1 << 20


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
        elif code in ("ended", "client_longest"):
            found[code] = max(found.get(code, value), value)
        else:
            found[code] = found.get(code, 0.0) + value
    if "began" in found:
        found["elapsed"] = found["ended"] - found["began"]
    if "clients" in found:
        found["client_average"] = found["client_seconds"] / found["clients"]
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
