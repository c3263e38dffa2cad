"""Archive files that would be lost, in their owner's rescue area.

It never follows a link, never leaves the workspace's filesystem, and gives a directory
its final name only when the archive is complete and verified.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import json
import re
import secrets
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provisioner.gateways.errors import (
    PermanentGatewayError,
    Refused,
    TransientGatewayError,
    Unreachable,
)
from provisioner.gateways.fence import require_leave, silent_seconds
from provisioner.gateways.hosts.beats import beat
from provisioner.gateways.hosts.ownership import check_id, check_root
from provisioner.gateways.hosts.processes import BEGIN, bare_command, json_lines
from provisioner.gateways.hosts.rescues.place import PUBLISH, Place

OPERATION = "rescue files"
STALLED_AFTER_SECONDS = 600.0
"""After so long without a byte, the file server counts as not answering."""
ENDS_WITHIN_SECONDS = 5.0

_TAG = re.compile(r"[0-9a-z]{6}")


@dataclass(frozen=True, kw_only=True)
class ArchiveEntry:
    """A path from the workspace's root, and what Perforce knows about it.

    `kind` is why it is archived: opened, changed, missing, untracked.
    """

    path: str
    kind: str
    action: str = ""
    depot_path: str = ""
    revision: int = 0
    change: str = ""
    type: str = ""
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class ArchiveProgress:
    """`files_total` counts all entries, including those without content."""

    files: int
    files_total: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class ArchiveProblem:
    """An entry that is not in the archive as it was found.

    `state` is unreadable, vanished, torn (changed while it was read) or special (a
    device, socket or pipe).
    """

    path: str
    state: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class ArchiveReport:
    """What became of the entries.

    `files` and `size_bytes` count the contents of the tar file, whose checksum is
    `sha256`; `counts` has {"count", "stored", "bytes"} by kind. `seen` is a digest of
    how the files were when it was begun.
    """

    directory: Path
    files: int
    size_bytes: int
    sha256: str
    seen: str
    counts: dict[str, dict[str, int]]
    problems: tuple[ArchiveProblem, ...]

    @property
    def is_complete(self) -> bool:
        """Whether the archive has all content that existed."""
        return not self.problems


@dataclass(frozen=True, kw_only=True)
class EarlierArchive:
    """A complete archive of the same workspace, as its report said."""

    directory: str
    sha256: str
    seen: str


class ArchiveDamaged(PermanentGatewayError):
    """An archive does not read back as it was written."""


class ArchiveIncomplete(Exception):
    """Some content could not be read, so the archive was not kept."""

    def __init__(self, problems: tuple[ArchiveProblem, ...]) -> None:
        super().__init__(f"{len(problems)} entries could not be archived.")
        self.problems = problems


def archive_files(
    root: Path,
    entries: Iterable[ArchiveEntry],
    *,
    rescue_root: Path,
    owner: str,
    workspace: str,
    tag: str,
    uid: int,
    gid: int,
    metadata: Mapping[str, Any],
    attachments: Mapping[str, Path] | None = None,
    only_complete: bool = False,
    earlier: EarlierArchive | None = None,
    progress: Callable[[ArchiveProgress], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> ArchiveReport | None:
    """Archive the entries below `root` in a new directory of the owner, and verify it.

    The directory is `rescue_root`/`owner`/`workspace`-<UTC time>-`tag`<four letters>.
    It belongs to the owner (uid, gid), nobody else can read it, and it has work.tar,
    manifest.json, SHA256SUMS and README.txt, and a copy of each of the `attachments` by
    name. `metadata` goes into the manifest; its "shelves", as in Rescue.shelves, also
    go into the README.

    `tag`, six letters or digits, belongs to the workspace. An attempt that was killed
    leaves a hidden directory, which the next attempt with that tag removes. If a caller
    was killed before it learned of a complete archive, there can be a second one.

    Where an `earlier` archive has all of it, as it is now, and reads back, nothing is
    written, and None returned.

    Holes in files are preserved. With `only_complete`, an archive that lacks existing
    content is not kept: ArchiveIncomplete is raised.

    Raises: ValueError (ids of root, invalid names); Refused (the rescue area does not
    accept it, and nothing is left there; remote_code is rescue_disk_full,
    rescue_out_of_inodes, rescue_over_quota, rescue_read_only, rescue_root_missing,
    rescue_not_permitted or rescue_failed); ArchiveDamaged (it does not read back);
    Unreachable (a file server stopped answering); TransientGatewayError (stopped).
    """
    check_id(uid, what="uid")
    check_id(gid, what="gid")
    check_root(root, operation=OPERATION)
    if not _TAG.fullmatch(tag):
        raise ValueError(f"Not a tag of six letters or digits: {tag!r}.")
    for name in (owner, workspace, *(attachments or {})):
        if "/" in name or name.startswith(".") or not name.strip() or "\0" in name:
            raise ValueError(f"Not the name of a file or directory: {name!r}.")
    rows = _merged(entries)
    at = dt.datetime.now(tz=dt.UTC)
    order = {
        "root": str(root),
        "rescue_root": str(rescue_root),
        "owner": owner,
        # Random letters, as two of one workspace may come within a second.
        "name": f"{workspace}-{at:%Y%m%dT%H%M%SZ}-{tag}{secrets.token_hex(2)}",
        "leftover": _leftover(workspace, tag=tag),
        "uid": uid,
        "gid": gid,
        "only_complete": only_complete,
        "earlier": dataclasses.asdict(earlier) if earlier else None,
        "silent_seconds": silent_seconds(),
        "metadata": {
            "workspace": workspace,
            "owner": owner,
            "root": str(root),
            "at": at.isoformat(timespec="seconds"),
            **metadata,
        },
        "attachments": {name: str(path) for name, path in (attachments or {}).items()},
    }

    def relay(seen: dict[str, int]) -> None:
        if progress is not None:
            progress(ArchiveProgress(files_total=len(rows), **seen))

    told = _run(order, rows, relay=relay, should_stop=should_stop)["archived"]
    if told.get("is_kept"):
        return None
    if "directory" not in told:
        raise ArchiveIncomplete(_problems(told))
    counts: dict[str, dict[str, int]] = told["counts"]
    return ArchiveReport(
        directory=Path(told["directory"]),
        files=sum(count["stored"] for count in counts.values()),
        size_bytes=sum(count["bytes"] for count in counts.values()),
        sha256=told["sha256"],
        seen=told["seen"],
        counts=counts,
        problems=_problems(told),
    )


def _problems(told: dict[str, Any]) -> tuple[ArchiveProblem, ...]:
    return tuple(
        ArchiveProblem(path=path, state=state, reason=reason)
        for path, state, reason in told["problems"]
    )


def _leftover(workspace: str, *, tag: str) -> str:
    """Return the pattern of names that a killed attempt leaves."""
    return rf"\.{re.escape(workspace)}-[0-9TZ]+-{tag}[0-9a-f]{{4}}\.partial"


def remove_leftovers(
    rescue_root: Path, *, owner: str, workspace: str, tag: str, uid: int, gid: int
) -> None:
    """Remove what killed attempts left, if no later attempt has done so.

    Complete archives are kept. Safe to repeat.
    """
    require_leave()
    Place.clear(
        {
            "rescue_root": str(rescue_root),
            "owner": owner,
            "name": workspace,
            "leftover": _leftover(workspace, tag=tag),
            "uid": uid,
            "gid": gid,
        }
    )


def _merged(entries: Iterable[ArchiveEntry]) -> list[ArchiveEntry]:
    """Return one entry per path, the first one given, sorted by path."""
    by_path: dict[str, ArchiveEntry] = {}
    for entry in entries:
        by_path.setdefault(entry.path, entry)
    return [by_path[path] for path in sorted(by_path, key=lambda p: p.split("/"))]


def _run(
    order: dict[str, Any],
    rows: list[ArchiveEntry],
    *,
    relay: Callable[[dict[str, int]], None],
    should_stop: Callable[[], bool] | None,
) -> dict[str, Any]:
    """Run the process for the order; return its last line."""
    require_leave()
    process = subprocess.Popen(  # noqa: S603 - our own module
        bare_command("provisioner.gateways.hosts.rescues"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd="/",
    )
    feeder = threading.Thread(target=_feed, args=[process, order, rows], daemon=True)
    feeder.start()
    with _ended_with_us(process, feeder):
        return _listen(process, feeder=feeder, relay=relay, should_stop=should_stop)


def _feed(
    process: subprocess.Popen[bytes], order: dict[str, Any], rows: list[ArchiveEntry]
) -> None:
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError, ValueError):
        process.stdin.write(json.dumps(order).encode() + b"\n")
        for row in rows:
            filled = {k: v for k, v in dataclasses.asdict(row).items() if v}
            process.stdin.write(json.dumps(filled).encode() + b"\n")
        process.stdin.write(b"\n")
        process.stdin.flush()


def _listen(
    process: subprocess.Popen[bytes],
    *,
    feeder: threading.Thread,
    relay: Callable[[dict[str, int]], None],
    should_stop: Callable[[], bool] | None,
) -> dict[str, Any]:
    moved_at = time.monotonic()
    for line in json_lines(process.stdout):
        require_leave()
        if not feeder.is_alive():
            beat(process.stdin)
        if should_stop is not None and should_stop():
            raise TransientGatewayError(
                "The rescue was stopped before it was complete. None of it was kept.",
                system="host",
                operation=OPERATION,
            )
        if line is None:
            if time.monotonic() - moved_at > STALLED_AFTER_SECONDS:
                raise Unreachable(
                    "The rescue made no progress for "
                    f"{STALLED_AFTER_SECONDS:.0f} seconds: a file server does not "
                    "answer.",
                    system="host",
                    operation=OPERATION,
                )
            continue
        moved_at = time.monotonic()
        if "progress" in line:
            relay(line["progress"])
        elif "ready" in line:
            beat(process.stdin, BEGIN)
        elif "complete" in line:
            beat(process.stdin, PUBLISH)
        elif "alive" not in line:
            return _outcome(line)
    raise AssertionError  # the last line is always an outcome


def _outcome(line: dict[str, Any]) -> dict[str, Any]:
    if "refused" in line:
        raise Refused(
            line["refused"],
            system="host",
            operation=OPERATION,
            remote_code=line["code"],
        )
    if "damaged" in line:
        raise ArchiveDamaged(
            f"The archive does not read back as it was written. {line['damaged']}",
            system="host",
            operation=OPERATION,
        )
    if not line:
        raise TransientGatewayError(
            "The process that rescued the files ended early.",
            system="host",
            operation=OPERATION,
        )
    return line


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process: politely first, so that it cleans up."""
    process.terminate()
    try:
        process.wait(timeout=ENDS_WITHIN_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()


@contextlib.contextmanager
def _ended_with_us(
    process: subprocess.Popen[bytes], feeder: threading.Thread
) -> Iterator[None]:
    try:
        yield
    finally:
        _end(process)
        process.kill()
        feeder.join(ENDS_WITHIN_SECONDS)
        # Who feeds holds the pipe as long as the process hangs in the kernel.
        for pipe in (process.stdout, None if feeder.is_alive() else process.stdin):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        try:
            process.wait(timeout=ENDS_WITHIN_SECONDS)
        except subprocess.TimeoutExpired:
            # It hangs in the kernel, on a dead mount, and ends when that answers.
            process.returncode = -9
