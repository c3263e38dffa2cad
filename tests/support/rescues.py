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
from procrastinate.contrib.django.models import ProcrastinateJob

from provisioner.demo.processes import Child, manage
from provisioner.engine.models import Operation
from provisioner.engine.workers import alive_workers
from provisioner.gateways.hosts.rescue_archive import ArchiveEntry
from provisioner.workspaces.models import Rescue, Workspace
from tests.support.forkserver import Warm, warm
from tests.support.rescue_archives import GID, UID, archive
from tests.support.workspaces import end

HEARD_WITHIN_SECONDS = 60.0
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


def serving() -> int:
    """Return how many hosts there are."""
    return sum(worker.serves("host.any") for worker in alive_workers())


def wait_until_more_serve(child: Child, *, than: int) -> None:
    ends_at = time.monotonic() + HEARD_WITHIN_SECONDS
    while serving() <= than:
        assert child.is_running, child.last_lines()
        assert time.monotonic() < ends_at, child.last_lines()
        time.sleep(0.02)


def host_named(name: str, *, log_dir: Path, start: Warm) -> Child:
    return Child(name, manage("worker"), log_dir=log_dir, start=start)


@pytest.fixture(scope="module")
def kept_host() -> Iterator[list[Child]]:
    """The host of all tests of a module that do it no harm, once one has started it."""
    kept: list[Child] = []
    yield kept
    for child in kept:
        child.stop()


@pytest.fixture
def start_host(
    kept_host: list[Child],
    warm_host: Warm,
    jobs_emptied: None,
    transactional_db: None,
    tmp_path: Path,
) -> Iterator[StartHost]:
    """Start a worker as on a host of the site; all of them end with the test."""
    while kept_host:
        kept_host.pop().stop()
    started: list[Child] = []

    def start() -> Child:
        before = serving()
        child = host_named(f"host{len(started)}", log_dir=tmp_path, start=warm_host)
        started.append(child)
        wait_until_more_serve(child, than=before)
        return child

    yield start
    for child in started:
        child.stop()


@pytest.fixture
def no_host(kept_host: list[Child], jobs_emptied: None) -> None:
    """Nobody reads rescues."""
    while kept_host:
        kept_host.pop().stop()


@pytest.fixture
def host(
    kept_host: list[Child],
    warm_host: Warm,
    jobs_emptied: None,
    transactional_db: None,
    tmp_path: Path,
) -> Iterator[Child]:
    """A host, which other tests use, too: its rows were deleted after the last one.

    With its next heartbeat it writes them anew.
    """
    if not kept_host:
        kept_host.append(host_named("host", log_dir=tmp_path, start=warm_host))
    [child] = kept_host
    wait_until_more_serve(child, than=0)
    yield child
    ends_at = time.monotonic() + HEARD_WITHIN_SECONDS
    while ProcrastinateJob.objects.filter(status="doing").exists():
        assert time.monotonic() < ends_at, child.last_lines()
        time.sleep(0.02)
