"""What runs at a Perforce server, and the end of one of its processes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from P4 import P4, P4Exception
from procrastinate.contrib.django.models import ProcrastinateJob
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.gateways.perforce.types import ServerProcess
from provisioner.insight.actions import process_end
from provisioner.insight.models import Process, ProcessEnding, ProcessReading
from provisioner.insight.reading import row_of
from provisioner.insight.refusals import ProcessOfTheServer
from provisioner.insight.sweeps import GIVEN_UP_AFTER, end_process, read_server
from provisioner.lib import clocks
from provisioner.sites.models import PerforceServer
from tests.support.factories import PerforceServerFactory, ProcessFactory
from tests.support.lab_perforce import LabServer, eventually, lab_server, workspace

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    """A server that shows its processes, and ends young ones too."""
    directory = tmp_path_factory.mktemp("insight")
    with lab_server(directory) as server:
        workspace(server, directory, name="ws", depot="//depot").add({"f": "x\n"})
        admin = server.connect(client="ws")
        admin.run("configure", "set", "monitor=1")
        admin.run("configure", "set", "db.monitor.minruntime=0")
        admin.disconnect()
        yield server


@pytest.fixture
def server(lab: LabServer, settings: Any) -> PerforceServer:
    secrets = {"P4PASSWD": lab.password}
    settings.SITE_SECRET = lambda name, *, key: secrets[name]
    port = f"127.0.0.1:{lab.port}"
    return PerforceServerFactory.create(name="lab", p4port=port)


@contextmanager
def waiting(lab: LabServer) -> Iterator[tuple[P4, Future[Any]]]:
    """A flush that waits for a lock until it is ended, or until here."""
    p4 = lab.connect(client="ws")
    faults = lab.root / "faults.json"
    faults.write_text('{"held_locks": {"db.have": 60}}')
    with ThreadPoolExecutor(1) as pool:
        try:
            yield p4, pool.submit(p4.run, "flush", "-f")
        finally:
            faults.write_text("{}")


def read(server: PerforceServer) -> Process:
    """Read the server until its flush is there, and return that."""

    def is_there() -> bool:
        read_server(server.pk)
        return Process.objects.filter(command="flush").exists()

    eventually(is_there)
    return Process.objects.get(command="flush")


def requested(process: Process, *, by: User) -> ProcessEnding:
    ending = process_end(by=by, process=process)
    ProcrastinateJob.objects.all().delete()
    return ending


def test_processes_are_read_as_they_are(lab: LabServer, server: PerforceServer) -> None:
    gone = ProcessFactory.create(server=server, number=1)

    with waiting(lab):
        process = read(server)
        first = process.pk
        again = read(server)

    assert (process.user, process.client) == ("cloneyard", "ws")
    assert (process.state, process.arguments) == ("R", "-f")
    assert (process.host, again.pk) == ("127.0.0.1", first)
    assert not Process.objects.filter(pk=gone.pk).exists()
    assert not Process.objects.filter(command="monitor").exists()


def test_a_process_is_ended_and_no_other(
    lab: LabServer, server: PerforceServer, admin: User
) -> None:
    other = lab.connect(client="ws")
    with waiting(lab) as (p4, flush):
        ending = requested(read(server), by=admin)
        assert process_end(by=admin, process=Process.objects.get()) == ending

        end_process(ending.pk)
        end_process(ending.pk)  # as after a worker was killed

        with pytest.raises(P4Exception, match="monitor terminate"):
            flush.result(timeout=60)
        assert p4.messages[0].msgid == 7500
    assert other.run("info")

    end_process(ending.pk)

    ending.refresh_from_db()
    assert (ending.state, ending.message) == ("ended", "It no longer runs.")
    events = Event.objects.filter(kind__startswith="process_").order_by("pk")
    assert [event.kind for event in events] == [
        "process_end_requested",
        "process_ended",
    ]
    assert {event.actor for event in events} == {admin}
    end_process(ending.pk)
    assert Event.objects.filter(kind="process_ended").count() == 1


@pytest.mark.parametrize(
    "was",
    [{"command": "sync"}, {"user": "bob"}, {"started_at": dt.timedelta(minutes=1)}],
)
def test_what_has_its_number_by_then_goes_on(
    was: dict[str, Any], lab: LabServer, server: PerforceServer, admin: User
) -> None:
    with waiting(lab) as (_, flush):
        process = read(server)
        if "started_at" in was:
            was = {"started_at": process.started_at - was["started_at"]}
        Process.objects.filter(pk=process.pk).update(**was)
        ending = requested(Process.objects.get(pk=process.pk), by=admin)

        end_process(ending.pk)

        ending.refresh_from_db()
        assert ending.state == ProcessEnding.State.ENDED
        assert not flush.done()
        [still] = [p for p in [read(server)] if p.number == process.number]
        assert still.state == "R"


def test_a_young_process_is_ended_later(
    lab: LabServer, server: PerforceServer, admin: User
) -> None:
    p4 = lab.connect(client="ws")
    p4.run("configure", "set", "db.monitor.minruntime=120")
    try:
        with waiting(lab):
            ending = requested(read(server), by=admin)
            end_process(ending.pk)
            ending.refresh_from_db()
            assert ending.state == ProcessEnding.State.REQUESTED
            assert "runtime < 120 seconds" in ending.message
            assert ProcrastinateJob.objects.filter(task_name="end_process").exists()

            requested_at = ending.requested_at - GIVEN_UP_AFTER
            ProcessEnding.objects.update(requested_at=requested_at)
            end_process(ending.pk)
    finally:
        p4.run("configure", "set", "db.monitor.minruntime=0")
    ending.refresh_from_db()
    assert ending.state == ProcessEnding.State.FAILED
    assert ending.message.startswith("It did not end within 20 minutes.")


def test_without_p4_monitor_the_page_says_how_to_switch_it_on(
    lab: LabServer, server: PerforceServer, as_admin: Client
) -> None:
    process = ProcessFactory.create(server=server)
    p4 = lab.connect(client="ws")
    p4.run("configure", "set", "monitor=0")
    try:
        read_server(server.pk)
    finally:
        p4.run("configure", "set", "monitor=1")

    page = as_admin.get(reverse("process-list")).text
    assert "The processes of lab could not be read." in page
    assert "p4 configure set monitor=1" in page
    assert Process.objects.filter(pk=process.pk).exists()
    read_server(server.pk)
    assert ProcessReading.objects.get().trouble == ""


def test_a_server_that_does_not_answer_keeps_the_request(admin: User) -> None:
    ending = requested(ProcessFactory.create(), by=admin)

    end_process(ending.pk)

    ending.refresh_from_db()
    assert ending.state == ProcessEnding.State.REQUESTED
    assert "cannot be reached" in ending.message


@pytest.mark.parametrize("as_it_is", [{"command": "pull"}, {"state": "B"}])
def test_the_servers_own_are_not_ended(
    as_it_is: dict[str, str], admin: User, as_admin: Client
) -> None:
    process = ProcessFactory.create(**as_it_is)

    with pytest.raises(ProcessOfTheServer):
        process_end(by=admin, process=process)

    page = as_admin.get(reverse("process-end", args=[process.pk])).text
    assert "belongs to the server itself" in page
    assert "End it" not in page


def test_an_administrator_finds_and_ends_one(as_admin: Client) -> None:
    long = ProcessFactory.create(client="bob-long")
    idle = ProcessFactory.create(client="idler", state="I", command="IDLE")
    page = as_admin.get(reverse("process-list"), {"state": "R", "at_least": "600"}).text
    assert long.client in page
    assert idle.client not in page
    end = reverse("process-end", args=[long.pk])
    assert end in page
    assert "bob-long" in as_admin.get(end).text

    after = as_admin.post(end, follow=True).text

    assert f"A worker ends sync of alice ({long.number})" in after
    assert "Requests to end a process" in after


def test_scripts_list_and_end_processes(api_as_admin: APIClient) -> None:
    process = ProcessFactory.create()
    ProcessFactory.create(user="bob")

    listed = api_as_admin.get("/api/v1/processes", {"user": "alice", "at_least": "60"})
    [found] = listed.json()["results"]
    assert (found["id"], found["number"]) == (process.pk, process.number)

    ended = api_as_admin.post(f"/api/v1/processes/{process.pk}/end")

    assert (ended.status_code, ended.json()["state"]) == (202, "requested")
    assert ProcessEnding.objects.get().requested_by.username == "admin"


def test_arguments_that_may_be_secret_are_not_kept(server: PerforceServer) -> None:
    one = ServerProcess(
        number=7,
        state="R",
        user="alice",
        program="p4",
        client="ws",
        host="10.0.0.1",
        command="passwd",
        arguments="-O old -P new",
        seconds=3,
    )

    assert row_of(server, one, now=clocks.database_now()).arguments == "***"
