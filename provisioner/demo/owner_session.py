"""A developer at work, as a program: `python -m provisioner.demo.owner_session`.

Reads one JSON object on standard input, becomes the workspace's owner, and does with p4
what a developer does first; writes one JSON object. Run as root or as that uid.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
import tempfile
from pathlib import Path
from typing import Any

from provisioner.gateways.perforce.library import (
    Record,
    as_bytes,
    new_library,
    record_of,
)


def main() -> None:
    request = json.load(sys.stdin)
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(request["gid"])
        os.setuid(request["uid"])
    os.umask(0o022)
    with tempfile.TemporaryDirectory() as home:
        json.dump(_work(request, home=Path(home)), sys.stdout)


def _work(request: dict[str, Any], *, home: Path) -> dict[str, Any]:
    root = Path(request["root"])
    p4 = new_library()
    p4.cwd = str(root)  # where .p4config is, as for anybody who has changed directory
    p4.ticket_file = str(home / "p4tickets")
    found = {"p4client": p4.client, "p4user": p4.user, "p4port": p4.port}
    p4.charset = "none"
    p4.connect()
    p4.password = request["password"]
    p4.run_login(password=request["password"])
    p4.exception_level = 1
    differing = _differing(p4)
    edited = _edit_and_revert(p4)
    after = _differing(p4)
    return {
        **found,
        "differing": differing,
        "edited": edited,
        "differing_after_revert": after,
    }


def _differing(p4: Any) -> list[str]:
    """Return the first files that differ from the have list."""
    return list(map(str, _records(p4, "reconcile", "-n", f"//{p4.client}/...")[:20]))


def _records(p4: Any, *command: str) -> list[Record]:
    return [record_of(record) for record in p4.run(*map(as_bytes, command))]


def _edit_and_revert(p4: Any) -> dict[str, Any]:
    """Edit a file, write to it, revert it; return what each step showed."""
    had = _records(p4, "have")
    texts = (have for have in had if have["depotFile"].endswith(".txt"))
    have = next(texts, had[0])
    path = Path(have["path"])
    before = _seen(path)
    # The depot path is escaped already, whatever is in the name.
    _records(p4, "edit", have["depotFile"])
    with path.open("ab") as file:
        file.write(b"a line by its owner\n")
    opened = _records(p4, "opened")
    during = _seen(path)
    _records(p4, "revert", have["depotFile"])
    return {
        "path": str(path),
        "was_opened": len(opened) == 1,
        "was_written": during["digest"] != before["digest"],
        "is_as_before": _seen(path) == before,
    }


def _seen(path: Path) -> dict[str, Any]:
    status = path.lstat()
    return {
        "digest": hashlib.sha256(path.read_bytes()).hexdigest(),
        "is_writable": bool(status.st_mode & stat.S_IWUSR),
        "uid": status.st_uid,
    }


if __name__ == "__main__":
    main()
