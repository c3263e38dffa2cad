"""Advice about clients: read without a use of them, judged by a rule, shown."""

from __future__ import annotations

import datetime as dt
import re
import time
from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.engine.loads import Load, OthersCommand, record_load
from provisioner.insight import actions
from provisioner.insight.client_advice import advised_clients, with_findings
from provisioner.insight.clients import (
    MOST_OPENED,
    note_syncs,
    read_clients,
    read_views,
    whole_lines_of,
)
from provisioner.insight.models import AdviceRule, ClientListing, ListedClient, Process
from provisioner.insight.queries import servers_to_list
from provisioner.insight.sweeps import (
    CLIENTS_EVERY,
    read_server,
    read_server_clients,
)
from provisioner.lib.refusals import InvalidRequest, NotAllowed
from provisioner.server_log.models import LogCommand, LogSum, ServerLog
from provisioner.sites.models import PerforceServer
from tests.support.factories import PerforceServerFactory
from tests.support.lab_perforce import LabServer, lab_server, workspace
from tests.support.logs import a_sync_that_waited


def ago(**span: float) -> dt.datetime:
    return timezone.now() - dt.timedelta(**span)


# --- read from a server


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    directory = tmp_path_factory.mktemp("clients")
    with lab_server(directory) as running:
        ws = workspace(running, directory, name="ws", depot="//depot")
        ws.add({"f": "x\n", "g": "y\n"})
        ws.p4.run("edit", "f")
        ws.p4.run("lock", "f")
        ours = "made by us\ncloneyard:v1:workspace=t"
        workspace(running, directory, name="cy", depot="//depot/a", Description=ours)
        workspace(running, directory, name="tight", depot="//depot/main")
        # Its files are opened at its own server, which this one does not tell.
        admin = running.connect(client="ws")
        form = admin.fetch_client("elsewhere")
        admin.save_client({**form, "ServerID": "edge-2"})
        running.connect(client="ws").run("configure", "set", "monitor=1")
        yield running


@pytest.fixture
def server(lab: LabServer, settings: Any, db: None) -> PerforceServer:
    settings.SITE_SECRET = lambda name, *, key: lab.password
    return PerforceServerFactory.create(name="lab", p4port=f"127.0.0.1:{lab.port}")


def dates(lab: LabServer) -> dict[str, tuple[str, str]]:
    listed = lab.connect(client="neutral").run("clients")
    return {each["client"]: (each["Access"], each["Update"]) for each in listed}


def interval(lab: LabServer, seconds: int) -> None:
    p4 = lab.connect(client="neutral")
    p4.run("configure", "set", f"dm.domain.accessupdate={seconds}")


def in_use(server: PerforceServer, *names: str) -> None:
    for number, name in enumerate(names):
        Process.objects.create(
            server=server,
            number=number,
            state=Process.State.RUNNING,
            user="ann",
            client=name,
            command="sync",
            started_at=timezone.now(),
        )


def test_clients_are_listed_without_those_of_ours(
    lab: LabServer, server: PerforceServer
) -> None:
    read_clients(server)
    ListedClient.objects.filter(name="tight").update(view_read_at=ago(days=1))
    ListedClient.objects.create(server=server, name="gone")
    read_clients(server)  # as the day after

    ws, tight = ListedClient.objects.order_by("-name")
    assert (ws.name, ws.owner, ws.opened_files, ws.locked_files) == (
        *("ws", "cloneyard"),
        *(1, 1),
    )
    assert tight.view_read_at
    assert ClientListing.objects.get().opened_files == 1
    assert not servers_to_list(older_than=CLIENTS_EVERY).exists()


def test_no_date_of_a_client_moves_when_it_is_read(
    lab: LabServer, server: PerforceServer
) -> None:
    """Each use is noted at once here, and a form that is shown is one."""
    read_clients(server)
    in_use(server, "ws", "tight")
    interval(lab, 0)
    try:
        before = dates(lab)
        time.sleep(1.1)
        read_clients(server)
        assert read_views(server) == 0
        assert dates(lab) == before
        lab.connect(client="neutral").run("client", "-o", "ws")
        assert dates(lab)["ws"] != before["ws"]
    finally:
        interval(lab, 300)


