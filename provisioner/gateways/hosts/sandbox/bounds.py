"""What a command may see and take."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What holds a command, as far as the host can.

    `hidden` are paths that it does not see, `shown` pairs of where something in them
    is seen all the same, and what. `cgroup` is the directory below which a group is
    made, "" for the worker's own. 0 bytes and 0 processors are as many as there are.
    What is asked to end and does not is killed after `grace_seconds`. A worker that
    is frozen says nothing: after `worker_silent_seconds` its command is killed, so that
    whoever takes the step over is alone in the volume.
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


@dataclass(frozen=True, kw_only=True)
class Order:
    """A command with all that it gets. Without `uid` it runs as whoever starts it."""

    command: str
    cwd: str
    environment: dict[str, str]
    uid: int | None
    gid: int | None
    umask: int
    bounds: Bounds = field(default_factory=Bounds)
