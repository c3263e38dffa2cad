"""Run a template's build and test commands in its volume."""

from __future__ import annotations

import os
from dataclasses import dataclass

from provisioner.catalog.models import Quality
from provisioner.catalog.pins import Pin
from provisioner.catalog.steps.room import room_of_template
from provisioner.catalog.steps.run import TemplateRun
from provisioner.catalog.steps.sandboxing import bounds_of, excess_of
from provisioner.engine.logs.excerpt import excerpt_of
from provisioner.engine.results import StepResult
from provisioner.gateways.hosts import build
from provisioner.gateways.hosts.build import BuildResult
from provisioner.lib.refusals import StepRefused


@dataclass(frozen=True)
class Built(StepResult):
    """How long the build took."""

    step = "build"
    seconds: float


def ensure_built(run: TemplateRun) -> Built:
    """Run the build command as the template's uid until it succeeds; keep its log."""
    template = run.template
    if not template.build_command.strip():
        return Built(0.0)
    result = _run_command(
        run,
        command=template.build_command,
        timeout_seconds=template.build_timeout_seconds,
    )
    if result.timed_out:
        raise StepRefused(
            f"The build did not end within {template.build_timeout_seconds:,} seconds "
            "and was stopped. Nothing was published; the log is kept.",
            code="build_timed_out",
        )
    if excess := excess_of(result):
        raise StepRefused(
            f"The build used too much. {excess} Nothing was published; the log is "
            "kept.",
            code="took_too_much",
        )
    if result.exit_code != 0:
        how = (
            f"The build ended with exit code {result.exit_code}. Nothing was "
            f"published; the log is kept.\n{excerpt_of(run.step)}"
        )
        room_of_template(run).require_after_command(run.step.log_path, after=how)
        raise StepRefused(how, code="build_failed")
    return Built(result.seconds)


@dataclass(frozen=True, kw_only=True)
class Tested(StepResult):
    """The outcome of the test. `reason` says why it failed, "" if it passed."""

    step = "test"
    seconds: float
    reason: str

    @property
    def has_rejected(self) -> bool:
        return bool(self.reason)

    @property
    def quality(self) -> Quality:
        """The quality of the snapshot that was tested."""
        return Quality.FAILED if self.reason else Quality.TESTED


def ensure_tested(run: TemplateRun) -> Tested:
    """Run the test command; its outcome becomes the snapshot's quality.

    Raises: StepRefused (the volume has no room for the test).
    """
    template = run.template
    result = _run_command(
        run,
        command=template.test_command,
        timeout_seconds=template.test_timeout_seconds,
    )
    reason = ""
    if result.timed_out:
        reason = (
            f"The test did not end within {template.test_timeout_seconds:,} seconds "
            "and was stopped."
        )
    elif excess := excess_of(result):
        reason = f"The test used too much. {excess}"
    elif result.exit_code != 0:
        reason = (
            f"The test ended with exit code {result.exit_code}.\n{excerpt_of(run.step)}"
        )
        # A lack of room says nothing of the change.
        room_of_template(run).require_after_command(run.step.log_path, after=reason)
    return Tested(seconds=result.seconds, reason=reason)


def _run_command(
    run: TemplateRun, *, command: str, timeout_seconds: float
) -> BuildResult:
    template = run.template
    root = run.visible_root(template.junction_path)
    result = build.run_build(
        command=command,
        cwd=root,
        environment={
            **template.build_environment,
            "CLONEYARD_CHANGE": str(run.result_of(Pin).change),
        },
        uid=run.site.template_uid if os.geteuid() == 0 else os.geteuid(),
        gid=run.site.template_gid if os.geteuid() == 0 else os.getegid(),
        timeout_seconds=timeout_seconds,
        log_path=run.step.log_path,
        progress=lambda seen: run.progress_of_command(
            f"{seen.log_bytes:,} bytes of log"
        ),
        bounds=bounds_of(run, junction_path=template.junction_path, root=root),
    )
    run.note_exit_code(result.exit_code)
    return result
