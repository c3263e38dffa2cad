"""The caller's end of a walk: start the process, relay what it says, end it."""

from __future__ import annotations

import json
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
from provisioner.gateways.fence import require_leave
from provisioner.gateways.hosts.processes import bare_command, json_lines
from provisioner.gateways.hosts.trees import native
from provisioner.gateways.hosts.trees.root import open_root

Walker = Literal["compiled", "python"]
"""What walks: the program of `native`, where it was built, or the modules here."""

FAILURES_KEPT = 1000
"""Failures kept in memory; all of them, from the first on, go to a file then."""

STALLED_AFTER_SECONDS = 300.0
"""No entry handled for so long: the file server does not answer."""


SENTENCES = {
    1: "not permitted",
    2: "it vanished",
    5: "the file system reported an input/output error",
    13: "permission denied",
    16: "it is in use, or something is mounted there",
    24: "too many open files",
    28: "no space left",
    30: "the file system is read-only",
    31: "it also has names outside this tree (hard links), which would change with it",
    39: "it is not empty: something was put there meanwhile",
    116: "stale file handle: it was replaced on the server",
    122: "over quota",
}
"""What an errno means here; the others are told as strerror(3) has them."""


@dataclass(frozen=True, kw_only=True)
class EntryFailed:
    """`path` is from the root of the tree; names that are not UTF-8 are escaped."""

    path: str
    errno: int
    sentence: str

    def __str__(self) -> str:
        shown = self.path.encode("utf-8", "backslashreplace").decode()
        return f"{shown!r}: {self.sentence}"


@dataclass(kw_only=True)
class Told:
    """What a walk has told so far: counts, failures, and what was not entered."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[EntryFailed] = field(default_factory=list)
    failures_file: Path | None = None
    skipped: list[str] = field(default_factory=list)
    is_stopped: bool = False
    seconds: float = 0.0


def run_walk(
    request: dict[str, Any],
    *,
    operation: str,
    not_permitted: str,
    progress: Callable[[Counter[str], float], None] | None,
    should_stop: Callable[[], bool] | None,
    walker: Walker = "python",
) -> Told:
    """Run a walk to its end and return what it told.

    `progress` gets the counts and the seconds so far; `not_permitted` is the sentence
    for EPERM at the root. The process and its workers end with this call, and with
    this process.

    Raises: Refused, TransientGatewayError; Unreachable when nothing moves any more.
    """
    relay = _Relay(
        operation=operation, not_permitted=not_permitted, root=request["root"]
    )
    began = time.monotonic()
    moved_at, entries = began, -1
    require_leave()
    try:
        process = _start_compiled(request) if walker == "compiled" else _start(request)
    except _RootFailed as failed:
        relay.root_failed(failed.errno)
    with _ended_with_us(process):
        for line in json_lines(process):
            now = time.monotonic()
            relay.told.seconds = now - began
            require_leave()
            if should_stop is not None and should_stop():
                relay.told.is_stopped = True
                break
            if line is not None and relay.take(line):
                break
            if line is not None and "progress" in line and progress is not None:
                progress(relay.told.counts, relay.told.seconds)
            if relay.told.counts["entries"] != entries:
                moved_at, entries = now, relay.told.counts["entries"]
            elif now - moved_at > STALLED_AFTER_SECONDS:
                raise Unreachable(
                    f"Nothing moved for {STALLED_AFTER_SECONDS:.0f} seconds below "
                    f"{request['root']}: the file server does not answer.",
                    system="host",
                    operation=operation,
                )
    relay.close()
    return relay.told


class _RootFailed(Exception):
    """The root cannot be opened; `errno` says why."""

    def __init__(self, errno: int) -> None:
        super().__init__(errno)
        self.errno = errno


def _start(request: dict[str, Any]) -> subprocess.Popen[bytes]:
    """Start our own modules; their stderr is ours: a bug, for the log."""
    process = subprocess.Popen(  # noqa: S603 - our own module
        bare_command("provisioner.gateways.hosts.trees"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd="/",
    )
    assert process.stdin is not None
    with process.stdin as requests:
        requests.write(json.dumps(request).encode() + b"\n")
    return process


def _start_compiled(request: dict[str, Any]) -> subprocess.Popen[bytes]:
    program = native.find_program()
    assert program is not None, "it was not built"
    try:
        root = open_root(request["root"])
    except OSError as error:
        raise _RootFailed(error.errno or 0) from error
    try:
        return native.start(
            program,
            root_fd=root.fd,
            uid=request["uid"],
            gid=request["gid"],
            threads=(request["threads"] or 0) * (request["processes"] or 1),
            is_whole=root.is_whole,
            has_mounts=bool(root.mounts_inside),
        )
    finally:
        os.close(root.fd)


@contextmanager
def _ended_with_us(process: subprocess.Popen[bytes]) -> Iterator[None]:
    assert process.stdout is not None
    try:
        yield
    finally:
        process.kill()
        process.stdout.close()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            # It hangs in the kernel, on a dead mount; it ends when that answers.
            process.returncode = -9


class _Relay:
    """Turns lines into what was told."""

    def __init__(self, *, operation: str, not_permitted: str, root: str) -> None:
        self.told = Told()
        self._operation = operation
        self._not_permitted = not_permitted
        self._root = root
        self._file: IO[str] | None = None

    def take(self, line: dict[str, Any]) -> bool:
        """Note one line; say whether it was the last."""
        if "progress" in line:
            self.told.counts = Counter(line["progress"])
        elif "failed" in line:
            self._failed(*line["failed"])
        elif "skipped" in line:
            self.told.skipped.append(line["skipped"][0])
        elif "ended" in line:
            self.told.counts = Counter(line["ended"])
            return True
        elif "root_failed" in line:
            self.root_failed(line["root_failed"])
        else:
            raise TransientGatewayError(
                f"The process that walked {self._root} ended early.",
                system="host",
                operation=self._operation,
            )
        return False

    def _failed(self, path: str, errno: int) -> None:
        sentence = SENTENCES.get(errno) or os.strerror(errno)
        if errno == 1:
            sentence = self._not_permitted
        failure = EntryFailed(path=path, errno=errno, sentence=sentence)
        if len(self.told.failures) < FAILURES_KEPT:
            self.told.failures.append(failure)
            return
        if self._file is None:
            self._file = tempfile.NamedTemporaryFile(  # noqa: SIM115 - closed below
                "w", prefix="cloneyard-failures-", suffix=".jsonl", delete=False
            )
            self.told.failures_file = Path(self._file.name)
            for kept in self.told.failures:
                self._write(kept)
        self._write(failure)

    def _write(self, failure: EntryFailed) -> None:
        assert self._file is not None
        self._file.write(json.dumps([failure.path, failure.errno]) + "\n")

    def root_failed(self, errno: int) -> NoReturn:
        """Raise what it means that nothing could be done at all."""
        sentence = SENTENCES.get(errno) or os.strerror(errno)
        if errno == 1:
            sentence = self._not_permitted
        # A stale handle or a failing server may be right again after a pause.
        kind = TransientGatewayError if errno in (2, 5, 116) else Refused
        raise kind(
            f"Nothing was done to {self._root}: {sentence}.",
            system="host",
            operation=self._operation,
            remote_code=str(errno),
        )

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
