"""Pages and API of the logs of Perforce servers."""

from __future__ import annotations

import datetime as dt
import html
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from procrastinate.contrib.django.models import ProcrastinateJob
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.lib import clocks
from provisioner.server_log.actions import server_log_save
from provisioner.server_log.following import follow
from provisioner.server_log.models import (
    LockSum,
    LogCommand,
    LogMessage,
    LogSum,
    LogTableUse,
    ServerLog,
)
from provisioner.server_log.partitions import ensure_days
from provisioner.server_log.sweeps import follow_server_log, sweep_server_logs
from provisioner.sites.models import PerforceServer
from tests.server_log.logs import MIXED, whole
from tests.support.factories import PerforceServerFactory
from tests.support.logs import a_sync_that_waited
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
    asked = {"is_followed": "on", "time_zone": "Europe/Berlin", "way": "host"}

    refused = browser.post(path, {**asked, "path": "logs/log"})
    saved = browser.post(path, {**asked, "path": "/p4/1/logs/log"}, follow=True)

    assert refused.status_code == 409
    assert b"with its whole path" in refused.content
    assert b"/p4/1/logs/log" in saved.content
    assert b"--queues p4d.commit" in saved.content
    [event] = Event.objects.filter(kind="server_log_changed")
    assert event.actor == admin
    assert event.data["path"] == {"before": "", "after": "/p4/1/logs/log"}


def test_messages_are_listed_for_administrators(
    read_log: ServerLog,
    admin: User,
    signed_in: Callable[[User], Client],
    api_as_admin: APIClient,
) -> None:
    # Whatever day it is.
    now = clocks.database_now()
    ensure_days([now.date()])
    LogMessage.objects.update(at=now)
    asked = {"kind": "error", "server": "commit"}

    page = signed_in(admin).get("/perforce/messages/", asked)
    table = signed_in(admin).get("/perforce/messages/", {**asked, "as": "csv"})
    [found] = api_as_admin.get("/api/v1/server-messages", asked).json()["results"]
    every = api_as_admin.get("/api/v1/server-messages").json()["results"]
    other = api_as_admin.get("/api/v1/server-messages", {"server": "edge"}).json()

    assert "no file(s) resolved." in page.text
    assert "148 active threads" not in page.text
    [_, row] = table.getvalue().decode().splitlines()
    assert "user-resolved" in row
    assert (found["kind"], found["operation"], found["pid"]) == (
        *("error", "user-resolved"),
        77,
    )
    assert {each["kind"] for each in every} == {"error", "threads", "pressure"}
    assert other["results"] == []


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


def test_settings_are_saved_when_nobody_stores_what_was_read(
    read_log: ServerLog, admin: User
) -> None:
    with CaptureQueriesContext(connection) as queries:
        server_log_save(by=admin, server=read_log.server, build_users="jenkins")

    locked = [
        each["sql"]
        for each in queries
        if 'FROM "server_log_serverlog"' in each["sql"] and "FOR NO KEY" in each["sql"]
    ]
    assert len(locked) == 1


