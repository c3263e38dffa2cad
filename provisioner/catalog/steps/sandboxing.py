"""What holds the commands of templates and bisections, and what became of one."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from django.conf import settings

from provisioner.engine.step_run import StepRun
from provisioner.gateways.hosts.build import BuildResult
from provisioner.gateways.hosts.sandbox.bounds import Bounds
from provisioner.lib.sizes import size_text
from provisioner.sites.models import Site

MIB = 1 << 20
SHORTEST_SILENCE_SECONDS = 2.0


def bounds_of(run: StepRun, *, junction_path: str, root: Path) -> Bounds:
    """Return what a command sees and may take that works in one volume.

    Of the namespaces of our sites it sees this volume, where people see it, and of what
    is ours nothing.
    """
    at = (str(run.site.path_of(junction_path)), str(root))
    return dataclasses.replace(
        bounds_of_host(),
        has_network=run.template.commands_have_network,
        file_bytes=run.template.volume_size_bytes,
        shown=(at, *((path, path) for path in settings.SANDBOX_VISIBLE)),
    )


def bounds_of_host() -> Bounds:
    """Return what any command on this host may take, and what it does not see."""
    return Bounds(
        hidden=private_paths(),
        tmp_bytes=settings.SANDBOX_TMP_MB * MIB,
        log_bytes=settings.STEP_LOG_MB * MIB,
        processes=settings.SANDBOX_PROCESSES,
        memory_bytes=settings.SANDBOX_MEMORY_MB * MIB,
        cpus=settings.SANDBOX_CPUS,
        cgroup=settings.SANDBOX_CGROUP,
        # Over before another worker is given the step.
        worker_silent_seconds=max(
            SHORTEST_SILENCE_SECONDS, settings.WORKER_STALLED_SECONDS / 2
        ),
    )


def private_paths() -> tuple[str, ...]:
    """Return what no command has to see: other volumes, rescued work, logs, secrets."""
    of_sites = Site.objects.values_list("mount_root", "rescue_root")
    ours = (str(settings.VAR_DIR), str(settings.LOG_DIR), *settings.SECRET_FILES)
    return tuple({path for path in (*sum(of_sites, ()), *ours) if path})


def excess_of(result: BuildResult) -> str:
    """Say what a command took too much of, so that it was stopped; "" if nothing."""
    if result.log_is_full:
        limit = size_text(settings.STEP_LOG_MB * MIB)
        return f"It printed more than {limit} and was stopped."
    if result.ran_out_of_memory:
        limit = size_text(settings.SANDBOX_MEMORY_MB * MIB)
        return f"It took more than {limit} of memory and was stopped."
    return ""
