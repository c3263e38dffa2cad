"""The caller's side of a walk: start the process, relay its reports, end it."""

from __future__ import annotations

import errno
import functools
import json
import logging
import os
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal, NoReturn

from provisioner.gateways.errors import Refused, TransientGatewayError, Unreachable
from provisioner.gateways.fence import require_leave, silent_seconds
from provisioner.gateways.hosts.beats import answer
from provisioner.gateways.hosts.descent import ENTER
from provisioner.gateways.hosts.mounts import has_mounts_below, is_whole_filesystem
from provisioner.gateways.hosts.processes import bare_command, ended_after, json_lines
from provisioner.gateways.hosts.trees import native

log = logging.getLogger(__name__)

Walker = Literal["compiled", "sequential"]
"""Which walk runs: the program of `native` if it was built, or `sequential`."""

FAILURES_KEPT = 1000
"""How many failures are kept in memory. With more, all of them go to a file."""

STALLED_AFTER_SECONDS = 300.0
"""After so long without an entry, the file server counts as not answering."""


SENTENCES = {
    1: "not permitted",
    2: "it vanished",
    5: "the file system reported an input/output error",
    13: "permission denied",
    16: "it is in use, or something is mounted there",
    24: "too many open files",
    28: "no space left",
    30: "the file system is read-only",
    31: "it has hard links outside this tree, which would change with it",
    39: "it is not empty: something was created there meanwhile",
    116: "stale file handle: it was replaced on the server",
    122: "over quota",
}
"""What an errno means here. Others are described as by strerror(3)."""


@dataclass(frozen=True, kw_only=True)
class EntryFailed:
    """`path` is relative to the root; names that are not UTF-8 are escaped."""

    path: str
    errno: int
    sentence: str

    def __str__(self) -> str:
        shown = self.path.encode("utf-8", "backslashreplace").decode()
        return f"{shown!r}: {self.sentence}"


@dataclass(kw_only=True)
class WalkReport:
    """What became of every entry so far.

    `entries` = `done` + `already_right` + `failed_count`. `failures` holds the first
    thousand. If there are more, `failures_file` has all of them, one JSON list [path,
    errno] per line; the caller must remove it. `skipped` are mount points and
    subvolumes, which were not entered.
    """

    walker: Walker
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[EntryFailed] = field(default_factory=list)
    failures_file: Path | None = None
    skipped: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def entries(self) -> int:
        return self.counts["entries"]

    @property
    def done(self) -> int:
        """How many were given to the owner, or removed."""
        return self.counts["done"]

    @property
    def already_right(self) -> int:
        """How many entries already belonged to the owner."""
        return self.counts["already"]

    @property
    def failed_count(self) -> int:
        return self.counts["failed"]

    @property
    def privileges_cleared(self) -> int:
        """How many files were seen to lose a setuid or setgid bit: see chown(2)."""
        return self.counts["privileged"]


def unheard(report: WalkReport) -> None:
    """Do nothing: for callers who want no progress."""


def run_walk(
    root: Path,
    *,
    owner: tuple[int, int] | None,
    operation: str,
    not_permitted: str,
    progress: Callable[[WalkReport], None],
    walker: Walker | None,
) -> WalkReport:
    """Give a tree to `owner`, or remove everything below its root if that is None.

    `progress` gets the report so far; `not_permitted` is the sentence for EPERM.
    Without `walker`, the compiled one is used if there is one. The process ends with
    this call, and with this process.

    Raises: Refused, TransientGatewayError; Unreachable (nothing moves any more).
    """
    walker = walker or ("compiled" if native.find_program() else "sequential")
    relay = _Relay(
        walker=walker, operation=operation, not_permitted=not_permitted, root=root
    )
    report = relay.report
    began = time.monotonic()
    moved_at, entries = began, -1
    require_leave()
    try:
        root_fd, order = _opened(root, owner=owner)
    except OSError as error:
        relay.root_failed(error.errno or 0)
    with _walking(walker, root_fd, order) as process:
        for line in json_lines(process.stdout):
            now = time.monotonic()
            report.seconds = now - began
            answer(process.stdin, line)
            if line is not None and relay.take(line):
                break
            if line is not None and "progress" in line:
                progress(report)
            if report.entries != entries:
                moved_at, entries = now, report.entries
            elif now - moved_at > STALLED_AFTER_SECONDS:
                raise Unreachable(
                    f"Nothing moved for {STALLED_AFTER_SECONDS:.0f} seconds below "
                    f"{root}: the file server does not answer.",
                    system="host",
                    operation=operation,
                )
    relay.close()
    report.seconds = time.monotonic() - began
    progress(report)
    return report


