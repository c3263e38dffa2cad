"""State of the lab that agrees with the company's rows.

Its ONTAP gets the volumes and snapshots, without contents; its Perforce server a
checkpoint with people, clients, changes and the names of all files, which all have the
same content. So drift checks find exactly what the rows say, and requests in the demo
really work.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot
from provisioner.catalog.snapshot_comments import MIRROR_LABEL, SnapshotMark, asked_text
from provisioner.catalog.steps.volume import template_client_spec
from provisioner.demo import seed
from provisioner.demo.company.changes import FIRST_NUMBER
from provisioner.demo.company.company import Company
from provisioner.demo.company.drift import Orphan
from provisioner.demo.company.templates import Built, oldest_published
from provisioner.demo.company.trees import paths_of
from provisioner.gateways.perforce.specs import split_view_line
from provisioner.gateways.perforce.types import ClientSpec
from provisioner.mirrors.models import Mirror, MirroredSnapshot
from provisioner.sites.models import CapacityDay, Site
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.steps.provision import client_spec_of

W = Workspace.State
CLIENT, EXECUTABLE = 99, 0x20000
# It is what builds run, too: all that they have to do is to succeed.
CONTENT = b"#!/bin/sh\n# A file of the studio: it has a name and this line.\n"
ARCHIVE, REVISION, FULL = "//depot/content", "1.1", 1
HAVE_VOLUMES = (W.READY, W.RETIRING, W.TRASHED, W.RESTORING, W.PURGING)
HAVE_CLIENTS = (W.READY, W.RETIRING)
ARE_MOUNTED = (W.READY, W.RETIRING, W.RESTORING)


VOLUMES, CHECKPOINT, DEPOTS = "volumes.json", "checkpoint", "depots"


def write(company: Company, *, directory: Path) -> None:
    """Write the lab's state for a founded company."""
    directory.mkdir(parents=True, exist_ok=True)
    volumes = {
        site.svm: {
            "aggregate_bytes": _size_of(site),
            "volumes": list(_volumes(company, site)),
            "relationships": [
                _relationship(mirror)
                for mirror in company.mirrors
                if mirror.site == site and mirror.relationship_uuid
            ],
        }
        for site in company.places.all
    }
    (directory / VOLUMES).write_text(json.dumps(volumes))
    with (directory / CHECKPOINT).open("w") as checkpoint:
        checkpoint.writelines(f"{line}\n" for line in _checkpoint(company))
    content = directory / DEPOTS / f"{ARCHIVE.removeprefix('//')},d"
    content.mkdir(parents=True, exist_ok=True)
    (content / REVISION).write_bytes(CONTENT)


def _size_of(site: Site) -> int:
    newest = CapacityDay.objects.filter(site=site).latest("day")
    assert newest.size_bytes is not None
    return newest.size_bytes


# --- ONTAP


def _volumes(company: Company, site: Site) -> Iterator[dict[str, Any]]:
    for built in company.templates:
        if built.template.site == site and built.template.volume_uuid:
            yield _of_template(built)
    for mirror in company.mirrors:
        if mirror.site == site and mirror.volume_uuid:
            yield _of_mirror(company, mirror)
    differences = company.differences
    for workspace in company.workspaces:
        is_gone = workspace == differences.gone or not _has_volume(workspace)
        if workspace.site == site and not is_gone:
            yield _of_workspace(company, workspace)
    if site == company.places.home:
        yield from (_of_orphan(company, each) for each in differences.orphans)


def _has_volume(workspace: Workspace) -> bool:
    is_there = workspace.state in HAVE_VOLUMES or workspace.state == W.FAILED
    return is_there and bool(workspace.volume_uuid)


def _of_template(built: Built) -> dict[str, Any]:
    template = built.template
    return {
        "uuid": template.volume_uuid,
        "name": template.volume_name,
        "comment": template.volume_comment,
        "size_bytes": template.actual_size_bytes,
        "create_time": _moment(template.created_at),
        "export_policy": template.site.templates_policy,
        "junction_path": template.junction_path,
        "uid": template.site.template_uid,
        "gid": template.site.template_gid,
        "unix_permissions": 700,
        "said_bytes": template.used_bytes,
        "said_own_bytes": template.used_bytes,
        "said_files": template.used_inodes,
        "snapshots": [
            _snapshot(built, each) for each in built.snapshots if each.is_there
        ],
    }


