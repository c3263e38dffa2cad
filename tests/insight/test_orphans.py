"""Orphaned processes: which count, and how they are ended."""

from __future__ import annotations

import datetime as dt
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from procrastinate.contrib.django.models import ProcrastinateJob
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.gateways.hosts.presence import gone_hosts
from provisioner.insight.actions import orphan_rule_save, orphans_end
from provisioner.insight.models import (
    OrphanRule,
    Process,
    ProcessEnding,
    ProcessReading,
)
from provisioner.insight.orphans import find_gone_hosts, is_orphan
from provisioner.insight.sweeps import (
    ORPHANS_AT_MOST,
    end_process,
    read_server,
    sweep_orphans,
)
from provisioner.lib.refusals import InvalidRequest, NotAllowed
from provisioner.sites.models import PerforceServer, ServerKind
from tests.support.factories import PerforceServerFactory, ProcessFactory
from tests.support.lab_perforce import LabServer, eventually, lab_server, workspace

pytestmark = pytest.mark.django_db

OLD = dt.timedelta(days=9)


@pytest.fixture
def server() -> PerforceServer:
    return PerforceServerFactory.create(name="commit")


def old(server: PerforceServer, **fields: Any) -> Process:
    usual = {"server": server, "started_at": timezone.now() - OLD}
    process: Process = ProcessFactory.create(**{**usual, **fields})
    return process


@pytest.mark.parametrize(
    ("fields", "rule", "counts"),
    [
        ({}, {}, True),
        ({"state": "P"}, {}, True),
        ({"state": "I", "command": "IDLE"}, {}, True),
        ({}, {"command_hours": None}, False),
        ({}, {"command_hours": 9 * 24 + 1}, False),
        ({"state": "I", "command": "IDLE"}, {"idle_hours": None}, False),
        ({"state": "I", "command": "IDLE"}, {"idle_hours": 9 * 24 + 1}, False),
        ({"state": "T"}, {}, False),
        ({"state": "B"}, {}, False),
        ({"state": "F"}, {}, False),
        ({"command": "pull"}, {}, False),
        ({"command": "rmt-Journal"}, {}, False),
        ({"command": "ldapsync"}, {}, False),
        ({"user": "cloneyard", "program": "cloneyard [PY3.11]"}, {}, False),
        ({"user": "cloneyard", "program": "p4"}, {}, True),
        ({}, {"only_gone_hosts": True}, False),
        ({"gone_host": "10.5.70.45"}, {"only_gone_hosts": True}, True),
        # Its number and its row are another process's by now.
        ({"gone_host": "10.9.9.9"}, {"only_gone_hosts": True}, False),
        ({"host": "", "gone_host": ""}, {"only_gone_hosts": True}, False),
    ],
)
def test_state_age_and_host_decide_and_never_what_the_server_needs(
    fields: dict[str, Any], rule: dict[str, Any], counts: bool, server: PerforceServer
) -> None:
    PerforceServer.objects.update(p4user="cloneyard")
    server.refresh_from_db()
    process = old(server, **fields)

    by = OrphanRule(server=server, **rule)

    assert is_orphan(process, by, now=timezone.now()) == counts


def test_only_hosts_without_a_name_or_route_are_gone() -> None:
    named = ["127.0.0.1", "no-such-host.invalid", "a b", "127.0.0.1/10.5.53.61", ""]

    assert gone_hosts(named) == {"no-such-host.invalid"}


def test_gone_hosts_of_old_processes_are_noted_and_forgotten(
    server: PerforceServer,
) -> None:
    gone = old(server, host="no-such-host.invalid")
    here = old(server, host="127.0.0.1", gone_host="127.0.0.1")
    young = ProcessFactory.create(server=server, host="nor-this-one.invalid")
    rule = OrphanRule.objects.create(server=server, only_gone_hosts=True)

    find_gone_hosts(server)

    found = dict(Process.objects.values_list("pk", "gone_host"))
    assert found == {gone.pk: gone.host, here.pk: "", young.pk: ""}

    rule.only_gone_hosts = False
    rule.save()
    find_gone_hosts(PerforceServer.objects.get(pk=server.pk))
    assert set(Process.objects.values_list("gone_host", flat=True)) == {""}


