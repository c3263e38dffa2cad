"""A worker: takes batches of names, acts on each, and says what became of them."""

from __future__ import annotations

import mmap
import os
import resource
import socket
import stat
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from provisioner.gateways.hosts.trees import wire
from provisioner.gateways.hosts.trees.root import mount_id_of
from provisioner.gateways.hosts.trees.wire import Batch, Outcome

STACK_BYTES = 256 * 1024

NAMES_LOOKED_AT = 16
"""Names of a batch whose owner is looked at before the rest is taken to be alike."""


@dataclass(frozen=True, kw_only=True)
class Order:
    """What all batches of a run have in common: the new owner, the one filesystem.

    `is_whole` says that the tree is all there is of its filesystem, so that no name
    in it can be a link to a file outside. `mount_id` is None where nothing is mounted
    in it.
    """

    uid: int
    gid: int
    device: int
    is_whole: bool
    mount_id: int | None


Act = Callable[[int, list[bytes], Batch, Order, int, Outcome], None]


def change_owner(
    directory: int,
    names: list[bytes],
    batch: Batch,
    order: Order,
    first: int,
    outcome: Outcome,
) -> None:
    """Give each name to the owner unless it is his; never follow a link.

    A file with several names is left for the lister, which sees whether all of them
    are in the tree; in a filesystem that is all ours they are. In such a one, a batch
    in which the first names all had to be changed is finished without looking: a third
    less work, and changing what is right does no harm. Source: fchownat(2) with
    AT_SYMLINK_NOFOLLOW.
    """
    is_alike = order.is_whole and order.mount_id is None and not batch.links
    looked_at = NAMES_LOOKED_AT if is_alike else 1 << 32
    uid, gid, device, links = order.uid, order.gid, order.device, batch.links or 1
    look, chown = os.stat, os.chown
    for position, name in enumerate(names, first):
        if position >= looked_at and outcome.done == position:
            _change_unseen(
                directory, names[position - first :], order, position, outcome
            )
            return
        try:
            found = look(name, dir_fd=directory, follow_symlinks=False)
            if found.st_dev != device or _is_mounted(directory, name, order):
                outcome.skipped.append(position)
                continue
            if found.st_uid == uid and found.st_gid == gid:
                outcome.already += 1
                continue
            mode = found.st_mode
            if found.st_nlink > links and not (order.is_whole or stat.S_ISDIR(mode)):
                outcome.linked.append((position, found.st_ino, found.st_nlink))
                continue
            chown(name, uid, gid, dir_fd=directory, follow_symlinks=False)
            outcome.done += 1
            if mode & 0o6000 and _loses_privilege(mode):
                outcome.privileged += 1
        except FileNotFoundError:
            outcome.vanished += 1
        except OSError as error:
            outcome.failed.append((position, error.errno or 0))


def _change_unseen(
    directory: int, names: list[bytes], order: Order, first: int, outcome: Outcome
) -> None:
    uid, gid, chown = order.uid, order.gid, os.chown
    for position, name in enumerate(names, first):
        try:
            chown(name, uid, gid, dir_fd=directory, follow_symlinks=False)
            outcome.done += 1
        except FileNotFoundError:
            outcome.vanished += 1
        except OSError as error:
            outcome.failed.append((position, error.errno or 0))


def _is_mounted(directory: int, name: bytes, order: Order) -> bool:
    """Say whether something is mounted on a name, a bind mount of a file for one."""
    if order.mount_id is None:
        return False
    fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    try:
        return mount_id_of(fd) != order.mount_id
    finally:
        os.close(fd)


def _loses_privilege(mode: int) -> bool:
    # setgid without group execute means mandatory locking, which chown leaves.
    is_setgid = mode & stat.S_ISGID and mode & stat.S_IXGRP
    return stat.S_ISREG(mode) and bool(mode & stat.S_ISUID or is_setgid)


def unlink(
    directory: int,
    names: list[bytes],
    batch: Batch,
    order: Order,
    first: int,
    outcome: Outcome,
) -> None:
    """Remove each name that is not a directory."""
    _remove(os.unlink, directory, names, first, outcome)


def rmdir(
    directory: int,
    names: list[bytes],
    batch: Batch,
    order: Order,
    first: int,
    outcome: Outcome,
) -> None:
    """Remove each name that is an empty directory."""
    _remove(os.rmdir, directory, names, first, outcome)


def _remove(
    remove: Callable[..., None],
    directory: int,
    names: list[bytes],
    first: int,
    outcome: Outcome,
) -> None:
    for position, name in enumerate(names, first):
        try:
            remove(name, dir_fd=directory)
            outcome.done += 1
        except FileNotFoundError:
            outcome.vanished += 1
        except OSError as error:
            outcome.failed.append((position, error.errno or 0))


ACTS: dict[int, Act] = {
    wire.CHANGE_OWNER: change_owner,
    wire.UNLINK: unlink,
    wire.RMDIR: rmdir,
}


class Worker:
    """One process of the crew: a thread at first, more once the lister asks for them.

    More threads help where each call waits for a server; where none waits they only
    get in each other's way.
    """

    def __init__(
        self,
        *,
        batches: socket.socket,
        outcomes: socket.socket,
        order: Order,
        processor: int,
    ) -> None:
        self._batches = batches
        self._outcomes = outcomes
        self._order = order
        self._processor = processor
        self._threads = 1
        self._lock = threading.Lock()

    def work(self) -> None:
        """Act on batches until the process is killed: it keeps nothing."""
        buffer = mmap.mmap(-1, wire.MOST_BYTES)
        while True:
            batch = wire.receive_batch(self._batches, buffer)
            if batch.threads > self._threads:
                self._grow(batch.threads)
            self._outcomes.send(wire.encode_outcome(self._act(batch)))

    def _grow(self, threads: int) -> None:
        """Have so many threads, all on one processor.

        Only one of them can hold the interpreter's lock; on one processor, and when a
        wake-up does not interrupt who runs, they hardly ever wait for it. That halves
        what an entry costs. Source: SCHED_BATCH in sched(7).
        """
        with self._lock:
            if self._threads == 1:
                os.sched_setaffinity(0, {self._processor})
                os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
                threading.stack_size(STACK_BYTES)
            while self._threads < threads:
                threading.Thread(target=self.work, daemon=True).start()
                self._threads += 1

    def _act(self, batch: Batch) -> Outcome:
        outcome = Outcome(batch.number)
        act, position = ACTS[batch.operation], 0
        began, computed, slept = time.perf_counter(), time.thread_time(), _sleeps()
        for directory, names in batch.directories:
            act(directory, names, batch, self._order, position, outcome)
            os.close(directory)
            position += len(names)
        computed = time.thread_time() - computed
        waited = time.perf_counter() - began - computed
        if _sleeps() - slept >= position / 2:
            # Where fewer calls slept, it was for a processor that they waited.
            outcome.waited_seconds = max(waited, 0.0) / position
        return outcome


def _sleeps() -> int:
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