def _snapshot(built: Built, snapshot: Snapshot) -> dict[str, Any]:
    assert snapshot.operation is not None
    mark = SnapshotMark(
        tree=built.template.volume_comment,
        change=snapshot.change,
        have_count=snapshot.have_count,
        have_digest=snapshot.have_digest,
        asked=asked_text(snapshot.operation),
    )
    return {
        "uuid": snapshot.ontap_uuid,
        "name": snapshot.name,
        "comment": str(mark),
        "snapmirror_label": MIRROR_LABEL,
        "create_time": _moment(snapshot.created_at),
    }


def _of_mirror(company: Company, mirror: Mirror) -> dict[str, Any]:
    [built] = [each for each in company.templates if each.template == mirror.template]
    marked = {each["name"]: each for each in _of_template(built)["snapshots"]}
    there = MirroredSnapshot.objects.filter(mirror=mirror).select_related("snapshot")
    return {
        "uuid": mirror.volume_uuid,
        "name": mirror.volume_name,
        "type": "dp",
        "comment": mirror.volume_comment,
        "size_bytes": mirror.template.actual_size_bytes,
        "create_time": _moment(mirror.created_at),
        "export_policy": "default",
        "unix_permissions": 700,
        "said_bytes": mirror.template.used_bytes,
        "said_own_bytes": mirror.template.used_bytes,
        "snapshots": [
            {**marked[each.snapshot.name], "uuid": each.ontap_uuid} for each in there
        ],
    }


def _relationship(mirror: Mirror) -> dict[str, Any]:
    return {
        "uuid": mirror.relationship_uuid,
        "source_svm": mirror.template.site.svm,
        "source_volume": mirror.template.volume_name,
        "destination_volume": mirror.volume_name,
        "policy": mirror.policy_name,
        "label": MIRROR_LABEL,
        "keep": mirror.keep,
    }


def _of_workspace(company: Company, workspace: Workspace) -> dict[str, Any]:
    differences, site = company.differences, workspace.site
    junction = workspace.junction_path if workspace.state in ARE_MOUNTED else None
    if workspace == differences.elsewhere:
        junction = f"{workspace.junction_path}-old"
    is_frozen = workspace.state not in ARE_MOUNTED
    own = workspace.unique_bytes or 0
    return {
        "uuid": workspace.volume_uuid,
        "name": workspace.volume_name,
        "comment": ""
        if workspace == differences.untagged
        else workspace.volume_comment,
        "size_bytes": workspace.template.actual_size_bytes,
        "create_time": _moment(workspace.created_at),
        "export_policy": site.frozen_policy if is_frozen else site.export_policy,
        "junction_path": junction,
        "uid": workspace.uid,
        "gid": workspace.gid,
        "unix_permissions": int(workspace.root_mode or "700"),
        "parent_uuid": workspace.template.volume_uuid,
        "parent_snapshot_uuid": workspace.snapshot.ontap_uuid,
        "said_bytes": (workspace.template.used_bytes or 0) + own,
        "said_own_bytes": own,
        "said_files": workspace.used_inodes or 0,
    }


def _of_orphan(company: Company, orphan: Orphan) -> dict[str, Any]:
    template = orphan.parent.template
    snapshot = orphan.parent.default_at(company.studio.now)
    return {
        "uuid": orphan.volume_uuid,
        "name": orphan.volume_name,
        "comment": f"cloneyard:v1:workspace={orphan.tag}",
        "size_bytes": template.actual_size_bytes,
        "create_time": _moment(snapshot.created_at),
        "export_policy": template.site.export_policy,
        "junction_path": f"/w-{orphan.name}-{orphan.tag[:4]}",
        "unix_permissions": 700,
        "parent_uuid": template.volume_uuid,
        "parent_snapshot_uuid": snapshot.ontap_uuid,
        "said_bytes": template.used_bytes,
        "said_own_bytes": 2**30,
    }


def _moment(moment: dt.datetime) -> str:
    return moment.isoformat(timespec="seconds")


# --- Perforce


def _checkpoint(company: Company) -> Iterator[str]:
    """Yield rows of a Perforce database. Source: Perforce server schema."""
    newest = company.history.newest_number
    yield f"@pv@ 1 @db.counters@ @change@ @{newest}@ "
    yield "@pv@ 5 @db.protect@ 0 0 @*@ @*@ 31 0 @//...@ @@ 10 "
    yield from (_user(user) for user in _perforce_users(company))
    for spec, accessed_at in _clients(company):
        yield from _client(spec, accessed_at)
    yield from _changes(company)
    for built in company.templates:
        yield from _revisions(company, built)


