"""Pages and API of the logs of Perforce servers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from procrastinate.contrib.django.models import ProcrastinateJob
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.lib import clocks
from provisioner.server_log.following import follow
from provisioner.server_log.models import LockSum, LogCommand, LogSum, ServerLog
from provisioner.server_log.partitions import ensure_days
from provisioner.server_log.sweeps import follow_server_log, sweep_server_logs
from provisioner.sites.models import PerforceServer
from tests.server_log.logs import MIXED
from tests.support.factories import PerforceServerFactory
from tests.support.workers import start_worker

pytestmark = pytest.mark.django_db


@pytest.fixture
def server() -> PerforceServer:
    return PerforceServerFactory.create(name="commit")


@pytest.fixture
def read_log(server: PerforceServer, tmp_path: Path, settings: Any) -> ServerLog:
    settings.SERVER_LOG_DAYS = 20_000
    path = tmp_path / "log"
    path.write_bytes(MIXED.encode("utf-8", "surrogateescape"))
    log = ServerLog.objects.create(server=server, path=str(path))
    follow(log, for_seconds=60)
    return log


def test_the_log_of_a_server_is_set_up_on_its_page(
    server: PerforceServer, admin: User, signed_in: Callable[[User], Client]
) -> None:
    browser, path = signed_in(admin), f"/perforce/logs/{server.pk}/"
    asked = {"is_followed": "on", "time_zone": "Europe/Berlin"}

    refused = browser.post(path, {**asked, "path": "logs/log"})
    saved = browser.post(path, {**asked, "path": "/p4/1/logs/log"}, follow=True)

    assert refused.status_code == 409
    assert b"with its whole path" in refused.content
    assert b"/p4/1/logs/log" in saved.content
    assert b"--queues p4d.commit" in saved.content
    [event] = Event.objects.filter(kind="server_log_changed")
    assert event.actor == admin
    assert event.data["path"] == {"before": "", "after": "/p4/1/logs/log"}


def test_another_file_is_read_from_its_begin(
    read_log: ServerLog, api_as_admin: APIClient
) -> None:
    api = api_as_admin

    wrong = api.patch(
        f"/api/v1/server-logs/{read_log.server_id}", {"time_zone": "Mars"}
    )
    changed = api.patch(f"/api/v1/server-logs/{read_log.server_id}", {"path": "/new"})

    assert (wrong.status_code, changed.status_code) == (400, 200)
    assert changed.json()["commands"] == 4
    read_log.refresh_from_db()
    assert (read_log.head, read_log.offset) == ("", 0)


def test_commands_are_listed_for_administrators(
    read_log: ServerLog,
    admin: User,
    signed_in: Callable[[User], Client],
    api_as_admin: APIClient,
) -> None:
    # Whatever day it is.
    now = clocks.database_now()
    ensure_days([now.date()])
    LogCommand.objects.update(started_at=now)
    slow = {"at_least": "1"}
    page = signed_in(admin).get("/perforce/commands/", slow)
    table = signed_in(admin).get("/perforce/commands/", {**slow, "as": "csv"})
    found = api_as_admin.get(
        "/api/v1/server-commands", {"days": "3650", "command": "user-sync"}
    )

    assert b"8,390 ms" in page.content
    assert b"user-have" not in page.content
    [_, row] = table.getvalue().decode().splitlines()
    assert row.startswith("user-sync,'-q //depot/main/...,ann,")
    assert [each["lapse_ms"] for each in found.json()["results"]] == [8390]


def test_the_worker_on_the_servers_host_reads_its_log(
    read_log: ServerLog, server: PerforceServer
) -> None:
    sweep_server_logs(0)
    assert not ProcrastinateJob.objects.filter(task_name="follow_server_log").exists()
    start_worker("p4d1", "p4d.commit")

    sweep_server_logs(0)

    [job] = ProcrastinateJob.objects.filter(task_name="follow_server_log")
    assert (job.queue_name, job.args) == ("p4d.commit", {"log_id": read_log.pk})
    follow_server_log(read_log.pk)
    read_log.refresh_from_db()
    assert read_log.commands == 4


def test_the_load_is_told_from_sums_and_leads_to_the_commands(
    read_log: ServerLog,
    admin: User,
    signed_in: Callable[[User], Client],
    api_as_admin: APIClient,
) -> None:
    # Whatever day it is.
    hour = clocks.database_now().replace(minute=0, second=0, microsecond=0)
    for model in (LogSum, LockSum):
        model.objects.filter(span="hour").update(at=hour)
    LogCommand.objects.all().delete()
    asked = {"by": "user", "order": "sent_mb", "server": "commit"}

    page = signed_in(admin).get("/perforce/load/", asked)
    table = signed_in(admin).get("/perforce/load/", {**asked, "as": "csv"})
    [found] = api_as_admin.get("/api/v1/server-load", asked).json()["results"]
    other = api_as_admin.get("/api/v1/server-load", {**asked, "server": "edge"})

    assert (found["name"], found["commands"], found["failed"]) == ("ann", 4, 1)
    assert (found["sent_mb"], found["longest_ms"]) == (1862, 8390)
    assert other.json()["results"] == []
    [_, row] = table.getvalue().decode().splitlines()
    assert row.startswith("ann,4,1,0,0,0,")
    assert 'user=ann">ann</a>' in page.text
    held, waited = page.text.split("Waited for locks longest")
    assert "<code>clients</code>" in held
    assert "<code>db.have</code>" in waited
