"""Real input for the lab's depot: a source tree, submitted by a person in changes.

It plays the people who filled the depot before Cloneyard came.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provisioner.gateways.perforce.connection import permit_files
from provisioner.gateways.perforce.library import as_bytes, text_library

CHANGES = 5
BATCH = 500
LEFT_OUT = {"__pycache__", ".git", ".hg", ".svn", ".venv", "node_modules"}


@dataclass(frozen=True, kw_only=True)
class DepotAccount:
    """The demo's access to the lab's server, as a user who may submit."""

    port: str
    user: str
    password: str


def connect(account: DepotAccount, *, client: str, scratch: Path) -> Any:
    """Return a connection that is logged in and ignores this machine's settings."""
    permit_files()  # people of the demo work in this process, too
    p4 = text_library()
    p4.port, p4.user, p4.client = account.port, account.user, client
    p4.charset = "none"
    p4.ticket_file = str(scratch / "p4tickets")
    p4.cwd = str(scratch)
    p4.connect()
    p4.password = account.password
    p4.run_login(password=account.password)
    return p4


def create_p4_user(p4: Any, *, user: str, password: str) -> None:
    """Create a Perforce user with this password."""
    if any(known["User"] == user for known in p4.run("users")):
        return
    spec = p4.fetch_user(user)
    spec["FullName"], spec["Email"] = user.title(), f"{user}@example.com"
    p4.save_user(spec, "-f")
    p4.input = [password, password]
    p4.run("passwd", user)


def fill_depot(p4: Any, *, source: Path, name: str, scratch: Path) -> int:
    """Submit a tree as //depot/<name>/... in several changes; return the last one.

    A depot path that has changes already is left as it is.
    """
    latest = p4.run("changes", "-m1", "-s", "submitted", f"//depot/{name}/...")
    if latest:
        return int(latest[0]["change"])
    root = scratch / f"import-{name}"
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(
        source, root, symlinks=True, ignore=lambda _, names: LEFT_OUT & set(names)
    )
    _use_client(p4, name=name, root=root)
    files = sorted(_files_below(root))
    size = -(-len(files) // CHANGES)
    for number, start in enumerate(range(0, len(files), size), start=1):
        part = files[start : start + size]
        _submit_adds(p4, part, description=f"Import {name}, part {number}")
    change = _submit_awkward(p4, root=root)
    shutil.rmtree(root)
    return change


def _use_client(p4: Any, *, name: str, root: Path) -> None:
    spec = p4.fetch_client(f"import-{name}")
    spec["Root"], spec["Host"] = str(root), ""
    spec["View"] = [f"//depot/{name}/... //import-{name}/..."]
    p4.save_client(spec)
    p4.client, p4.cwd = f"import-{name}", str(root)


def _files_below(root: Path) -> Iterator[str]:
    for directory, names, files in os.walk(root):
        names.sort()
        links = [n for n in names if (Path(directory) / n).is_symlink()]
        for name in sorted(files + links):
            yield str(Path(directory) / name)


def _submit_adds(p4: Any, files: list[str], *, description: str) -> int:
    for start in range(0, len(files), BATCH):
        p4.run("add", "-f", *map(as_bytes, files[start : start + BATCH]))
    return _submit(p4, description)


def _submit(p4: Any, description: str) -> int:
    result = p4.run("submit", "-d", description)
    return int(result[-1]["submittedChange"])


def _submit_awkward(p4: Any, *, root: Path) -> int:
    """Submit names and types that break careless programs, an edit and a delete."""
    here = root / "awkward"
    here.mkdir()
    contents = {
        "name with spaces.txt": "spaces\n",
        "naïve-Ünïcode-日本.txt": "not ASCII\n",
        "at@sign.txt": "at\n",
        "hash#mark.txt": "hash\n",
        "percent%20sign.txt": "percent\n",
        "star*.txt": "star\n",
        "run.sh": "#!/bin/sh\necho executable\n",
        "empty": "",
        "bytes.bin": "\0\1\2",
        "edited.txt": "first\n",
        "deleted.txt": "goes away\n",
    }
    for name, text in contents.items():
        (here / name).write_text(text)
    (here / "run.sh").chmod(0o755)
    (here / "link-to-run").symlink_to("run.sh")
    (here / "dangling").symlink_to("nowhere")
    _submit_adds(p4, sorted(_files_below(here)), description="Add awkward names")
    p4.run("edit", str(here / "edited.txt"))
    (here / "edited.txt").write_text("second\n")
    p4.run("delete", str(here / "deleted.txt"))
    return _submit(p4, "Edit one file, delete another")
