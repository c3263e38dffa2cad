"""Checks of a new workspace, and of a purged one."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings

from provisioner.catalog.models import Template
from provisioner.demo.seed import PASSWORD
from provisioner.gateways import registry
from provisioner.gateways.hosts.descent import directories
from provisioner.lib.names import tag_in
from provisioner.workspaces.models import Workspace

OWNER_SESSION_SECONDS = 300


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check: `ok`, or `detail` says what was found instead."""

    name: str
    ok: bool
    detail: str = ""


def expected_owner(workspace: Workspace) -> tuple[int, int]:
    """Return the owner that files can have: without root they cannot be given away."""
    if os.geteuid() == 0:
        return workspace.uid, workspace.gid
    return os.geteuid(), os.getegid()


def check_ready(workspace: Workspace) -> list[Check]:
    """Check a READY workspace from the outside, and by working in it as its owner."""
    have = registry.perforce(workspace.perforce_server).files.have_list(
        workspace.client_name
    )
    pin = workspace.snapshot
    entries, strangers = _owners(workspace)
    return [
        Check(
            name="owner and group of every entry",
            ok=entries > 0 and not strangers,
            detail=f"{entries} entries; not the owner's: {strangers[:10]}",
        ),
        Check(
            name="have count and digest equal the pin",
            ok=(have.count, have.digest) == (pin.have_count, pin.have_digest),
            detail=f"{have.count} files, pin {pin.have_count}",
        ),
        *_check_as_owner(workspace),
    ]


def check_bound(workspace: Workspace) -> Check:
    """Check that the client of a workspace is bound to the server beside it."""
    server = workspace.perforce_server
    client = registry.perforce(server).clients.find(workspace.client_name)
    bound_to = client.server_id if client else "none"
    return Check(
        name=f"the client is bound to {server.name}, {server.kind_in_text}",
        ok=server.what.binds_clients and bound_to == server.server_id,
        detail=bound_to,
    )


def _owners(workspace: Workspace) -> tuple[int, list[str]]:
    wanted = expected_owner(workspace)
    count, strangers = 0, []
    for path in _entries(workspace.path):
        status = path.lstat()
        count += 1
        if (status.st_uid, status.st_gid) != wanted:
            strangers.append(f"{path} {status.st_uid}:{status.st_gid}")
    return count, strangers


def _entries(root: Path) -> list[Path]:
    found = [root]
    for directory in directories(root):
        found += [root / directory.path_of(entry.name) for entry in directory.entries]
    return sorted(found)


def _check_as_owner(workspace: Workspace) -> list[Check]:
    uid, gid = expected_owner(workspace)
    request = {
        "root": str(workspace.path),
        "uid": uid,
        "gid": gid,
        "password": PASSWORD,
    }
    done = subprocess.run(
        [sys.executable, "-m", "provisioner.demo.owner_session"],
        input=json.dumps(request).encode(),
        capture_output=True,
        cwd=settings.BASE_DIR,
        env={"P4CONFIG": ".p4config", "PATH": os.environ["PATH"]},
        timeout=OWNER_SESSION_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        error = done.stderr.decode(errors="replace").strip()[-500:]
        return [Check(name="p4 works as the owner", ok=False, detail=error)]
    seen: dict[str, Any] = json.loads(done.stdout)
    edited = seen["edited"]
    return [
        Check(
            name=".p4config names the client",
            ok=seen["p4client"] == workspace.client_name,
            detail=seen["p4client"],
        ),
        Check(
            name="p4 reconcile -n is clean as the owner",
            ok=not seen["differing"],
            detail=str(seen["differing"]),
        ),
        Check(
            name="p4 edit, write and p4 revert work as the owner",
            ok=edited["was_opened"]
            and edited["was_written"]
            and edited["is_as_before"]
            and not seen["differing_after_revert"],
            detail=str(edited),
        ),
    ]


def fingerprint(template: Template) -> str:
    """Return a digest over everything in a template: names, owners, modes, contents."""
    digest = hashlib.sha256()
    for path in _entries(template.path):
        status = path.lstat()
        facts = (status.st_mode, status.st_uid, status.st_gid, status.st_mtime_ns)
        digest.update(f"{path}{facts}".encode(errors="surrogateescape"))
        if path.is_symlink():
            digest.update(os.fsencode(os.readlink(path)))
        elif path.is_file():
            digest.update(path.read_bytes())
    have = registry.perforce(template.perforce_server).files.have_list(
        template.client_name
    )
    digest.update(f"{have.count} {have.digest}".encode())
    return digest.hexdigest()


def left_behind(workspace: Workspace) -> list[str]:
    """Return what still exists of a retired workspace."""
    ontap = registry.ontap(workspace.site)
    perforce = registry.perforce(workspace.perforce_server)
    left = []
    if workspace.client_name and perforce.clients.find(workspace.client_name):
        left.append(f"client {workspace.client_name}")
    for client in workspace.stand_ins.find_all(perforce):
        left.append(f"client {client.name}")
    for volume in ontap.list_volumes(comment_prefix=tag_in(workspace.volume_comment)):
        left.append(f"volume {volume.name}")
    for volume in ontap.list_volumes():
        if volume.junction_path == workspace.junction_path:
            left.append(f"junction {volume.junction_path}")
    if os.path.lexists(workspace.path):
        left.append(f"directory {workspace.path}")
    mounts = Path("/proc/self/mountinfo").read_text()
    if f" {workspace.path} " in mounts:
        left.append(f"mount {workspace.path}")
    return left