def test_a_view_is_read_right_after_somebody_used_its_client(
    lab: LabServer, server: PerforceServer
) -> None:
    read_clients(server)
    in_use(server, "ws")
    before = dates(lab)
    time.sleep(1.1)

    assert read_views(server) == 1
    assert read_views(server) == 0  # it is known

    assert dates(lab) == before
    ws = ListedClient.objects.get(name="ws")
    assert ws.maps_whole_depot
    assert ws.whole_lines == ["//depot/... //ws/..."]
    assert not ListedClient.objects.get(name="tight").view_read_at


def test_a_refusal_is_said_and_what_was_read_stays(
    lab: LabServer, server: PerforceServer
) -> None:
    read_clients(server)
    lab.faults({"command": "opened", "error": "server is paused", "times": 1})

    read_server_clients(server.pk)

    assert ClientListing.objects.get().trouble
    assert ListedClient.objects.count() == 2
    assert list(servers_to_list(older_than=CLIENTS_EVERY)) == [server]


def test_nothing_is_read_while_others_wait(
    lab: LabServer, server: PerforceServer
) -> None:
    waiting = OthersCommand(user="ann", command="submit", seconds=9)
    load = Load(tables=("db.have",), commands=(waiting,))
    record_load(server.pk, load, now=timezone.now())
    ListedClient.objects.create(server=server, name="ws")
    in_use(server, "ws")

    read_server_clients(server.pk)
    read_server(server.pk)

    assert not ClientListing.objects.exists()
    assert not ListedClient.objects.get().view_read_at


# --- judged


@pytest.mark.parametrize(
    ("line", "is_whole"),
    [
        ("//depot/... //ws/...", True),
        ("//... //ws/...", True),
        ('"//my depot/..." "//ws/..."', True),
        ("+//depot/... //ws/...", True),
        ("-//depot/... //ws/...", False),
        ("//depot/main/... //ws/...", False),
        ("//depot/....txt //ws/....txt", False),
    ],
)
def test_a_view_of_a_whole_depot_is_told_from_a_tight_one(
    line: str, is_whole: bool
) -> None:
    assert whole_lines_of([line]) == ([line] if is_whole else [])


@pytest.fixture
def commit(db: None) -> PerforceServer:
    """A server with a client for each kind of advice, and one without any."""
    commit: PerforceServer = PerforceServerFactory.create(name="commit")
    long_ago: dict[str, Any] = {"accessed_at": ago(days=100)}
    clients: dict[str, dict[str, Any]] = {
        "all": {"maps_whole_depot": True, "whole_lines": ["//depot/... //all/..."]},
        "big": {"synced_files": 2_000_000, "synced_at": ago(days=1)},
        "held": {**long_ago, "opened_files": 3, "locked_files": 1},
        "kept": long_ago,
        "apart": {**long_ago, "kind": "partitioned"},
        "tight": {},
    }
    for name, facts in clients.items():
        ListedClient.objects.create(
            server=commit,
            name=name,
            owner="ann",
            **{"accessed_at": ago(days=2), **facts},
        )
    return commit


def advice(admin: User, **criteria: Any) -> dict[str, list[str]]:
    rows = with_findings(admin, advised_clients(admin, **criteria))
    return {row.client.name: [each.code for each in row.findings] for row in rows}


def test_each_kind_of_advice_finds_its_clients(
    commit: PerforceServer, admin: User, alice: User
) -> None:
    assert advice(admin) == {
        "all": ["whole-depot"],
        "big": ["large-sync"],
        "held": ["unused-opened"],
        "kept": ["unused-have-list"],
    }
    assert advice(admin, advice="large-sync") == {"big": ["large-sync"]}
    # Files of any client may be opened that were not counted.
    ClientListing.objects.create(server=commit, opened_files=MOST_OPENED)
    assert not advice(admin, advice="unused-have-list")
    assert not advised_clients(alice)


def test_the_rule_of_a_server_decides(commit: PerforceServer, admin: User) -> None:
    changed = {"unused_days": 200, "many_files": 3_000_000}
    for _ in range(2):
        actions.advice_rule_save(by=admin, server=commit, **changed)

    assert advice(admin) == {"all": ["whole-depot"]}
    assert Event.objects.filter(kind="advice_rule_changed").count() == 1


