"""What has to be on this host, and allowed there: asked before a worker starts."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from django.conf import settings

from provisioner.engine.queues import (
    BISECTIONS_PREFIX,
    COMMANDS_PREFIX,
    HOST_PREFIX,
    SANDBOXES_PREFIX,
)
from provisioner.engine.worker_pools import Pool
from provisioner.gateways.hosts.capabilities import lacks_sys_ptrace
from provisioner.gateways.hosts.volume_mounts import COMMAND_PATH

USUAL_MOUNT_COMMAND = ["mount", "-t", "nfs"]
# It would take each server for stopped, and leave it running.
NO_SANDBOXES = (
    "This worker cannot see the processes of sandboxes, without CAP_SYS_PTRACE. Its "
    "unit needs the drop-in cloneyard-host-worker-sandboxes.conf: docs/sandboxes.md."
)


def why_unfit(pools: Sequence[Pool]) -> str:
    """Return why a worker with these pools cannot work here, "" if it can.

    Only what it needs is looked at: hosts share settings, and not all mount volumes or
    run commands.
    """
    runs_commands = any(p.own in (COMMANDS_PREFIX, BISECTIONS_PREFIX) for p in pools)
    if runs_commands and (why := _why_no_cgroup()):
        return why
    if any(pool.own == SANDBOXES_PREFIX for pool in pools) and lacks_sys_ptrace():
        return NO_SANDBOXES
    if any(_serves_hosts(pool) for pool in pools) and (why := _why_no_mount_command()):
        return why
    return why_no_log_directory()


def why_no_log_directory() -> str:
    """Return why LOG_DIR is not there and cannot be made, "" otherwise."""
    directory = Path(settings.LOG_DIR)
    there = next(path for path in (directory, *directory.parents) if path.exists())
    if not there.is_dir():
        why = f"{there} is no directory"
    elif there != directory and not os.access(there, os.W_OK | os.X_OK):
        why = f"nothing may be written to {there}"
    else:
        return ""
    return (
        f"LOG_DIR {directory} cannot be made: {why}. Set it, or VAR_DIR above it, to a "
        "directory that workers may make."
    )


def _why_no_cgroup() -> str:
    named = settings.SANDBOX_CGROUP
    if not named or Path(named, "cgroup.procs").exists():
        return ""
    return (
        f"SANDBOX_CGROUP {named} is no directory of cgroup version 2 on this host. "
        "Make it, name another, or leave it empty for the worker's own."
    )


def _why_no_mount_command() -> str:
    command = settings.MOUNT_COMMAND
    # The usual one is for hosts that mount the namespace as well, and need none.
    if command == USUAL_MOUNT_COMMAND or shutil.which(command[0], path=COMMAND_PATH):
        return ""
    return (
        f"MOUNT_COMMAND names {command[0]}, which is no program on this host. Install "
        "it, correct the path, or leave it empty for mount -t nfs."
    )


def _serves_hosts(pool: Pool) -> bool:
    queues = pool.queues
    if pool.own:
        return False
    return queues is None or any(name.startswith(HOST_PREFIX) for name in queues)