def test_a_rule_is_changed_by_administrators_and_recorded(
    server: PerforceServer, admin: User, alice: User
) -> None:
    with pytest.raises(NotAllowed):
        orphan_rule_save(by=alice, server=server, is_automatic=True)
    with pytest.raises(NotAllowed):
        orphans_end(by=alice, server=server)
    with pytest.raises(InvalidRequest, match="1 to 10,000 hours"):
        orphan_rule_save(by=admin, server=server, idle_hours=0)

    rule = orphan_rule_save(by=admin, server=server, idle_hours=None)
    orphan_rule_save(by=admin, server=server, idle_hours=None)

    assert (rule.command_hours, rule.idle_hours) == (72, None)
    [event] = Event.objects.filter(kind="orphan_rule_changed")
    assert event.actor == admin


def test_what_the_page_showed_is_ended_and_what_came_since_is_not(
    server: PerforceServer, as_admin: Client
) -> None:
    shown, since, young = old(server), old(server), ProcessFactory.create(server=server)
    pull = old(server, command="pull")
    page = as_admin.get(reverse("orphan-list")).text
    assert "Commands of 72 hours and idle connections of 72 hours count." in page
    assert str(young.number) not in page
    assert str(pull.number) not in page

    end = reverse("orphan-end", args=[server.pk])
    posted = {"process": [shown.pk, young.pk, pull.pk, "x"]}
    after = as_admin.post(end, posted, follow=True).text

    assert "A worker ends 1 of 3." in after
    assert [each.number for each in ProcessEnding.objects.all()] == [shown.number]
    assert since.number != shown.number


def test_the_rule_is_changed_on_its_page(
    server: PerforceServer, as_admin: Client
) -> None:
    old(server)
    address = reverse("orphan-rule", args=[server.pk])
    assert "sync (" in as_admin.get(address).text

    wrong = as_admin.post(address, {"command_hours": "0", "idle_hours": "x"})
    saved = {"command_hours": "", "idle_hours": "5", "is_automatic": "on"}
    after = as_admin.post(address, saved, follow=True).text

    assert wrong.status_code == 422
    assert "Idle connections of 5 hours count. Ended automatically." in after
    assert "No process counts as an orphan" in after


def test_scripts_change_rules_and_end_orphans(
    server: PerforceServer, api_as_admin: APIClient
) -> None:
    process = old(server)
    address = f"/api/v1/orphan-rules/{server.pk}"

    changed = api_as_admin.patch(address, {"idle_hours": None}, format="json").json()
    [listed] = api_as_admin.get("/api/v1/orphan-rules").json()["results"]
    ended = api_as_admin.post(f"{address}/end")

    assert changed == listed
    assert (listed["server"], listed["idle_hours"]) == ("commit", None)
    assert [each["id"] for each in listed["orphans"]] == [process.pk]
    assert ended.status_code == 202
    assert [each["number"] for each in ended.json()["endings"]] == [process.number]
    # It is to be ended already.
    assert api_as_admin.post(f"{address}/end").json() == {"endings": []}


def test_orphans_end_by_themselves_only_where_that_is_switched_on(
    server: PerforceServer, admin: User
) -> None:
    for _ in range(ORPHANS_AT_MOST + 1):
        old(server)
    old(PerforceServerFactory.create(name="other"))
    reading = ProcessReading.objects.create(server=server, read_at=timezone.now())

    sweep_orphans(timestamp=0)
    assert not ProcessEnding.objects.exists()

    orphan_rule_save(by=admin, server=server, is_automatic=True)
    ProcessReading.objects.update(read_at=timezone.now() - dt.timedelta(hours=1))
    sweep_orphans(timestamp=0)
    assert not ProcessEnding.objects.exists()

    ProcessReading.objects.filter(pk=reading.pk).update(read_at=timezone.now())
    sweep_orphans(timestamp=0)
    endings = ProcessEnding.objects.all()
    assert {each.server_id for each in endings} == {server.pk}
    assert len(endings) == ORPHANS_AT_MOST
    assert {each.requested_by.username for each in endings} == {"cloneyard.system"}
    sweep_orphans(timestamp=0)
    assert ProcessEnding.objects.count() == ORPHANS_AT_MOST + 1


def test_what_could_not_be_ended_is_not_tried_by_itself_again_the_same_day(
    server: PerforceServer, admin: User
) -> None:
    """Each request is in the audit log: an account without the right filled it."""
    process = old(server)
    ProcessReading.objects.create(server=server, read_at=timezone.now())
    orphan_rule_save(by=admin, server=server, is_automatic=True)
    sweep_orphans(timestamp=0)
    ProcessEnding.objects.update(state=ProcessEnding.State.FAILED)

    sweep_orphans(timestamp=0)
    assert ProcessEnding.objects.count() == 1
    # Another process has its number by now.
    Process.objects.update(command="verify")
    sweep_orphans(timestamp=0)
    assert ProcessEnding.objects.count() == 2
    ProcessEnding.objects.update(state=ProcessEnding.State.FAILED)
    assert len(orphans_end(by=admin, server=server, process_ids=[process.pk])) == 1
    ProcessEnding.objects.update(
        state=ProcessEnding.State.FAILED,
        requested_at=timezone.now() - dt.timedelta(days=1),
    )
    sweep_orphans(timestamp=0)
    assert ProcessEnding.objects.count() == 4


