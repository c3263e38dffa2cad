"""Test one change: clone a snapshot, update it to the change, run a command there.

The Perforce server only gets a client that maps the files while they are fetched. No
have list is written.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import os
import time
from dataclasses import dataclass
from pathlib import Path

from provisioner.bisect.models import INTERRUPTED, BisectionStep, Verdict
from provisioner.bisect.search import verdict_of
from provisioner.catalog.steps.sandboxing import bounds_of, excess_of
from provisioner.engine.models import Operation
from provisioner.engine.results import StepResult
from provisioner.gateways.errors import Refused
from provisioner.gateways.hosts import build
from provisioner.gateways.hosts.build import BuildResult
from provisioner.gateways.hosts.run_as import run_as
from provisioner.gateways.perforce.specs import parse_client_spec, rename_view
from provisioner.gateways.perforce.standins import Purpose
from provisioner.gateways.perforce.types import ClientSpec
from provisioner.lib import clocks
from provisioner.lib.databases import unless_database_is_away
from provisioner.lib.refusals import StepRefused
from provisioner.workspaces.purposes import known_client_types
from provisioner.workspaces.steps import access
from provisioner.workspaces.steps.run import WorkspaceRun, room_of

POLL_EVERY_SECONDS = 2.0


def step_of(run: WorkspaceRun) -> BisectionStep:
    return BisectionStep.objects.select_related("bisection", "workspace__site").get(
        workspace_id=run.workspace.pk
    )


def ensure_access(run: WorkspaceRun) -> None:
    """Verify that the owner may read the snapshot and the tested change.

    Raises: StepRefused.
    """
    tried = BisectionStep.objects.filter(workspace=run.workspace)
    changes = tried.values_list("change", flat=True)
    access.ensure_access(run, changes=set(changes))


def ensure_at_change(run: WorkspaceRun) -> None:
    """Ensure that the clone has the files of the tested change."""
    step, workspace = step_of(run), run.workspace
    pin = workspace.snapshot
    run.visible_root(workspace.junction_path)
    if pin.change == step.change:
        return
    stand_ins = workspace.stand_ins
    stand_ins.remove_all(run.perforce, Purpose.BISECTION_STEP)
    client = _client_of(run, name=stand_ins.new_name(Purpose.BISECTION_STEP))
    run.perforce.clients.save(client)
    with room_of(run).told_if_lacking():
        run_as(
            workspace,
            run.perforce.files.populate,
            client.name,
            since=pin.change,
            change=step.change,
            on_progress=lambda done, total: run.progress(
                f"from change {pin.change} to {step.change}",
                done=done,
                total=total,
                unit="files",
            ),
        )
    stand_ins.remove_all(run.perforce, Purpose.BISECTION_STEP)


def _client_of(run: WorkspaceRun, *, name: str) -> ClientSpec:
    """Return a client that maps the snapshot's files into the clone.

    Files get the current time, so that a build notices the change, and overwrite what a
    build left.
    """
    workspace = run.workspace
    pinned = parse_client_spec(workspace.snapshot.client_spec)
    words = pinned.options.split()
    others = {"locked": "unlocked", "noclobber": "clobber", "modtime": "nomodtime"}
    types = known_client_types(run.server)
    return dataclasses.replace(
        pinned,
        name=name,
        owner=run.perforce.account.user,
        host="",
        root=str(workspace.path),
        # The drift check reads its owner from this.
        description="Maps files for a bisection step in the Cloneyard workspace "
        f"{workspace.name} ({workspace.tag}).\n",
        options=" ".join(others.get(word, word) for word in words),
        stream="",
        # Its have list, of which there is none, is then nobody else's table, either.
        type="readonly" if types is not None and "readonly" in types else "",
        server_id="",
        view=rename_view(pinned.view, old=pinned.name, new=name),
        updated_at=None,
        accessed_at=None,
    )


@dataclass(frozen=True, kw_only=True)
class Ran(StepResult):
    """The command's verdict on the change, "" if it has none."""

    step = "run"
    verdict: str
    reason: str


def ensure_run(run: WorkspaceRun) -> Ran:
    """Run the command once in the clone, as its owner, and keep its log.

    An interrupted command may have changed files, so it is not run again in the same
    clone.
    """
    step = step_of(run)
    if step.command_started_at is not None:
        raise StepRefused(
            "Its worker ended while the command ran, so the clone is not used again.",
            code=INTERRUPTED,
        )
    root = run.visible_root(run.workspace.junction_path)
    _mark_started(run, step, at=clocks.database_now())
    try:
        result = _run_command(run, step, root=root)
    except Refused:  # this host cannot bound it: nothing was started
        _mark_started(run, step, at=None)
        raise
    if result.timed_out:
        limit = run.template.build_timeout_seconds
        verdict = ""
        reason = f"It did not end within {limit:,} seconds and was stopped."
    elif excess := excess_of(result):
        verdict, reason = "", excess
    else:
        verdict = verdict_of(result.exit_code)
        reason = f"It ended with exit code {result.exit_code}."
        if result.exit_code < 0:
            reason = f"It was ended by signal {-result.exit_code}."
        if verdict == Verdict.BAD and (lacking := _lack_told_by(run)):
            verdict, reason = "", f"{reason} {lacking}"
    return Ran(verdict=verdict, reason=reason)


def _mark_started(
    run: WorkspaceRun, step: BisectionStep, *, at: dt.datetime | None
) -> None:
    with run.writing():
        step.command_started_at = at
        step.save(update_fields=["command_started_at"])


def _lack_told_by(run: WorkspaceRun) -> str:
    """Return what the clone ran out of, which is no verdict; "" if nothing."""
    room = room_of(run)
    lack = room.lack_told_in(run.step.log_path)
    return "" if lack is None else room.sentence(lack)


def _run_command(run: WorkspaceRun, step: BisectionStep, *, root: Path) -> BuildResult:
    """Run the command like a build, with a build's time limit.

    Its environment is the template's for bisections only, as anybody who may start one
    can print it.
    """
    workspace, template = run.workspace, run.template
    stop = StopWatch(run)
    result = build.run_build(
        command=step.bisection.command,
        cwd=root,
        environment={
            **template.bisection_environment,
            "CLONEYARD_CHANGE": str(step.change),
        },
        uid=workspace.uid if os.geteuid() == 0 else os.geteuid(),
        gid=workspace.gid if os.geteuid() == 0 else os.getegid(),
        timeout_seconds=template.build_timeout_seconds,
        log_path=run.step.log_path,
        progress=lambda seen: stop.look(f"{seen.log_bytes:,} bytes of log"),
        bounds=bounds_of(run, junction_path=workspace.junction_path, root=root),
    )
    run.note_exit_code(result.exit_code)
    return result


class StopWatch:
    """Shows progress, and stops a command whose operation has ended."""

    def __init__(
        self, run: WorkspaceRun, *, every_seconds: float = POLL_EVERY_SECONDS
    ) -> None:
        self._run, self._every_seconds = run, every_seconds
        self._checked_at = time.monotonic()

    def look(self, text: str) -> None:
        """Raises: StepRefused if the operation has ended."""
        self._run.progress_of_command(text)
        if time.monotonic() - self._checked_at < self._every_seconds:
            return
        self._checked_at = time.monotonic()
        running = Operation.objects.filter(state=Operation.State.RUNNING)
        with unless_database_is_away():
            if not running.filter(pk=self._run.operation.pk).exists():
                raise StepRefused("It was stopped.", code="stopped")
