"""The process beside a command: order as JSON on stdin, JSON lines on stdout.

We report that we are ready, and begin when the worker, with permission, answers that.
Then it sends a byte now and then as a heartbeat. Our stderr is the command's log.
SIGTERM stops the command, and so does our parent's end.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from provisioner.gateways.hosts.processes import (
    BEAT,
    BEGIN,
    die_with_parent,
    forked_at,
)
from provisioner.gateways.hosts.sandbox import kernel
from provisioner.gateways.hosts.sandbox.bounds import Bounds, Order
from provisioner.gateways.hosts.sandbox.cgroup import Cgroup, make_cgroup
from provisioner.gateways.hosts.sandbox.init import Init, signal_descendants

READ_BYTES = 1 << 16


class Report:
    """Reports to the worker. No executed program gets the descriptor."""

    def __init__(self) -> None:
        self._descriptor = os.dup(1)
        os.dup2(2, 1)

    def say(self, **line: Any) -> None:
        os.write(self._descriptor, json.dumps(line).encode() + b"\n")


class Beats:
    """Heartbeats of the worker. Time in which the host sleeps counts, too."""

    def __init__(self, *, silent_seconds: float) -> None:
        self.descriptor = os.dup(0)
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        self._silent_seconds = silent_seconds
        self._heard_at = self._now()

    @staticmethod
    def _now() -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def may_begin(self, *, within_seconds: float) -> bool:
        """Wait for the worker's answer that we may begin; return whether it came.

        The time counts from our fork. A later answer may come from a worker that was
        frozen before it sent it, and whose step another worker has by now.
        """
        ends_at = forked_at() + within_seconds
        said = BEAT
        while said and (left := ends_at - self._now()) > 0:
            if BEGIN in said:
                self._heard_at = self._now()
                return True
            if select.select([self.descriptor], [], [], left)[0]:
                said = os.read(self.descriptor, READ_BYTES)
        return False

    @property
    def seconds_left(self) -> float:
        return max(0.0, self._heard_at + self._silent_seconds - self._now())

    def take(self) -> bool:
        """Read what was sent; return whether more can come."""
        said = os.read(self.descriptor, READ_BYTES)
        self._heard_at = self._now()
        return bool(said)


class Log:
    """The command's output, up to a size; `on_full` is called once."""

    def __init__(self, *, room: int, on_full: Callable[[], None]) -> None:
        self._limit = self._room = room
        self._on_full = on_full
        self.is_full = False

    def take(self, data: bytes) -> None:
        kept = data[: self._room]
        self._write(kept)
        self._room -= len(kept)
        if len(kept) < len(data) and not self.is_full:
            self.is_full = True
            self._write(
                f"\n[Cloneyard: the log has {self._limit:,} bytes, the maximum. The "
                "command is stopped.]\n".encode()
            )
            self._on_full()

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(2, data) :]


def main() -> None:
    """Run the command as ordered; the last line reports how it ended."""
    parent = int(sys.argv[1])
    said = json.loads(sys.stdin.buffer.readline())
    order = Order(**{**said, "bounds": Bounds(**said["bounds"])})
    report = Report()
    beats = Beats(silent_seconds=order.bounds.worker_silent_seconds)
    report.say(ready=True)
    if not beats.may_begin(within_seconds=order.begins_within_seconds):
        report.say(silenced=True)
        return
    try:
        _enter_namespace(report)
        die_with_parent(parent)
        _run(order, report, beats)
    except OSError as error:
        report.say(broke=str(error))


def _enter_namespace(report: Report) -> None:
    """Enter a PID namespace; without root through a user namespace of one uid."""
    try:
        if os.geteuid() == 0:
            kernel.unshare(kernel.CLONE_NEWPID)
        else:
            _become_owner_of_namespaces()
    except OSError as error:
        report.say(missing="processes", why=error.strerror)
    else:
        report.say(in_force="processes")


def _become_owner_of_namespaces() -> None:
    """Keep uid and gid, the only ones known inside. Source: user_namespaces(7)."""
    uid, gid = os.geteuid(), os.getegid()
    kernel.unshare(kernel.CLONE_NEWUSER)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{uid} {uid} 1"),
        ("gid_map", f"{gid} {gid} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    kernel.unshare(kernel.CLONE_NEWPID)


def _run(order: Order, report: Report, beats: Beats) -> None:
    bounds = order.bounds
    group = make_cgroup(
        bounds.cgroup,
        memory_bytes=bounds.memory_bytes,
        processes=bounds.processes,
        cpus=bounds.cpus,
    )
    _tell_of_group(group, bounds, report)
    try:
        log = _start_and_relay(order, report, beats, group)
        if log.is_full:
            report.say(log_is_full=True)
        if group is not None and group.ran_out_of_memory:
            report.say(ran_out_of_memory=True)
    finally:
        if group is not None:
            group.end()


def _tell_of_group(group: Cgroup | None, bounds: Bounds, report: Report) -> None:
    if group is None:
        report.say(missing="cgroup", why="no cgroup of version 2 can be created")
    else:
        report.say(in_force="cgroup")
    enabled = group.bounds if group is not None else []
    wanted = {"memory": bounds.memory_bytes, "pids": 1, "cpu": bounds.cpus}
    for controller in (name for name, is_wanted in wanted.items() if is_wanted):
        if controller in enabled:
            report.say(in_force=controller)
        elif controller != "memory":  # init can watch that
            report.say(missing=controller, why="the controller is not enabled")


def _start_and_relay(
    order: Order, report: Report, beats: Beats, group: Cgroup | None
) -> Log:
    output, output_end = os.pipe()
    # One closes when init ends, the other when we end.
    ended, ended_end = os.pipe()
    ours, ours_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        for descriptor in (output, ended, ours_end):
            os.close(descriptor)
        init = Init(
            order, report.say, group=group, output=output_end, parent_has_ended=ours
        )
        init.run()
    for descriptor in (output_end, ended_end, ours):
        os.close(descriptor)

    def stop(*_: Any) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)

    signal.signal(signal.SIGTERM, stop)
    log = Log(room=order.bounds.log_bytes, on_full=stop)
    if not _relay(output, log, beats, until_closed=ended):
        signal_descendants(signal.SIGKILL)
        report.say(silenced=True)
    os.waitpid(pid, 0)
    return log


def _relay(output: int, log: Log, beats: Beats, *, until_closed: int) -> bool:
    """Pass output on until init has ended, including the last of it.

    Return False if the worker falls silent first.
    """
    waited_for = [output, until_closed, beats.descriptor]
    while True:
        ready, _, _ = select.select(waited_for, [], [], beats.seconds_left)
        if not beats.seconds_left:
            return False
        if beats.descriptor in ready and not beats.take():
            waited_for.remove(beats.descriptor)
        if output in ready:
            if data := os.read(output, READ_BYTES):
                log.take(data)
            else:
                waited_for.remove(output)
        elif until_closed in ready:
            return True


if __name__ == "__main__":
    main()