def test_a_proxy_has_no_rule_as_its_processes_are_those_of_its_server(
    as_admin: Client, api_as_admin: APIClient
) -> None:
    commit = PerforceServerFactory.create()
    proxy = PerforceServerFactory.create(kind=ServerKind.PROXY, upstream=commit)
    old(proxy)
    ProcessReading.objects.create(server=proxy, read_at=timezone.now())
    # It was an edge server before.
    OrphanRule.objects.create(server=proxy, is_automatic=True)

    sweep_orphans(timestamp=0)

    address = f"/api/v1/orphan-rules/{proxy.pk}"
    asked = [
        as_admin.get(reverse("orphan-rule", args=[proxy.pk])),
        as_admin.post(reverse("orphan-end", args=[proxy.pk])),
        api_as_admin.patch(address, {"is_automatic": True}, format="json"),
        api_as_admin.post(f"{address}/end"),
    ]
    assert [each.status_code for each in asked] == [404] * 4
    assert not ProcessEnding.objects.exists()


# --- a client that somebody has stopped

CLIENT = """
import sys
from P4 import P4
p4 = P4()
p4.port, p4.user, p4.password, p4.client = sys.argv[1:]
p4.prog, p4.charset, p4.host = "stopped", "none", "lab-host"
p4.connect()
p4.run("sync", "-f")
"""


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[LabServer]:
    with lab_server(tmp_path) as running:
        ws = workspace(running, tmp_path, name="ws", depot="//depot")
        ws.add({f"f{number}": os.urandom(10_000_000) for number in range(4)})
        admin = running.connect(client="ws")
        for setting in ("monitor=2", "db.monitor.minruntime=0"):
            admin.run("configure", "set", setting)
        yield running


def age(lab: LabServer, process: Process) -> None:
    """Let the lab say that a process began nine days ago."""
    path = lab.root / "monitor" / f"{process.number}.json"
    row = {**json.loads(path.read_text()), "started": time.time() - OLD.total_seconds()}
    path.with_suffix(".new").write_text(json.dumps(row))
    path.with_suffix(".new").replace(path)


def test_a_stopped_client_is_ended_and_no_other(
    lab: LabServer, server: PerforceServer, admin: User, settings: Any
) -> None:
    settings.SITE_SECRET = lambda name, *, key: lab.password
    PerforceServer.objects.update(p4port=f"127.0.0.1:{lab.port}", p4user="cloneyard")
    server.refresh_from_db()
    idle = lab.connect(client="ws")
    idle.run("info")
    faults = lab.root / "faults.json"
    faults.write_text('{"held_locks": {"db.have": 90}}')
    command = [
        *(sys.executable, "-c", CLIENT, f"127.0.0.1:{lab.port}"),
        *("cloneyard", lab.password, "ws"),
    ]
    client = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:

        def is_there() -> bool:
            read_server(server.pk)
            return Process.objects.filter(command="sync").exists()

        eventually(is_there, within_seconds=60)
        os.kill(client.pid, signal.SIGSTOP)
        faults.write_text("{}")
        age(lab, Process.objects.get(command="sync"))
        read_server(server.pk)
        stopped = Process.objects.get(command="sync")
        assert Process.objects.filter(state="I").exists()

        [ending] = orphans_end(by=admin, server=server)
        ProcrastinateJob.objects.all().delete()
        assert ending.number == stopped.number

        def is_ended() -> bool:
            end_process(ending.pk)
            ending.refresh_from_db()
            return ending.state == ProcessEnding.State.ENDED

        eventually(is_ended, within_seconds=60)
        os.kill(client.pid, signal.SIGCONT)
        _, said = client.communicate(timeout=60)
    finally:
        client.kill()
    assert "terminated by 'p4 monitor terminate'" in said
    assert idle.run("info")
    events = Event.objects.filter(kind__startswith="process_").order_by("pk")
    kinds = [event.kind for event in events]
    assert kinds == ["process_end_requested", "process_ended"]
