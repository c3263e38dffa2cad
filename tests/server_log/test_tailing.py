"""The log of a Perforce server, followed from afar by p4 logtail."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from procrastinate.contrib.django.models import ProcrastinateJob

from provisioner.gateways import registry
from provisioner.server_log import tailing
from provisioner.server_log.models import LogCommand, ServerLog
from provisioner.server_log.sweeps import follow_server_log, sweep_server_logs
from tests.server_log.logs import SYNC, whole
from tests.support.factories import PerforceServerFactory
from tests.support.lab_perforce import LabServer, lab_server
from tests.support.workers import start_worker

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    with lab_server(tmp_path_factory.mktemp("tailing")) as server:
        yield server


@pytest.fixture
def path(lab: LabServer) -> Path:
    """The server's log: what was in it is gone."""
    path = lab.root.parent / "log"
    os.truncate(path, 0)
    return path


@pytest.fixture
def log(lab: LabServer, path: Path, settings: Any) -> ServerLog:
    settings.SERVER_LOG_DAYS = 20_000
    settings.SITE_SECRET = lambda name, *, key: lab.password
    server = PerforceServerFactory.create(
        name="lab", p4port=f"127.0.0.1:{lab.port}", p4user="cloneyard"
    )
    return ServerLog.objects.create(server=server, way="logtail")


def _write(path: Path, text: str) -> None:
    with path.open("ab") as file:
        file.write(os.fsencode(text))


def _tail(log: ServerLog) -> list[str]:
    """Read on; return the commands of ann that are stored."""
    follow_server_log(log.pk)
    log.refresh_from_db()
    stored = LogCommand.objects.filter(log=log, user="ann").order_by("pk")
    return list(stored.values_list("command", flat=True))


def test_a_log_is_told_byte_by_byte(log: ServerLog, path: Path) -> None:
    _write(path, SYNC + "\udcff\udcc3\n" * 9)
    there, told, at = registry.perforce(log.server).log, b"", 0
    size = len(SYNC) + 27

    while at < size:
        piece = there.read(offset=at, at_most=min(999, size - at))
        told, at = told + piece.data, piece.next_offset

    assert told == path.read_bytes()[:size]
    assert there.read(offset=10**9, at_most=99).data == b""


def test_what_comes_later_is_read_once(
    log: ServerLog, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tailing, "CHUNK_BYTES", 700)
    monkeypatch.setattr(tailing, "_ENDS_BELOW_BYTES", 300)
    _write(path, SYNC)
    assert _tail(log) == ["user-sync"]
    assert (log.trouble, log.gaps) == ("", 0)
    before = ServerLog.objects.get(pk=log.pk)

    _write(path, whole(6, "user-have", second=20) + whole(7, "user-opened", second=40))
    later = _tail(log)
    tailing.tail(before, for_seconds=60)  # as another worker that did not notice

    assert later == _tail(log) == ["user-sync", "user-have", "user-opened"]


def test_a_log_that_was_rotated_begins_anew(log: ServerLog, path: Path) -> None:
    _write(path, SYNC + whole(6, "user-have", second=20))
    _tail(log)
    os.truncate(path, 0)
    _write(path, whole(7, "user-opened", second=30) + whole(8, "user-info", second=40))

    assert _tail(log) == ["user-sync", "user-have", "user-opened", "user-info"]
    assert log.gaps == 1
    assert log.files.count() == 1


def test_a_rotation_while_it_is_read_stores_nothing_of_the_next_file(
    log: ServerLog, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(path, SYNC)
    heads = iter(["one", "other"])
    monkeypatch.setattr(tailing, "_head", lambda there: next(heads))

    assert _tail(log) == []
    assert (log.head, log.offset) == ("one", 0)


def test_who_may_not_read_the_log_is_told(
    log: ServerLog, lab: LabServer, settings: Any
) -> None:
    lab.person("dan").disconnect()
    settings.SITE_SECRET = lambda name, *, key: "dan"
    log.server.p4user = "dan"
    log.server.save()

    assert _tail(log) == []
    assert log.trouble.startswith("dan may not run p4 logtail: it needs super")


def test_any_worker_that_reaches_the_server_reads_it(log: ServerLog) -> None:
    start_worker("any", "perforce")

    sweep_server_logs(0)

    [job] = ProcrastinateJob.objects.filter(task_name="follow_server_log")
    assert (job.queue_name, job.args) == ("perforce", {"log_id": log.pk})
