"""A developer at work, as a program: `python -m provisioner.demo.owner_session`.

Reads one JSON object on standard input, becomes the workspace's owner, and does with
p4 what a developer does first; writes one JSON object. Run as root or as that uid.
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

from P4 import P4


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
    p4 = P4()
    p4.cwd = str(root)  # where .p4config is, as for anybody who has changed directory
    p4.ticket_file = str(home / "p4tickets")
    found = {"p4client": p4.client, "p4user": p4.user, "p4port": p4.port}
    p4.charset = "none"
    p4.connect()
    p4.password = request["password"]
    p4.run_login(password=request["password"])
    p4.exception_level = 1
    differing = p4.run("reconcile", "-n", f"//{p4.client}/...")
    edited = _edit_and_revert(p4)
    after = p4.run("reconcile", "-n", f"//{p4.client}/...")
    return {
        **found,
        "differing": [str(entry) for entry in differing[:20]],
        "edited": edited,
        "differing_after_revert": [str(entry) for entry in after[:20]],
    }


def _edit_and_revert(p4: P4) -> dict[str, Any]:
    """Edit a file, write to it, revert it; say what was seen at each point."""
    texts = (have for have in p4.run("have") if have["depotFile"].endswith(".txt"))
    have = next(texts, None) or p4.run("have")[0]
    path = Path(have["path"])
    before = _seen(path)
    # The depot path is escaped already, whatever is in the name.
    p4.run("edit", have["depotFile"])
    with path.open("ab") as file:
        file.write(b"a line by its owner\n")
    opened = p4.run("opened")
    during = _seen(path)
    p4.run("revert", have["depotFile"])
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
