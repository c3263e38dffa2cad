"""The lister: reads a tree's directories and hands their names out in batches."""

from __future__ import annotations

import errno
import itertools
import os
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from provisioner.gateways.hosts.descent import SNAPSHOTS
from provisioner.gateways.hosts.trees import wire
from provisioner.gateways.hosts.trees.directories import Directories, Node
from provisioner.gateways.hosts.trees.wire import Outcome

FIRST_BATCH, FAST_BATCH, SLOW_BATCH, LARGE_SLOW_BATCH = 16, 256, 24, 96
"""Names in a batch: while nothing is known, when calls do not wait, when they do."""

SLOW_SECONDS = 100e-6
"""A call that waits longer than this waits for a server or a disk."""

CALL_CPU_SECONDS = 8e-6
"""What one entry costs a processor when calls wait: the reason to have no more threads
than keep the processors busy."""

MOST_THREADS = 128
SLOW_LISTERS = 16
SAMPLES = 3
TICK_SECONDS = 0.2


Group = tuple[Node, list[str]]
Item = tuple[Callable[..., None], Node, str]
"""What a lister does next: `work(node, name, packs)`."""

Report = Callable[[str, str, int], None]
"""Called with "failed" or "skipped", a path from the root, and an errno."""


@dataclass
class Tally:
    """What has happened so far; the same words as the reports of the callers."""

    entries: int = 0
    done: int = 0
    already: int = 0
    privileged: int = 0
    vanished: int = 0
    failed: int = 0
    skipped: int = 0


class Packs(defaultdict[int, list[Group]]):
    """The batches in the making of one lister, by operation."""

    def __init__(self) -> None:
        super().__init__(list)


@dataclass(frozen=True, kw_only=True)
class Crew:
    """The lister's ends of the two channels, and how many processes are behind them."""

    batches: socket.socket
    outcomes: socket.socket
    wake: socket.socket
    processes: int
    threads: int | None
    still_there: Callable[[], None]


