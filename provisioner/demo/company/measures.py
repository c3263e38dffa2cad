"""What the studio measured: before and after an upgrade, and its own workspaces."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from statistics import fmean

from provisioner.demo.company.operations import Course
from provisioner.demo.company.sandboxes import FORMER_HOST, RUNS, Copies
from provisioner.demo.company.templates import Built
from provisioner.engine.models import Subject
from provisioner.qualification.models import (
    HostRound,
    PhaseTime,
    QualificationOperation,
    QualificationRun,
    RunFigure,
)
from provisioner.qualification.profiles import BY_CODE, LEVELS, level_figure
from provisioner.sandboxes.models import Sandbox

FILES = 70_000
PROCESSORS = 32
RELEASE = "P4D/LINUX26X86_64/{release}/2697822 (2025/01/12)"
# What a repeat took with the release that runs, in seconds.
BRANCHSUBMIT = {
    **{"integrate": 41.2, "compute": 3.9, "elapsed": 9.6, "exiting": 0.9},
    "commit": 4.1,
}
BROWSE = {
    **{"elapsed": 402.0, "max_dirs": 5_210.0, "max_files": 1_120.0},
    **{"max_fstat": 9_870.0, "max_filelog": 1_004.0, "concurrent": 32.0},
    **{"browses": 32_768.0, "unique": 21_870.0},
}
SYNC = {"elapsed": 38.4, "rate": 2_880.0, "mib": 875.0, "files": 56_000.0}
# What a step of one workspace takes by itself, and each more at once adds of that.
WORKSPACE = {
    **{"clone": (1.4, 0.012), "export": (0.1, 0.01), "mount": (0.3, 0.02)},
    **{"owner": (4.6, 0.03), "client": (0.2, 0.02), "flush": (3.8, 0.05)},
    **{"p4config": (0.05, 0.0), "reconcile": (131.0, 0.02)},
}
LOG_ENDED = (
    "The server's log was cut while it was measured, so figures are missing. Let "
    "nothing rotate it meanwhile, and retry."
)


class Measures:
    """Makes runs that have ended."""

    def __init__(self, copies: Copies) -> None:
        self._copies, self._studio = copies, copies.studio

    def take(self, templates: list[Built]) -> None:
        """Add all of them, oldest first."""
        self._at_sandbox("browse", BROWSE, days_ago=92, note="Before NVMe")
        self._at_sandbox(
            "browse",
            {
                code: value * 1.7 if "max" in code else value
                for code, value in BROWSE.items()
            }
            | {"elapsed": BROWSE["elapsed"] / 1.7},
            days_ago=54,
            note="Tables on NVMe",
        )
        self._at_sandbox(
            "branchsubmit", BRANCHSUBMIT, days_ago=41, note="Before 2025.1"
        )
        faster = {code: value * 0.83 for code, value in BRANCHSUBMIT.items()}
        self._at_sandbox(
            "branchsubmit", faster, days_ago=39, upgraded_from=RUNS, note="With 2025.1"
        )
        self._at_sandbox("sync", SYNC, days_ago=26, trouble=LOG_ENDED)
        self._at_sandbox("sync", SYNC, days_ago=25)
        self._at_template(templates[0], days_ago=12)

    def _run(
        self, profile: str, *, at: dt.datetime, ended_at: dt.datetime, **fields: object
    ) -> QualificationRun:
        rows, studio = self._studio.rows, self._studio
        usual = BY_CODE[profile].usual
        run = QualificationRun(
            subject=rows.add(Subject(kind="qualificationrun")),
            profile=profile,
            owner=self._copies.admin,
            created_at=at,
            ended_at=min(ended_at, studio.now),
            **usual,
            **{"state": QualificationRun.State.DONE, **fields},
        )
        run.name = f"{profile} at {run.measured_at}"[:100]
        rows.add(run)
        self._operate(run, ended_at=min(ended_at, studio.now))
        times = f"{run.repeats} times"
        caches = "" if run.template else ", warm"
        self._copies.log.tell(
            run,
            "qualification_requested",
            f"Requested run {run.pk} at {run.measured_at}: {times}{caches}.",
            at=at,
            by=run.owner,
        )
        if run.state == QualificationRun.State.DONE:
            kind, message = "qualification_done", f"Measured {times}."
        else:
            kind, message = "qualification_failed", run.status_message
        self._copies.log.tell(run, kind, message, at=run.ended_at or at)
        return run

    def _operate(self, run: QualificationRun, *, ended_at: dt.datetime) -> None:
        """Add the operation of a run: it measures, or looks at what is left."""
        kind, at = QualificationOperation.RUN, run.created_at
        if run.template is not None:
            kind, at = QualificationOperation.PROVE, ended_at - dt.timedelta(seconds=2)
        has_failed = run.state == QualificationRun.State.FAILED
        self._copies.engine.run(
            kind,
            run,
            by=run.owner,
            at=at,
            course=Course(
                seconds={"measure1": 0.9 * (ended_at - at).total_seconds()},
                fails_at="figures" if has_failed else "",
                code=run.status_code,
                message=run.status_message,
            ),
        )

    def _at_sandbox(
        self,
        profile: str,
        figures: Mapping[str, float],
        *,
        days_ago: float,
        upgraded_from: str = "",
        note: str = "",
        trouble: str = "",
    ) -> None:
        studio, copies = self._studio, self._copies
        at = studio.calendar.ago(days=days_ago)
        repeats = BY_CODE[profile].usual["repeats"]
        each = dt.timedelta(
            seconds=figures["elapsed"] + figures.get("integrate", 0) + 4
        )
        began = at + dt.timedelta(seconds=60)
        ended_at = began + repeats * each
        sandbox = copies.sandbox(
            f"baseline-{profile}-{round(days_ago)}",
            purpose=Sandbox.Purpose.BASELINE,
            by=copies.admin,
            at=at,
            seconds=(ended_at - at).total_seconds() + 20,
            reason=note,
            upgraded_from=upgraded_from,
        )
        failed = QualificationRun.State.FAILED
        run = self._run(
            profile,
            at=at,
            ended_at=ended_at,
            perforce_server=copies.server,
            sandbox=sandbox,
            site=sandbox.site,
            note=note,
            log_start=0,
            release=RELEASE.format(release=sandbox.release),
            **{
                "state": failed,
                "status_code": "log_was_cut",
                "status_message": trouble,
            }
            if trouble
            else {},
        )
        measured = 1 if trouble else repeats
        for repeat in range(1, measured + 1):
            starts = began + (repeat - 1) * each
            self._round(run, repeat=repeat, began=starts, ended=starts + each)
            self._figures(run, repeat, figures)

    def _round(
        self,
        run: QualificationRun,
        *,
        repeat: int,
        began: dt.datetime,
        ended: dt.datetime,
    ) -> None:
        chance = self._studio.chance
        self._studio.rows.add(
            HostRound(
                run=run,
                host_number=1,
                repeat=repeat,
                host=FORMER_HOST,
                token=f"cloneyard-measure-{run.pk}-{repeat}",
                began=began,
                ended=ended,
                processors=PROCESSORS,
                load_before=chance.uniform(0.1, 0.6),
                load_after=chance.uniform(1.5, 9.0),
            )
        )

    def _figures(
        self, run: QualificationRun, repeat: int, figures: Mapping[str, float]
    ) -> None:
        """Add the figures of a repeat, some hundredths from the usual ones."""
        found = {
            code: value * self._studio.chance.lognormvariate(0, 0.02)
            if code not in ("files", "browses", "concurrent", "mib")
            else value
            for code, value in figures.items()
        }
        if run.profile == "branchsubmit":
            found |= {"files": FILES, "commit_rate": FILES / found["commit"]}
            said = (
                f"Repeat {repeat}: {FILES:,} files in {found['commit']:.3f} s, by the "
                f"longest hold of a write lock: {found['commit_rate']:,.0f} files/s."
            )
            run.summary = "\n".join(filter(None, [run.summary, said]))
        for code, value in found.items():
            self._figure(run, repeat, code, value)

    def _figure(
        self, run: QualificationRun, repeat: int, code: str, value: float
    ) -> None:
        self._studio.rows.add(RunFigure(run=run, repeat=repeat, code=code, value=value))

    def _at_template(self, built: Built, *, days_ago: float) -> None:
        at = self._studio.calendar.ago(days=days_ago)
        site = built.template.site
        run = self._run(
            "workspaces",
            at=at,
            ended_at=at + dt.timedelta(minutes=94),
            perforce_server=site.perforce_server,
            template=built.template,
            site=site,
            note="After the second worker host",
        )
        for repeat in range(1, run.repeats + 1):
            for at_once in LEVELS:
                self._batch(run, repeat=repeat, at_once=at_once)

    def _batch(self, run: QualificationRun, *, repeat: int, at_once: int) -> None:
        chance = self._studio.chance
        took: dict[str, list[float]] = {}
        for number in range(1, at_once + 1):
            steps = {
                phase: usual * (1 + more * at_once) * chance.lognormvariate(0, 0.15)
                for phase, (usual, more) in WORKSPACE.items()
            }
            waited = chance.uniform(0, 0.4) * at_once
            steps["ready"] = sum(steps.values()) + waited
            for phase, seconds in steps.items():
                took.setdefault(phase, []).append(seconds)
                self._studio.rows.add(
                    PhaseTime(
                        run=run,
                        at_once=at_once,
                        repeat=repeat,
                        number=number,
                        phase=phase,
                        seconds=seconds,
                    )
                )
        for phase, seconds_each in took.items():
            code = level_figure(phase, at_once)
            self._figure(run, repeat, code, fmean(seconds_each))