def test_a_name_is_no_command_of_its_own(commit: PerforceServer, admin: User) -> None:
    ListedClient.objects.filter(name="kept").update(name="a;reboot")

    [row] = with_findings(admin, advised_clients(admin, advice="unused-have-list"))

    assert "p4 unload -f -c 'a;reboot')" in row.findings[0].advice


def test_rules_without_sense_and_of_others_are_refused(
    commit: PerforceServer, admin: User, alice: User
) -> None:
    with pytest.raises(InvalidRequest):
        actions.advice_rule_save(by=admin, server=commit, unused_days=0)
    with pytest.raises(NotAllowed):
        actions.advice_rule_save(by=alice, server=commit, unused_days=9)
    assert not AdviceRule.objects.exists()


def test_the_log_tells_the_largest_sync(commit: PerforceServer, admin: User) -> None:
    sync = a_sync_that_waited(commit)
    ListedClient.objects.filter(name="tight").update(name=sync.client)
    LogCommand.objects.filter(pk=sync.pk).update(files_sent=150_000)
    LogSum.objects.filter(by="client", name=sync.client).update(files_sent=150_000)

    note_syncs(commit)
    note_syncs(commit)

    client = ListedClient.objects.get(name=sync.client)
    assert (client.synced_files, client.synced_at) == (150_000, sync.started_at)
    assert advice(admin, advice="large-sync").keys() == {"big", sync.client}


def test_a_client_leads_to_its_commands_and_its_largest_sync(
    commit: PerforceServer, admin_client: Client
) -> None:
    sync = a_sync_that_waited(commit)
    ListedClient.objects.filter(name="tight").update(name=sync.client)
    LogCommand.objects.filter(pk=sync.pk).update(files_sent=150_000)
    LogSum.objects.filter(by="client", name=sync.client).update(files_sent=150_000)
    note_syncs(commit)

    page = admin_client.get(reverse("advice-list"), {"q": sync.client}).text

    found = re.search('<a href="([^"]*)">Its largest sync</a>', page)
    assert found, page
    rows = admin_client.get(f"{unescape(found[1])}&as=csv").getvalue().decode()
    [_, row] = rows.splitlines()
    assert row.startswith(f"{sync.command},")
    assert f'days=90">{sync.client}</a>' in page
    ServerLog.objects.all().delete()
    without = admin_client.get(reverse("advice-list"), {"q": sync.client}).text
    assert f'days=90">{sync.client}</a>' not in without


# --- shown


def test_the_page_says_what_was_seen_and_what_to_do(
    commit: PerforceServer, admin_client: Client
) -> None:
    ClientListing.objects.create(server=commit, read_at=ago(hours=3))

    page = admin_client.get(reverse("advice-list")).text
    table = admin_client.get(reverse("advice-list"), {"as": "csv"}).getvalue().decode()

    for said in ("//depot/... //all/...", "2,000,000 files", "p4 unload -f -c kept"):
        assert said in page
        assert said in table
    assert "6 clients" in page


def test_the_rule_is_changed_on_its_page(
    commit: PerforceServer, admin_client: Client
) -> None:
    address = reverse("advice-rule", args=[commit.pk])
    sent = {"unused_days": 30, "many_files": 5, "many_protections": 0}

    refused = admin_client.post(address, sent)
    saved = admin_client.post(address, {**sent, "many_protections": 7})

    assert refused.status_code == 422
    assert saved.status_code == 302
    assert AdviceRule.objects.get().many_protections == 7


def test_programs_read_advice_and_change_the_rule(
    commit: PerforceServer, api_as_admin: APIClient
) -> None:
    query = {"server": "commit", "advice": "unused-opened"}
    [found] = api_as_admin.get("/api/v1/perforce-clients", query).json()["results"]
    address = f"/api/v1/advice-rules/{commit.pk}"
    changed = api_as_admin.patch(address, {"unused_days": 5}, format="json")
    [rule] = api_as_admin.get("/api/v1/advice-rules").json()["results"]

    assert found["name"] == "held"
    assert "3 opened files, 1 of them locked" in found["findings"][0]["saw"]
    assert changed.json() == rule
    assert rule["unused_days"] == 5
    assert api_as_admin.patch(address, {"many_files": 0}).status_code == 400
