"""Write an archive and verify it.

Reads the order and the entries, one JSON line each, from an open file; gets messages of
its worker on stdin, and answers on stdout.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import sys
import threading
import time
import traceback
from typing import Any

from provisioner.gateways.hosts.descent import ENTER
from provisioner.gateways.hosts.processes import (
    PUBLISH,
    begin_with_leave,
    die_with_parent,
)
from provisioner.gateways.hosts.rescues.place import NoPlace, Place
from provisioner.gateways.hosts.rescues.reading import CannotCheck, Tree, signature
from provisioner.gateways.hosts.rescues.verifying import Damaged, verify
from provisioner.gateways.hosts.rescues.writing import TAR, Archive

Json = dict[str, Any]


class _Stopped(BaseException):
    """We were asked to stop."""


class _Incomplete(Exception):
    """Existing content could not be read: the archive is not kept."""


class _Pulse:
    """Tells the caller, once a second, that we are still working."""

    def __init__(self) -> None:
        self._told_at = 0.0

    def beat(self) -> None:
        now = time.monotonic()
        if now - self._told_at > 1:
            self._told_at = now
            say(alive=True)


def say(**line: Any) -> None:
    """Write one line to the caller."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Run the order; the last line reports how it ended."""
    die_with_parent(int(sys.argv[1]))
    with open(int(sys.argv[2]), "rb") as lines:
        order = json.loads(next(lines))
        may_publish = threading.Event()
        begin_with_leave(
            order["silent_seconds"],
            ask=lambda: say(ready=True),
            on_word=lambda said: may_publish.set() if PUBLISH in said else None,
        )
        entries = [json.loads(line) for line in lines]
    try:
        say(archived=_archive(order, entries, may_publish))
    except NoPlace as refusal:
        say(refused=str(refusal), code=refusal.code)
    except Damaged as damage:
        say(damaged=str(damage))
    except OSError as error:
        say(refused=f"{error}.", code=errno.errorcode.get(error.errno or 0, ""))


def _archive(order: Json, entries: list[Json], may_publish: threading.Event) -> Json:
    """Write the archive, verify it, and give it its final name."""
    root = os.open(order["root"], ENTER)
    tree = Tree(root, uid=order["uid"], gid=order["gid"])
    seen = signature(entries, tree)
    if _is_kept(order["earlier"], seen=seen):
        return {"is_kept": True}
    with contextlib.suppress(_Incomplete), Place.prepared(order) as place:
        place.require_room(_bytes_of(entries, tree))
        archive = Archive(
            place.directory,
            tree,
            metadata=order["metadata"],
            tell=lambda files: say(progress=files),
        )
        with place.translated():
            archive.write(entries)
        if order["only_complete"] and archive.lacks_content:
            raise _Incomplete
        sums = verify(place.directory, beat=_Pulse().beat)
        say(complete=True)
        may_publish.wait()
        place.publish()
        return {
            "directory": place.path,
            "counts": archive.counts,
            "problems": archive.problems,
            "sha256": sums[TAR],
            "seen": seen,
        }
    return {"problems": archive.problems}


def _is_kept(earlier: Json, *, seen: str) -> bool:
    """Return whether an earlier archive has everything, unchanged."""
    if not earlier or earlier["seen"] != seen:
        return False
    try:
        directory = os.open(earlier["directory"], ENTER)
        sums = verify(directory, beat=_Pulse().beat)
    except (OSError, Damaged):
        return False
    return bool(sums[TAR] == earlier["sha256"])


def _bytes_of(entries: list[Json], tree: Tree) -> int:
    """Return the size of the contents without holes, as far as known."""
    total = 0
    for entry in entries:
        with contextlib.suppress(CannotCheck):
            total += tree.stored_bytes_of(entry["path"])
    return total


def _stop(signal_number: int, frame: object) -> None:
    raise _Stopped


if __name__ == "__main__":
    code = 1
    signal.signal(signal.SIGTERM, _stop)
    try:
        main()
        code = 0
    except _Stopped:
        code = 0
    except Exception:
        traceback.print_exc()
    os._exit(code)