def _perforce_users(company: Company) -> Iterator[User]:
    people = company.people
    yield from (*people.developers, *people.administrators, *people.machines)


def _user(user: User) -> str:
    password = hashlib.md5(seed.PASSWORD.encode(), usedforsecurity=False).hexdigest()
    name, full = user.perforce_name, user.get_full_name() or user.username
    email = (user.email or name).replace("@", "@@")  # as the format doubles it
    return (
        f"@pv@ 7 @db.user@ @{name}@ @{email}@ @@ 10 20 @{full}@ "
        f"@{password.upper()}@ 1 @@ 0 0 0 0 0 0 "
    )


def _clients(company: Company) -> Iterator[tuple[ClientSpec, dt.datetime]]:
    differences = company.differences
    for built in company.templates:
        if built.snapshots:
            at = built.snapshots[-1].created_at
            yield template_client_spec(built.template), at
    for workspace in company.workspaces:
        is_there = workspace.state in HAVE_CLIENTS or (
            workspace.state == W.FAILED and workspace.volume_uuid
        )
        if not is_there or not workspace.client_name:
            continue
        if workspace == differences.without_client:
            continue
        accessed = workspace.activity.get("accessed", {}).get("at")
        at = dt.datetime.fromisoformat(accessed) if accessed else workspace.created_at
        spec = client_spec_of(workspace)
        if workspace == differences.moved_client:
            spec = _elsewhere(spec)
        yield spec, at


def _elsewhere(spec: ClientSpec) -> ClientSpec:
    """Return a client whose owner moved its root to a disk of their own."""
    return ClientSpec(**{**vars(spec), "root": f"/home/{spec.owner}/work"})


def _client(spec: ClientSpec, accessed_at: dt.datetime) -> Iterator[str]:
    at = int(accessed_at.timestamp())
    yield (
        f"@pv@ 7 @db.domain@ @{spec.name}@ {CLIENT} @@ @{spec.root}@ @@ @@ "
        f"@{spec.owner}@ {at} {at} 0 @{spec.description}@ @@ @@ 0 "
    )
    for number, text in enumerate(spec.view):
        line = split_view_line(text)
        yield (
            f"@pv@ 1 @db.view@ @{spec.name}@ {number} 0 @{line.client}@ @{line.depot}@ "
        )


def _changes(company: Company) -> Iterator[str]:
    first = company.history.changes[0]
    yield _change(FIRST_NUMBER, first.user, first.at, "Import everything")
    for change in company.history.changes:
        yield _change(change.number, change.user, change.at, change.title)


def _change(number: int, user: User, at: dt.datetime, title: str) -> str:
    name = user.perforce_name
    return (
        f"@pv@ 4 @db.change@ {number} {number} @{name}-desk@ @{name}@ "
        f"{int(at.timestamp())} 1 @{title}\n@ @//...@ @@ @@ 0 "
    )


def _revisions(company: Company, built: Built) -> Iterator[str]:
    """Yield each file once at the beginning, and again for recent changes."""
    changes = company.history.of(built.plan.name)
    at = int(changes[0].at.timestamp())
    for path in paths_of(built.plan):
        yield _revision(path, 1, FIRST_NUMBER, at)
    since = oldest_published(built)
    if since is None:
        return
    numbers: Counter[str] = Counter()
    for change in changes:
        if change.number > since:
            for path in change.paths[built.plan.name]:
                numbers[path] += 1
                at = int(change.at.timestamp())
                yield _revision(path, numbers[path] + 1, change.number, at)


_DIGEST = base64.b64encode(hashlib.md5(CONTENT, usedforsecurity=False).digest())
_KEPT = f"{_DIGEST.decode().rstrip('=')} {len(CONTENT)} 0 0 @{ARCHIVE}@ @{REVISION}@"


def _revision(path: str, number: int, change: int, at: int) -> str:
    action = 0 if number == 1 else 1
    return (
        f"@pv@ 9 @db.rev@ @{path}@ {number} {EXECUTABLE} {action} {change} {at} {at} "
        f"{_KEPT} {FULL} "
    )
