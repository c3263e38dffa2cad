"""Running a template's own commands in its volume: the build, and the test."""

from __future__ import annotations

import os
from typing import Any

from provisioner.catalog.models import Quality
from provisioner.catalog.steps.room import room_of_template
from provisioner.catalog.steps.run import TemplateRun
from provisioner.catalog.steps.sandboxing import bounds_of, excess_of
from provisioner.engine.logs.excerpt import excerpt_of
from provisioner.gateways.hosts import build
from provisioner.gateways.hosts.build import BuildResult
from provisioner.lib.refusals import StepRefused


def ensure_built(run: TemplateRun) -> dict[str, Any]:
    """Have the build command succeed, as the template's uid; its log is kept."""
    template = run.template
    if not template.build_command.strip():
        return {"seconds": 0.0}
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
            f"The build took too much. {excess} Nothing was published; the log is "
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
    return {"seconds": result.seconds}


def ensure_tested(run: TemplateRun) -> dict[str, Any]:
    """Have the test command run; what it finds becomes the mark of the snapshot.

    Raises: StepRefused (the test had no room in the volume).
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
        reason = f"The test took too much. {excess}"
    elif result.exit_code != 0:
        reason = (
            f"The test ended with exit code {result.exit_code}.\n{excerpt_of(run.step)}"
        )
        # A lack of room says nothing of the change.
        room_of_template(run).require_after_command(run.step.log_path, after=reason)
    return {
        "seconds": result.seconds,
        "quality": Quality.FAILED if reason else Quality.TESTED,
        "has_rejected": bool(reason),
        "reason": reason,
    }


def ensure_outcome(run: TemplateRun) -> dict[str, Any]:
    """Let a test that failed be told, once the snapshot is there to look into it."""
    tested = run.result_of("test")
    if tested["quality"] == Quality.FAILED:
        name = run.result_of("snapshot")["snapshot"]
        raise StepRefused(
            f"The snapshot {name} is marked: nobody gets it without choosing it. The "
            f"next build is tried as usual. {tested['reason']}",
            code="test_failed",
        )
    return {}


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
            "CLONEYARD_CHANGE": str(run.result_of("client")["change"]),
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
