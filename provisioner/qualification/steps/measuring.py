"""How a host measures, repeat by repeat. A repeat that is complete is kept.

Every repeat names clients of its own, so the server's log tells by them what belongs to
it.
"""

from __future__ import annotations

import datetime as dt
import os
import socket

from provisioner.gateways.hosts import page_cache
from provisioner.qualification.models import HostRound, RunFigure
from provisioner.qualification.steps.preparing import require_allowed
from provisioner.qualification.steps.run import QualificationStep
from provisioner.qualification.steps.workloads import WORKLOADS


def ensure_measured(run: QualificationStep, *, host_number: int) -> None:
    """Measure every repeat that has not been measured on this host yet."""
    row = run.row
    run.remove_scratch()
    first = 1 if row.is_cold else 0
    known = row.host_rounds.filter(host_number=host_number)
    done = set(known.values_list("repeat", flat=True))
    for repeat in range(first, row.repeats + 1):
        if repeat in done:
            continue
        require_allowed(row)
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
    figures = WORKLOADS[row.profile](run, token, repeat)
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
