"""Test the sandbox of commands on this host by running one in it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from provisioner.gateways.hosts.build import BuildResult, run_build
from provisioner.lib.sizes import size_text
from provisioner.sites.connections.checklist import (
    ANSWER_WITHIN_SECONDS,
    Remark,
)
from provisioner.sites.models import Site
from provisioner.sites.sandbox import bounds_of_host

# What a host can have, in words for people, and what there is to do where it has not.
NAMES = {
    "processes": "their own processes",
    "mounts": "their own temporary directories and no other people's volumes",
    "proc": "their own /proc",
    "ipc": "their own shared memory",
    "cgroup": "a cgroup",
    "memory": "bounded memory",
    "watched_memory": "bounded memory",
    "pids": "bounded processes",
    "cpu": "bounded processors",
    "capabilities": "no capabilities",
}
ADVICE = "Commands of builds and bisections cannot run on this host: see its log."
NAMESPACES = ("processes", "mounts", "proc", "ipc")
GIVE_NAMESPACES = (
    "Run this worker as root with CAP_SYS_ADMIN; a container needs it added. Without "
    "root, allow user namespaces."
)
GIVE_CGROUP = (
    "Name a directory of cgroup version 2 in SANDBOX_CGROUP, with memory, pids and cpu "
    "enabled for its children, such as that of a unit with Delegate=yes."
)


def check_sandbox(site: Site) -> str:
    """Run a command that does nothing, and return which features held it.

    Raises: Remark if a required feature is missing; GatewayError.
    """
    result = _try(site)
    held = ", ".join(words for name, words in NAMES.items() if name in result.in_force)
    missing = {
        name: why
        for name, why in result.missing.items()
        if name not in ("pids", "cgroup")
    }
    bounds = _bounds_said(result)
    if not missing:
        return f"Commands have {held}. {bounds}"
    lacks = "; ".join(f"{NAMES[name]} ({why})" for name, why in missing.items())
    has_namespaces = missing.keys().isdisjoint(NAMESPACES)
    raise Remark(
        f"Commands of builds and bisections lack here: {lacks}. They have {held}. "
        f"{bounds}",
        advice=GIVE_CGROUP if has_namespaces else GIVE_NAMESPACES,
    )


def _bounds_said(result: BuildResult) -> str:
    """Return the limits of a command here, how they are set, and what has none."""
    bounds = bounds_of_host()
    held = frozenset(result.in_force)
    group = "by cgroup"
    memory = size_text(bounds.memory_bytes)
    lines = {
        f"memory to {memory} {group}": "memory" in held,
        f"memory to {memory}, checked every second": "watched_memory" in held,
        f"processors to {bounds.cpus:g} {group}": "cpu" in held,
        f"processes to {bounds.processes:,} {group}": "pids" in held,
        f"processes to {bounds.processes:,} of one uid": "pids" not in held,
        f"temporary files to {size_text(bounds.tmp_bytes)}": "mounts" in held,
        f"the log to {size_text(bounds.log_bytes)}": True,
    }
    unbounded = [
        name
        for name, is_bounded in (
            ("memory", {"memory", "watched_memory"} & held),
            ("processors", "cpu" in held),
            ("temporary files", "mounts" in held),
        )
        if not is_bounded
    ]
    said = f"Bounded: {'; '.join(line for line, is_so in lines.items() if is_so)}."
    return f"{said} Not bounded: {', '.join(unbounded)}." if unbounded else said


def _try(site: Site) -> BuildResult:
    is_root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as place:
        return run_build(
            command=":",
            cwd=Path("/"),
            environment={},
            uid=site.template_uid if is_root else os.geteuid(),
            gid=site.template_gid if is_root else os.getegid(),
            timeout_seconds=ANSWER_WITHIN_SECONDS,
            log_path=Path(place) / "log",
            bounds=bounds_of_host(),
        )
