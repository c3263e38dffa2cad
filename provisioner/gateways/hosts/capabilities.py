"""Capabilities that the unit of host workers leaves to its drop-ins.

Source: capabilities(7), CapEff in proc_pid_status(5).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

_SYS_PTRACE, _SYS_ADMIN = 19, 21


def lacks_sys_admin() -> bool:
    """Return whether this process is root, but may make no mounts and namespaces."""
    return _is_root_without(_SYS_ADMIN)


def lacks_sys_ptrace() -> bool:
    """Return whether this process is root, but not told of others' environments."""
    return _is_root_without(_SYS_PTRACE)


def _is_root_without(capability: int) -> bool:
    if os.geteuid() != 0:
        return False
    lines = Path("/proc/self/status").read_text().splitlines()
    [effective] = [line.split()[1] for line in lines if line.startswith("CapEff:")]
    return not int(effective, 16) >> capability & 1


def how_to_allow(what: Literal["commands", "mounts"]) -> str:
    """Return where an administrator allows a worker what it lacks."""
    return (
        f"Its unit needs the drop-in cloneyard-host-worker-{what}.conf: run install.sh "
        f"with --allow {what}. A container needs CAP_SYS_ADMIN added."
    )