class Walk:
    """Walks below one root directory; subclasses say what is done with names."""

    operation: int

    def __init__(
        self,
        directories: Directories,
        *,
        crew: Crew,
        mounts_inside: Iterable[str],
        report: Report,
    ) -> None:
        self.directories = directories
        self.tally = Tally()
        self._crew = crew
        self._mounts_inside = frozenset(mounts_inside)
        self._report = report
        self._stack: list[Item] = []
        self.change = threading.Condition(directories.change)
        self._room = threading.Condition(directories.change)
        self._unfinished = 0
        self._numbers = itertools.count(1)
        self._in_flight: dict[int, tuple[int, int, list[Group]]] = {}
        self._batch_size = FIRST_BATCH
        self._threads = crew.threads or 1
        self._waits: list[float] = []
        self._list_waits: list[float] = []
        self._broken: BaseException | None = None

    # -- what subclasses decide

    def listed(self, node: Node, *, is_root: bool) -> list[str]:
        """Return names to begin the first batch of a directory with."""
        return []

    def handled(
        self, groups: list[Group], outcome: Outcome, *, operation: int, inode: int
    ) -> None:
        """Take note of the names of a batch one by one, where counts are not enough."""

    def ended(self) -> None:
        """Take note of what is left when everything has been handled."""

    # -- the main thread: outcomes

    def run(self, progress: Callable[[Tally], None]) -> None:
        """Walk to the end; `progress` is called a few times a second."""
        self._push([(self._enter_root, self.directories.root, "")])
        self._add_lister()
        self._crew.outcomes.settimeout(TICK_SECONDS)
        next_tick = time.monotonic() + TICK_SECONDS
        while self._unfinished:
            if self._broken is not None:
                raise self._broken
            try:
                data = self._crew.outcomes.recv(wire.MOST_BYTES)
            except TimeoutError:
                data = b""
            if data:
                self._handle(wire.decode_outcome(data))
            if time.monotonic() >= next_tick:
                next_tick = time.monotonic() + TICK_SECONDS
                self._crew.still_there()
                progress(self.tally)
        with self.change:
            self.change.notify_all()
        self.ended()

    def _handle(self, outcome: Outcome) -> None:
        with self.change:
            operation, inode, groups = self._in_flight.pop(outcome.number)
            if len(self._in_flight) <= self._most_in_flight() // 2:
                self._room.notify_all()
        tally = self.tally
        with self.change:
            tally.done += outcome.done
            tally.already += outcome.already
            tally.privileged += outcome.privileged
            tally.vanished += outcome.vanished
            tally.entries += outcome.done + outcome.already
        for position, error in outcome.failed:
            node, name = locate(groups, position)
            self.fail(node.path(name), error=error)
        for position in outcome.skipped:
            node, name = locate(groups, position)
            self.skip(node.path(name))
        self.handled(groups, outcome, operation=operation, inode=inode)
        self._learn(outcome.waited_seconds)
        self.finish_one()

    def _learn(self, waited_seconds: float) -> None:
        """Choose batches and threads once the first few have shown what a call costs.

        The shortest wait counts: a pause of the machine is not a slow server.
        """
        if len(self._waits) == SAMPLES:
            if self._batch_size < LARGE_SLOW_BATCH:
                # A large tree can have larger ones: its end is a small part of it.
                self._batch_size = max(SLOW_BATCH, self.tally.entries // 1000)
            return
        self._waits.append(waited_seconds)
        if len(self._waits) < SAMPLES:
            return
        wait = min(self._waits)
        if wait < SLOW_SECONDS:
            self._batch_size = FAST_BATCH
            return
        self._batch_size = SLOW_BATCH
        if self._crew.threads is None:
            processors = len(os.sched_getaffinity(0))
            wanted = processors * wait / CALL_CPU_SECONDS
            self._threads = max(
                2, min(MOST_THREADS, int(wanted / self._crew.processes))
            )

    def fail(self, path: str, *, error: int, entries: int = 1) -> None:
        """Count and name what could not be done."""
        with self.change:
            self.tally.failed += entries
            self.tally.entries += entries
        self._report("failed", path, error)

    def skip(self, path: str) -> None:
        """Count and name what is on another filesystem."""
        with self.change:
            self.tally.skipped += 1
        self._report("skipped", path, 0)

    # -- lister threads: directories

    def push(self, work: Callable[..., None], node: Node, name: str) -> None:
        """Have a lister call `work(node, name, packs)`."""
        self._push([(work, node, name)])

    def _push(self, items: list[Item]) -> None:
        with self.change:
            self._unfinished += len(items)
            self._stack += items
            self.change.notify(len(items))

    def finish_one(self) -> None:
        """Count one item as handled; wake the main thread after the last."""
        with self.change:
            self._unfinished -= 1
            is_last = not self._unfinished
        if is_last:
            self._crew.wake.send(b"")

    def _add_lister(self) -> None:
        threading.Thread(target=self._list_on, daemon=True).start()

    def _list_on(self) -> None:
        packs = Packs()
        try:
            while (item := self._next(packs)) is not None:
                work, node, name = item
                if len(self._list_waits) < SAMPLES:
                    self._list_timed(work, node, name, packs)
                else:
                    work(node, name, packs)
                self.finish_one()
        except BaseException as error:
            # The main thread raises it: a walk that lost a lister would never end.
            self._broken = error
            self._crew.wake.send(b"")

    def _list_timed(
        self, work: Callable[..., None], node: Node, name: str, packs: Packs
    ) -> None:
        """Have more listers where reading a directory waits for a server."""
        began, computed = time.perf_counter(), time.thread_time()
        work(node, name, packs)
        computed = time.thread_time() - computed
        self._list_waits.append(time.perf_counter() - began - computed)
        if len(self._list_waits) != SAMPLES or min(self._list_waits) < SLOW_SECONDS:
            return
        # Each may hold a batch's worth of descriptors beside those that are counted.
        affordable = self.directories.most_open // (2 * wire.MOST_DIRECTORIES)
        for _ in range(min(SLOW_LISTERS, affordable) - 1):
            self._add_lister()

    def _next(self, packs: Packs) -> Item | None:
        with self.change:
            if self._stack:
                return self._stack.pop()
        self.flush(packs)
        with self.change:
            while not self._stack:
                if not self._unfinished:
                    return None
                self.change.wait()
            return self._stack.pop()

    def _enter_root(self, node: Node, _: str, packs: Packs) -> None:
        self._list(node, packs, is_root=True)

    def _enter(self, parent: Node, name: str, packs: Packs) -> None:
        """Open a subdirectory and list it, unless it is another filesystem."""
        node = Node(parent, name)
        try:
            is_ours = self.directories.open(node)
        except OSError as error:
            self._not_entered(parent, name, packs, error.errno or 0)
            return
        if not is_ours:
            self.skip(node.path())
            self.left_alone(parent)
            return
        self.entered(parent)
        self._list(node, packs, is_root=False)

    def _not_entered(self, parent: Node, name: str, packs: Packs, error: int) -> None:
        if error == errno.ENOENT:
            with self.change:
                self.tally.vanished += 1
            self.entered(parent)
        elif error in (errno.ENOTDIR, errno.ELOOP):
            # Something else took the name after it was listed: an entry like others.
            self.add(packs, parent, [name])
            self.entered(parent)
        else:
            self.fail(parent.path(name), error=error)
            self.left_alone(parent)

    def entered(self, parent: Node) -> None:
        """Take note that a subdirectory no longer needs its parent's descriptor."""
        self.release(parent)

    def left_alone(self, parent: Node) -> None:
        """Take note that a subdirectory stays as it is."""
        self.release(parent)

    def _list(self, node: Node, packs: Packs, *, is_root: bool) -> None:
        names, directories = self.listed(node, is_root=is_root), []
        try:
            with os.scandir(node.fd) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name == SNAPSHOTS:
                            node.is_kept = True
                        else:
                            directories.append(entry.name)
                        continue
                    names.append(entry.name)
                    if len(names) >= self._batch_size:
                        names = self._passable(node, names)
                        self.add(packs, node, names)
                        names = []
        except OSError as error:
            self.fail(node.path(), error=error.errno or 0)
            node.is_kept = True
        if names:
            self.add(packs, node, self._passable(node, names))
        directories = self._passable(node, directories)
        if directories:
            self.directories.needed_below(node, subdirectories=len(directories))
            self._push([(self._enter, node, name) for name in directories])
        self.release(node)

    def _passable(self, node: Node, names: list[str]) -> list[str]:
        """Return the names that are no mount points; name the others as skipped."""
        if not self._mounts_inside:
            return names
        mounted = {n for n in names if node.path(n) in self._mounts_inside and n != "."}
        for name in mounted:
            self.skip(node.path(name))
            node.is_kept = True
        return [name for name in names if name not in mounted]

    # -- batches

    def add(
        self,
        packs: Packs,
        node: Node,
        names: list[str],
        *,
        operation: int | None = None,
    ) -> None:
        """Put names into a batch in the making; send it when it is full."""
        if not names:
            return
        operation = self.operation if operation is None else operation
        pack = packs[operation]
        with self.change:
            node.users += 1
            if not pack:
                self._unfinished += 1
        pack.append((node, names))
        total = sum(len(names) for _, names in pack)
        if total >= self._batch_size or len(pack) == wire.MOST_DIRECTORIES:
            self.flush(packs, only=operation)

    def flush(self, packs: Packs, *, only: int | None = None) -> None:
        """Send the batches in the making."""
        for operation in list(packs) if only is None else [only]:
            groups = packs.pop(operation)
            self._send(groups, operation=operation)

    def send_linked(self, node: Node, name: str, *, inode: int, links: int) -> None:
        """Send one name, all of whose inode's names are known."""
        with self.change:
            self._unfinished += 1
            node.users += 1
        self._send([(node, [name])], operation=self.operation, inode=inode, links=links)

    def _send(
        self, groups: list[Group], *, operation: int, inode: int = 0, links: int = 0
    ) -> None:
        directories, reached, borrowed = [], [], []
        for node, names in groups:
            try:
                fd, is_borrowed = self.directories.borrow(node)
                directories.append((fd, names))
                reached.append((node, names))
                if is_borrowed:
                    borrowed.append(fd)
            except OSError as error:
                self.unreachable(node, names, error=error.errno or 0)
        if not reached:
            self.finish_one()
            return
        number = next(self._numbers)
        with self.change:
            while len(self._in_flight) >= self._most_in_flight():
                self._room.wait()
            self._in_flight[number] = (operation, inode, reached)
        wire.send_batch(
            self._crew.batches,
            number=number,
            operation=operation,
            threads=self._threads,
            links=links,
            directories=directories,
        )
        for fd in borrowed:
            os.close(fd)
        self.sent(reached)

    def _most_in_flight(self) -> int:
        """Return how many batches may wait for a worker or be with one.

        Few before it is known what a call costs: they are cut for one thread each.
        """
        ahead = 2 if self._threads > 1 else 8
        if len(self._waits) < SAMPLES and self._crew.threads is None:
            ahead = 2
        return ahead * self._crew.processes * self._threads

    def sent(self, groups: list[Group]) -> None:
        """Take note that a batch travels with descriptors of its own."""
        for node, _ in groups:
            self.release(node)

    def unreachable(self, node: Node, names: list[str], *, error: int) -> None:
        """Name what cannot be acted on: its directory is gone or cannot be opened."""
        for name in names:
            self.fail(node.path(name), error=error)
        self.release(node)

    def release(self, node: Node) -> None:
        """Give up one use of a node."""
        self.directories.release(node)


def locate(groups: list[Group], position: int) -> tuple[Node, str]:
    """Return the node and name at a position of a batch."""
    for node, names in groups:
        if position < len(names):
            return node, names[position]
        position -= len(names)
    raise IndexError(position)
