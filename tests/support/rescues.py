"""A rescue with its archive, and hosts that read it."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.db import connection

from provisioner.demo.processes import Child, manage
from provisioner.engine.models import Operation
from provisioner.engine.workers import alive_workers
from provisioner.gateways.hosts.rescue_archive import ArchiveEntry
from provisioner.workspaces.models import Rescue, Workspace
from tests.support.forkserver import Warm, warm
from tests.support.rescue_archives import GID, UID, archive
from tests.support.workspaces import end

HEARD_WITHIN_SECONDS = 30.0
StartHost = Callable[[], Child]


@pytest.fixture
def area() -> Iterator[Path]:
    """A directory that other uids reach, unlike pytest's own."""
    root = Path(tempfile.mkdtemp(prefix="cloneyard-rescue-", dir="/var/tmp"))
    root.chmod(0o755)
    (root / "clone").mkdir()
    (root / "rescue").mkdir()
    yield root
    shutil.rmtree(root)


def rescue_of(
    workspace: Workspace, entries: list[ArchiveEntry], *, area: Path
) -> Rescue:
    """Rescue entries of the clone in an area, as a retirement of the workspace does."""
    report = archive(area / "clone", entries)
    operation = workspace.operations.latest("pk")
    if operation.state == Operation.State.RUNNING:
        end(operation, Operation.State.SUCCEEDED)
    Workspace.objects.filter(pk=workspace.pk).update(uid=UID, gid=GID)
    workspace.refresh_from_db()
    return Rescue.objects.create(
        workspace=workspace,
        operation=operation,
        has_archive=True,
        directory=str(report.directory),
        archived_files=report.files,
        archived_bytes=report.size_bytes,
        archive_sha256=report.sha256,
        has_work=True,
        is_complete=True,
    )


@pytest.fixture
def rescue(workspace: Workspace, area: Path) -> Rescue:
    """Two files, a link and one that was deleted."""
    clone = area / "clone"
    (clone / "src").mkdir()
    (clone / "src/notes.txt").write_text("do not lose me\n")
    (clone / os.fsdecode(b"caf\xe9 <b>.txt")).write_text("x" * 70_000)
    (clone / "link").symlink_to("src/notes.txt")
    entries = [
        ArchiveEntry(path=path, kind=kind)
        for path, kind in (
            ("src/notes.txt", "untracked"),
            (os.fsdecode(b"caf\xe9 <b>.txt"), "changed"),
            ("link", "untracked"),
            ("gone.txt", "missing"),
        )
    ]
    return rescue_of(workspace, entries, area=area)


@pytest.fixture(scope="module")
def warm_host(django_db_setup: None) -> Iterator[Warm]:
    with warm(
        {
            "DATABASE_NAME": connection.settings_dict["NAME"],
            "WORKER_HEARTBEAT_SECONDS": "0.3",
            "WORKER_STALLED_SECONDS": "1.5",
        }
    ) as warm_worker:
        yield warm_worker


@pytest.fixture
def start_host(
    warm_host: Warm, jobs_emptied: None, transactional_db: None, tmp_path: Path
) -> Iterator[StartHost]:
    """Start a worker as on a host of the site; all of them end with the test."""
    started: list[Child] = []

    def serving() -> int:
        return sum(worker.serves("host.any") for worker in alive_workers())

    def start() -> Child:
        before = serving()
        name = f"host{len(started)}"
        child = Child(name, manage("worker"), log_dir=tmp_path, start=warm_host)
        started.append(child)
        ends_at = time.monotonic() + HEARD_WITHIN_SECONDS
        while serving() <= before:
            assert child.is_running, child.last_lines()
            assert time.monotonic() < ends_at, child.last_lines()
            time.sleep(0.05)
        return child

    yield start
    for child in started:
        child.stop()


@pytest.fixture
def host(start_host: StartHost) -> Child:
    return start_host()
