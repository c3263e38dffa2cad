"""What a command may see and use.

No dataclasses: importing these takes a fifth of the time that a sandbox takes to start.
"""

from __future__ import annotations

from typing import NamedTuple


class Bounds(NamedTuple):
    """The limits of a command, as far as the host can enforce them.

    `hidden` are paths that it does not see. `shown` are pairs for exceptions in them:
    where something is seen, and what. `cgroup` is the directory below which a group is
    created, "" for the worker's own. 0 bytes and 0 processors mean no limit. Processes
    that ignore SIGTERM are killed after `grace_seconds`. A frozen worker falls silent:
    its command is killed after `worker_silent_seconds`, so that whoever takes over the
    step has the volume to itself.
    """

    hidden: tuple[str, ...] = ()
    shown: tuple[tuple[str, str], ...] = ()
    has_network: bool = True
    tmp_bytes: int = 2 << 30
    log_bytes: int = 256 << 20
    file_bytes: int = 64 << 30
    open_files: int = 65_536
    processes: int = 4096
    memory_bytes: int = 0
    cpus: float = 0.0
    cgroup: str = ""
    grace_seconds: float = 5.0
    worker_silent_seconds: float = 60.0


class Order(NamedTuple):
    """A command with everything it gets. Without `uid` it runs as its starter.

    It does not start unless its worker allows it within `begins_within_seconds`.
    """

    command: str
    cwd: str
    environment: dict[str, str]
    uid: int | None
    gid: int | None
    umask: int
    begins_within_seconds: float
    bounds: Bounds = Bounds()