def test_settings_are_refused_while_a_log_is_being_read(
    server: PerforceServer,
    admin: User,
    signed_in: Callable[[User], Client],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("provisioner.server_log.actions.LOCKED_WITHIN_MS", 100)
    worker = connection.copy()
    worker.set_autocommit(False)
    try:
        # Rows of this test are not seen by others, so that it locks all.
        with worker.cursor() as cursor:
            cursor.execute("LOCK TABLE server_log_serverlog IN EXCLUSIVE MODE")
        page = signed_in(admin).post(
            f"/perforce/logs/{server.pk}/", {"way": "logtail", "time_zone": "UTC"}
        )
    finally:
        worker.close()

    assert page.status_code == 409
    assert "The log is being read now." in page.text


@pytest.mark.django_db(transaction=True)
def test_no_worker_waits_for_a_log_that_is_being_read(read_log: ServerLog) -> None:
    read_log.refresh_from_db()
    worker = connection.copy()
    worker.set_autocommit(False)
    try:
        with worker.cursor() as cursor, connection.cursor() as ours:
            cursor.execute("SELECT id FROM server_log_serverlog FOR NO KEY UPDATE")
            ours.execute("SET lock_timeout = 500")
            follow_server_log(read_log.pk)
            ours.execute("RESET lock_timeout")
    finally:
        worker.close()

    assert ServerLog.objects.get().read_at == read_log.read_at


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
    failed = signed_in(admin).get("/perforce/commands/", {"has_failed": "1"})
    of_api = api_as_admin.get("/api/v1/server-commands", {"has_failed": "true"})

    assert b"8.4 s" in page.content
    assert b"user-have" not in page.content
    [_, row] = table.getvalue().decode().splitlines()
    assert row.startswith("user-sync,'-q //depot/main/...,ann,")
    assert [each["lapse_ms"] for each in found.json()["results"]] == [8390]
    assert failed.text.count('<span class="aside">failed</span>') == 1
    assert [each["pid"] for each in of_api.json()["results"]] == [77]
    # As if its file had been uploaded after later ones.
    last = LogCommand.objects.get(command="user-sync")
    last.started_at += dt.timedelta(milliseconds=1)
    ensure_days([last.started_at.date()])
    last.save()
    first = api_as_admin.get("/api/v1/server-commands", {"limit": "1"}).json()
    [then] = api_as_admin.get(first["next"]).json()["results"]
    others = LogCommand.objects.exclude(pk=last.pk)
    assert [each["command"] for each in first["results"]] == ["user-sync"]
    assert then["id"] == others.order_by("-pk")[0].pk


@pytest.mark.parametrize(
    "path",
    [
        "/perforce/load/?by=user&order=sent_mb&",
        "/perforce/load/locks/?by=table&",
        *("/perforce/load/polling/?", "/perforce/load/waits/?"),
        "/perforce/load/lapses/?user=ann&",
        "/perforce/load/uses/?table=db.have&",
        "/perforce/commands/?has_failed=1&at_least=1&q=ann&sort=-lapse_ms&page=2&",
        "/perforce/messages/?kind=error&",
    ],
)
def test_what_a_page_shows_is_asked_of_the_api(
    path: str,
    read_log: ServerLog,
    admin: User,
    signed_in: Callable[[User], Client],
) -> None:
    browser = signed_in(admin)
    page = browser.get(f"{path}server=commit&days=30&since=&until=&whose=").text

    [link] = re.findall('href="(/api/v1/server-[^"]*)"', page)
    address = html.unescape(link)
    asked = dict(parse_qsl(address.partition("?")[2]))
    given = dict(parse_qsl(path.partition("?")[2]))
    left_out = {"q", "sort", "page"}
    assert {name: asked[name] for name in given.keys() - left_out}.items() <= (
        given.items()
    )
    assert asked["server"] == "commit"
    assert not left_out & asked.keys()
    assert browser.get(address).status_code == 200


def test_numbers_of_a_log_lead_to_its_rows(
    read_log: ServerLog, admin: User, signed_in: Callable[[User], Client]
) -> None:
    ServerLog.objects.update(other_lines=3)
    page = html.unescape(signed_in(admin).get("/perforce/logs/").text)

    asked = "days=90&server=commit"
    assert f'<a href="/perforce/commands/?{asked}">4</a>' in page
    others = f"/perforce/messages/?kind=other&{asked}"
    assert f'<a href="{others}">3 lines of no known kind</a>' in page
    assert f'<a href="/perforce/messages/?kind=error&{asked}">1</a>' in page


def test_an_error_leads_to_its_command_and_back(
    read_log: ServerLog, admin: User, signed_in: Callable[[User], Client]
) -> None:
    failed = LogCommand.objects.get(has_failed=True)
    others = LogMessage.objects.exclude(pid=failed.pid)
    assert others.exists()
    browser = signed_in(admin)

    def rows(page: str, link: str) -> list[str]:
        found = re.search(f'<a href="([^"]*)">{link}</a>', page)
        assert found, page
        address = f"{html.unescape(found[1])}&as=csv"
        return browser.get(address).getvalue().decode().splitlines()[1:]

    [message] = rows(browser.get(f"/perforce/commands/{failed.pk}/").text, "Its errors")
    assert f",{failed.pid},commit" in message
    at = failed.started_at.date()
    listed = f"/perforce/messages/?since={at}T00:00Z&kind=error"
    [command] = rows(browser.get(listed).text, str(failed.pid))
    assert command.startswith(failed.command)


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

    page = signed_in(admin).get("/perforce/load/", {**asked, "more": "1"})
    table = signed_in(admin).get("/perforce/load/", {**asked, "as": "csv"})
    [found] = api_as_admin.get("/api/v1/server-load", asked).json()["results"]
    other = api_as_admin.get("/api/v1/server-load", {**asked, "server": "edge"})

    assert (found["name"], found["commands"], found["failed"]) == ("ann", 4, 1)
    assert (found["sent_mb"], found["longest_ms"]) == (1862, 8390)
    assert other.json()["results"] == []
    [_, row] = table.getvalue().decode().splitlines()
    assert row.startswith("ann,4,1,0,0,0,")
    assert 'user=ann">ann</a>' in page.text
    assert 'user=ann&amp;has_failed=1">1 failed</a>' in page.text
    held, waited = page.text.split("Waited for locks longest", 1)
    assert "<code>clients</code>" in held
    assert "<code>db.have</code>" in waited


def test_locks_come_once_the_page_of_the_load_is_there(
    read_log: ServerLog, admin: User, signed_in: Callable[[User], Client]
) -> None:
    LockSum.objects.filter(span="hour").update(at=clocks.database_now())
    browser = signed_in(admin)

    page = browser.get("/perforce/load/", {"server": "commit"}).text
    part = browser.get(
        "/perforce/load/",
        {"server": "commit", "more": "1"},
        headers={"HX-Request": "true"},
    ).text

    assert 'hx-get="?server=commit&amp;more=1"' in page
    assert '<a href="?server=commit&amp;more=1#locks">Locks of tables</a>' in page
    assert "Waited for locks longest" not in page
    assert "<code>clients</code>" in part
    assert "Waited for locks longest" in part
    assert "more=1" not in part
    assert "<html" not in part


def test_the_server_whose_log_was_read_last_comes_first(
    read_log: ServerLog, admin: User, signed_in: Callable[[User], Client]
) -> None:
    PerforceServerFactory.create(name="builds")

    page = signed_in(admin).get("/perforce/load/waits/")

    assert page.context["server"] == read_log.server
    assert f'<option value="{read_log.server.name}" selected>' in page.text


def test_waits_are_not_denied_where_the_log_does_not_tell_for_whom(
    server: PerforceServer, admin: User, signed_in: Callable[[User], Client]
) -> None:
    sync = a_sync_that_waited(server)
    LogTableUse.objects.exclude(command_id=sync.pk).delete()

    page = signed_in(admin).get("/perforce/load/waits/", {"server": "commit"})

    assert "For 1 of them the log does not say who held the lock." in page.text
    assert "Nobody waited" not in page.text


def test_who_waited_for_whom_is_drawn_and_told_to_scripts(
    server: PerforceServer,
    admin: User,
    signed_in: Callable[[User], Client],
    api_as_admin: APIClient,
    tmp_path: Path,
    settings: Any,
) -> None:
    settings.SERVER_LOG_DAYS = 20_000
    waits = "---   total lock wait+held read/write"
    held = whole(
        1, "user-files", "--- db.rev", f"{waits} 0ms+9000ms/0ms+0ms", lapse="9"
    )
    written = whole(
        *(2, "dm-CommitSubmit", "--- db.rev", f"{waits} 0ms+0ms/8000ms+10ms"),
        lapse="8",
        second=1,
    )
    read = whole(
        *(3, "user-sync", "--- db.rev", f"{waits} 7000ms+1ms/0ms+0ms"),
        lapse="7",
        second=2,
    )
    path = tmp_path / "log"
    path.write_text(held + written + read + whole(4, "user-info", second=9))
    follow(ServerLog.objects.create(server=server, path=str(path)), for_seconds=60)
    asked = {
        "server": "commit",
        "since": "2026-11-23T08:30:00Z",
        "until": "2026-11-23T09:30:00Z",
    }

    User.objects.filter(pk=admin.pk).update(time_zone="Asia/Tokyo")
    tokyo = {"since": "2026-11-23T17:30", "until": "2026-11-23T18:30"}
    page = signed_in(admin).get("/perforce/load/waits/", {**asked, **tokyo})
    table = signed_in(admin).get("/perforce/load/waits/", {**asked, "as": "csv"})
    answer = api_as_admin.get("/api/v1/server-lock-waits", asked)
    elsewhere = signed_in(admin).get("/perforce/load/waits/", {"server": "commit"})

    text = page.content.decode()
    assert "<code>user-files</code></a> of ann held <code>db.rev</code>" in text
    assert "2 commands of 1 person or account waited 15,000 ms" in text
    assert "reads waited behind that write" in text
    assert text.count("<rect") == 3
    [begun] = re.findall(r"9,000 ms from ([0-9:]+)", text)
    assert f"user-files of ann at {begun}, held 9,000 ms" in text
    first, second = answer.json()["results"]
    assert first["waiter"]["command"] == "dm-CommitSubmit"
    assert (second["waiter"]["command"], second["through"]["command"]) == (
        *("user-sync", "dm-CommitSubmit"),
    )
    assert {each["by"]["command"] for each in (first, second)} == {"user-files"}
    assert len(table.getvalue().decode().splitlines()) == 3
    assert "Nobody waited 100 ms or more" in elsewhere.content.decode()
