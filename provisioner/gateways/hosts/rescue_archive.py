"""Archive files that would be lost, in their owner's rescue area.

It never follows a link, never leaves the workspace's filesystem, and gives a directory
its final name only when the archive is complete and verified.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import os
import re
import secrets
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
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
from provisioner.gateways.hosts.beats import answer
from provisioner.gateways.hosts.ownership import check_id, check_root
from provisioner.gateways.hosts.processes import bare_command, ended_after, json_lines
from provisioner.gateways.hosts.rescues.place import Place

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

    `counts` has {"count", "stored", "bytes"} by kind, `sha256` is the checksum of the
    tar file. `seen` is a digest of how the files were when it was begun.
    """

    directory: Path
    sha256: str
    seen: str
    counts: dict[str, dict[str, int]]
    problems: tuple[ArchiveProblem, ...]

    @property
    def files(self) -> int:
        """How many contents the tar file has."""
        return sum(count["stored"] for count in self.counts.values())

    @property
    def size_bytes(self) -> int:
        return sum(count["bytes"] for count in self.counts.values())


@dataclass(frozen=True, kw_only=True)
class EarlierArchive:
    """A complete archive of the same workspace, as reported when it was made."""

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
    only_complete: bool = False,
    earlier: EarlierArchive | None = None,
    progress: Callable[[int], None] = lambda files: None,
) -> ArchiveReport | None:
    """Archive the entries below `root` in a new directory of the owner, and verify it.

    The directory is `rescue_root`/`owner`/`workspace`-<UTC time>-`tag`<four letters>.
    It belongs to the owner (uid, gid), nobody else can read it, and it has work.tar,
    manifest.json, SHA256SUMS and README.txt. `metadata` goes into the manifest; its
    "shelves", as in Rescue.shelves, also go into the README. `progress` gets the number
    of entries handled.

    `tag`, six letters or digits, belongs to the workspace. An attempt that was killed
    leaves a hidden directory, which the next attempt with that tag removes. If a caller
    was killed before it learned of a complete archive, there can be a second one.

    If an `earlier` archive has all of it, unchanged, and can be read back, nothing is
    written and None is returned.

    Holes in files are preserved. With `only_complete`, an archive that lacks existing
    content is not kept: ArchiveIncomplete is raised.

    Raises: ValueError (ids of root, invalid names); Refused (the rescue area does not
    accept it, and nothing is left there; remote_code is rescue_disk_full,
    rescue_out_of_inodes, rescue_over_quota, rescue_read_only, rescue_root_missing,
    rescue_not_permitted or rescue_failed); ArchiveDamaged (it does not read back);
    Unreachable (a file server stopped answering); TransientGatewayError (its process
    was ended).
    """
    check_id(uid, what="uid")
    check_id(gid, what="gid")
    check_root(root, operation=OPERATION)
    if not _TAG.fullmatch(tag):
        raise ValueError(f"Not a tag of six letters or digits: {tag!r}.")
    for name in (owner, workspace):
        if "/" in name or name.startswith(".") or not name.strip() or "\0" in name:
            raise ValueError(f"Not the name of a file or directory: {name!r}.")
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
    }
    require_leave()
    process = start(order, _merged(entries))
    with ended_after(process, grace_seconds=ENDS_WITHIN_SECONDS):
        told = _listen(process, progress)
    if told.get("is_kept"):
        return None
    if "directory" not in told:
        raise ArchiveIncomplete(_problems(told))
    return ArchiveReport(
        directory=Path(told["directory"]),
        sha256=told["sha256"],
        seen=told["seen"],
        counts=told["counts"],
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


def start(
    order: dict[str, Any], entries: Iterable[ArchiveEntry]
) -> subprocess.Popen[bytes]:
    """Start the process, which reads its order and the entries from a file."""
    with os.fdopen(os.memfd_create("rescue"), "wb") as file:
        for line in (order, *map(_filled, entries)):
            file.write(json.dumps(line).encode() + b"\n")
        file.flush()
        file.seek(0)
        return subprocess.Popen(
            [
                *bare_command("provisioner.gateways.hosts.rescues"),
                str(file.fileno()),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[file.fileno()],
            cwd="/",
        )


def _filled(entry: ArchiveEntry) -> dict[str, Any]:
    return {name: v for name, v in dataclasses.asdict(entry).items() if v}


def _listen(
    process: subprocess.Popen[bytes], progress: Callable[[int], None]
) -> dict[str, Any]:
    """Return the last report of the process."""
    moved_at = time.monotonic()
    for line in json_lines(process.stdout):
        answer(process.stdin, line)
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
            progress(line["progress"])
        elif line.keys().isdisjoint(("ready", "alive", "complete")):
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
    if "archived" not in line:
        raise TransientGatewayError(
            "The process that rescued the files ended early.",
            system="host",
            operation=OPERATION,
        )
    archived: dict[str, Any] = line["archived"]
    return archived
