"""The sandbox of template and bisection commands, and how commands ended there."""

from __future__ import annotations

import signal
from pathlib import Path

from django.conf import settings

from provisioner.catalog.steps.run import TemplateRun
from provisioner.gateways.hosts.build import BuildResult
from provisioner.gateways.hosts.sandbox.bounds import Bounds
from provisioner.lib.sizes import size_text
from provisioner.sites.sandbox import MIB, bounds_of_host


def bounds_of(run: TemplateRun, *, junction_path: str, root: Path) -> Bounds:
    """Return the bounds of a command that works in one volume.

    Of our sites' namespaces it sees only this volume, at its usual path, and none of
    Cloneyard's own files.
    """
    at = (str(run.site.path_of(junction_path)), str(root))
    return bounds_of_host()._replace(
        has_network=run.template.commands_have_network,
        file_bytes=run.template.volume_size_bytes,
        shown=(at, *((path, path) for path in settings.SANDBOX_VISIBLE)),
    )


def excess_of(result: BuildResult) -> str:
    """Return which limit stopped a command, as a sentence, or ""."""
    if result.log_is_full:
        limit = size_text(settings.STEP_LOG_MB * MIB)
        return f"It printed more than {limit} and was stopped."
    if result.ran_out_of_memory:
        limit = size_text(settings.SANDBOX_MEMORY_MB * MIB)
        return f"It took more than {limit} of memory and was stopped."
    if result.exit_code in (-signal.SIGXFSZ, 128 + signal.SIGXFSZ):
        return "It wrote a file larger than the template's volume and was stopped."
    return ""
