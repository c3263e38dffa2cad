"""The process that walks a tree: request as JSON on stdin, JSON lines on stdout."""

from __future__ import annotations

import dataclasses
import gc
import json
import os
import resource
import socket
import sys
import threading
from typing import Any

from provisioner.gateways.hosts.processes import die_with_parent
from provisioner.gateways.hosts.trees.directories import Directories
from provisioner.gateways.hosts.trees.own import OwnershipWalk
from provisioner.gateways.hosts.trees.remove import RemovalWalk
from provisioner.gateways.hosts.trees.root import Root, open_root
from provisioner.gateways.hosts.trees.walk import Crew
from provisioner.gateways.hosts.trees.worker import Order, Worker

FEWEST_PROCESSES, MOST_PROCESSES = 2, 16
SEND_BUFFER_BYTES = 1 << 20

_stdout_lock = threading.Lock()


def say(**line: Any) -> None:
    """Write one line to the caller."""
    text = json.dumps(line) + "\n"
    with _stdout_lock:
        sys.stdout.write(text)
        sys.stdout.flush()


def main() -> None:
    """Walk as requested; the last line says how it ended."""
    die_with_parent(int(sys.argv[1]))
    gc.disable()  # Nothing here makes cycles, and forks share more memory without it.
    request = json.loads(sys.stdin.readline())
    try:
        root = open_root(request["root"])
        if request["act"] == "own":
            is_changed = own_root(root.fd, uid=request["uid"], gid=request["gid"])
    except OSError as error:
        say(root_failed=error.errno)
        return
    walk = make_walk(root, request)
    if request["act"] == "own":
        walk.tally.entries = 1
        walk.tally.done, walk.tally.already = int(is_changed), int(not is_changed)
    walk.run(lambda tally: say(progress=dataclasses.asdict(tally)))
    say(ended=dataclasses.asdict(walk.tally))


def own_root(root_fd: int, *, uid: int, gid: int) -> bool:
    """Give away the root first: what is not permitted there is not permitted at all."""
    found = os.fstat(root_fd)
    if (found.st_uid, found.st_gid) == (uid, gid):
        return False
    os.fchown(root_fd, uid, gid)
    return True


def make_walk(root: Root, request: dict[str, Any]) -> OwnershipWalk | RemovalWalk:
    """Fork the workers, while there are no threads yet, and make the walk."""
    _, most_open = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_open, most_open))
    order = Order(
        uid=request.get("uid", 0),
        gid=request.get("gid", 0),
        device=os.fstat(root.fd).st_dev,
        is_whole=root.is_whole,
        mount_id=root.mount_id,
    )
    crew = hire(order, processes=request["processes"], threads=request["threads"])
    walk = OwnershipWalk if request["act"] == "own" else RemovalWalk
    directories = Directories(root.fd, mount_id=root.mount_id, most_open=most_open // 2)
    return walk(
        directories,
        crew=crew,
        mounts_inside=root.mounts_inside,
        report=lambda kind, path, error: say(**{kind: [path, error]}),
    )


def hire(order: Order, *, processes: int | None, threads: int | None) -> Crew:
    """Fork the workers.

    The channels are datagram sockets: the kernel wakes one worker for each batch, and
    a full queue makes the lister wait.
    """
    processors = sorted(os.sched_getaffinity(0))
    if processes is None:
        processes = min(MOST_PROCESSES, max(FEWEST_PROCESSES, len(processors)))
    batches, batches_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    outcomes, outcomes_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    for sending in (batches, outcomes_end):
        sending.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    parent_pid = os.getpid()
    for index in range(processes):
        if os.fork() == 0:
            die_with_parent(parent_pid)
            batches.close()
            outcomes.close()
            Worker(
                batches=batches_end,
                outcomes=outcomes_end,
                order=order,
                processor=processors[index % len(processors)],
            ).work()
    batches_end.close()
    return Crew(
        batches=batches,
        outcomes=outcomes,
        wake=outcomes_end,
        processes=processes,
        threads=threads,
        still_there=check_workers,
    )


def check_workers() -> None:
    """Raise ChildProcessError when a worker has ended: its batch is lost."""
    pid, status = os.waitpid(-1, os.WNOHANG)
    if pid:
        raise ChildProcessError(f"a worker ended with wait status {status}")


if __name__ == "__main__":
    code = 1
    try:
        main()
        code = 0
    finally:
        sys.stdout.flush()
        if code:
            import traceback

            traceback.print_exc()
        # Workers and lister threads wait for work for ever; the kernel ends them.
        os._exit(code)