def _opened(
    root: Path, *, owner: tuple[int, int] | None
) -> tuple[int, list[int | str]]:
    """Open the root, which the caller has checked; return it with the order.

    Raises: OSError.
    """
    root_fd = os.open(root, ENTER)
    try:
        if os.path.samestat(os.fstat(root_fd), os.stat("/")):
            raise OSError(errno.EPERM, "the root of the host")
        opened = f"/proc/self/fd/{root_fd}"
        has_mounts = int(has_mounts_below(opened))
        if owner is None:
            return root_fd, [root_fd, has_mounts, "remove"]
        is_whole = int(is_whole_filesystem(opened))
        return root_fd, [root_fd, has_mounts, "own", *owner, is_whole]
    except BaseException:
        os.close(root_fd)
        raise


@contextmanager
def _walking(
    walker: Walker, root_fd: int, order: list[int | str]
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a walk; kill it at the end. Its stderr is ours, for bugs."""
    try:
        process = subprocess.Popen(
            [*_command(walker), str(silent_seconds()), *map(str, order)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[root_fd],
            cwd="/",
        )
    finally:
        os.close(root_fd)
    with ended_after(process):
        yield process


def _command(walker: Walker) -> list[str]:
    if walker == "sequential":
        _warn_that_it_is_slow()
        return bare_command("provisioner.gateways.hosts.trees.sequential")
    program = native.find_program()
    assert program is not None, "it was not built"
    return [str(program), str(os.getpid())]


@functools.cache
def _warn_that_it_is_slow() -> None:
    """Warn about the slow walk, once per process."""
    log.warning(
        "Chown and removal are slow: they handle one file at a time. Install a C "
        "compiler and run python -m provisioner.gateways.hosts.trees.native."
    )


class _Relay:
    """Turns lines into a report."""

    def __init__(
        self, *, walker: Walker, operation: str, not_permitted: str, root: Path
    ) -> None:
        self.report = WalkReport(walker=walker)
        self._operation = operation
        self._not_permitted = not_permitted
        self._root = root
        self._file: IO[str] | None = None

    def take(self, line: dict[str, Any]) -> bool:
        """Take one line; return whether it was the last."""
        if "progress" in line:
            self.report.counts = Counter(line["progress"])
        elif "failed" in line:
            self._failed(*line["failed"])
        elif "skipped" in line:
            self.report.skipped.append(line["skipped"][0])
        elif "ended" in line:
            self.report.counts = Counter(line["ended"])
            return True
        elif "root_failed" in line:
            self.root_failed(line["root_failed"])
        elif "ready" not in line:
            raise TransientGatewayError(
                f"The process that walked {self._root} ended early.",
                system="host",
                operation=self._operation,
            )
        return False

    def _sentence(self, number: int) -> str:
        if number == errno.EPERM:
            return self._not_permitted
        return SENTENCES.get(number) or os.strerror(number)

    def _failed(self, path: str, number: int) -> None:
        failure = EntryFailed(path=path, errno=number, sentence=self._sentence(number))
        if len(self.report.failures) < FAILURES_KEPT:
            self.report.failures.append(failure)
            return
        if self._file is None:
            self._file = tempfile.NamedTemporaryFile(  # noqa: SIM115 - closed below
                "w", prefix="cloneyard-failures-", suffix=".jsonl", delete=False
            )
            self.report.failures_file = Path(self._file.name)
            for kept in self.report.failures:
                self._write(kept)
        self._write(failure)

    def _write(self, failure: EntryFailed) -> None:
        assert self._file is not None
        self._file.write(json.dumps([failure.path, failure.errno]) + "\n")

    def root_failed(self, number: int) -> NoReturn:
        """Raise the error for a walk that could not do anything."""
        # A stale handle or a failing server may recover after a pause.
        passing = (errno.ENOENT, errno.EIO, errno.ESTALE)
        kind = TransientGatewayError if number in passing else Refused
        raise kind(
            f"Nothing was changed in {self._root}: {self._sentence(number)}.",
            system="host",
            operation=self._operation,
            remote_code=str(number),
        )

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
