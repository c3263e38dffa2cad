"""What a command may use on a host, and what is hidden from it."""

from __future__ import annotations

from django.conf import settings

from provisioner.gateways.hosts.sandbox.bounds import Bounds
from provisioner.sites.models import Site

MIB = 1 << 20


SHORTEST_SILENCE_SECONDS = 2.0


def bounds_of_host() -> Bounds:
    """Return the limits of every command on this host, and what is hidden from it."""
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
    """Return what no command needs to see: other volumes, rescues, logs, secrets."""
    of_sites = Site.objects.values_list("mount_root", "rescue_root")
    ours = (str(settings.VAR_DIR), str(settings.LOG_DIR), *settings.SECRET_FILES)
    return tuple({path for path in (*sum(of_sites, ()), *ours) if path})
