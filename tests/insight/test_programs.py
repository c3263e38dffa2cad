"""Who uses which program in which release, and what would stop old ones."""

from __future__ import annotations

import datetime as dt
import secrets
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from provisioner.insight.models import ProgramUse
from provisioner.insight.programs import (
    LONGEST_NAME,
    program_of,
    proposals,
    record_programs,
    record_programs_of_log,
)
from provisioner.server_log.models import ServerLog
from provisioner.server_log.partitions import ensure_days
from provisioner.sites.models import PerforceServer
from tests.support.factories import (
    LogCommandFactory,
    PerforceServerFactory,
    ProcessFactory,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def server() -> PerforceServer:
    """A server at which two releases, ours and replication were seen."""
    server: PerforceServer = PerforceServerFactory.create(p4user="cloneyard")
    seen = [
        {"program": "p4/2019.1/LINUX26X86_64/1796703", "user": "alice"},
        {"program": "P4V/NTX64/2025.2/2706456/v97", "user": "bob"},
        {"program": "jam", "user": "bob"},
        {"program": "cloneyard [PY3.11.14/P4PY2026.1]", "user": "cloneyard"},
        {"program": "p4d/2025.1", "user": "svc", "command": "pull"},
    ]
    processes = [ProcessFactory.create(server=server, **each) for each in seen]
    record_programs(server, processes, now=timezone.now())
    return server


@pytest.mark.parametrize(
    ("text", "program"),
    [
        ("p4/2024.1/LINUX26X86_64/2611120", ("p4", "2024.1")),
        ("p4/v97", ("p4", "")),
        ("P4V/NTX64/2025.2/2706456/v97", ("P4V", "2025.2")),
        ("editor [PY3.11.14/P4PY2026.1/API2026.1/2972966]", ("editor", "2026.1")),
        ("a script [PY3.10.4/P4PY2024.2/API2024.2/1]/v97", ("a script", "2024.2")),
        ("Unknown P4Java program/2025.1.2785811", ("Unknown P4Java program", "2025.1")),
        ("a build/2025.1.2", ("a build", "")),
        ("jam", ("jam", "")),
        ("/", ("/", "")),
        ("x" * 9000 + "/2024.1", ("x" * LONGEST_NAME, "2024.1")),
    ],
)
def test_a_release_is_read_where_a_program_says_it(
    text: str, program: tuple[str, str]
) -> None:
    assert program_of(text) == program


def test_each_use_is_noted_once_with_its_first_and_last_time(
    server: PerforceServer,
) -> None:
    uses = ProgramUse.objects.order_by("program").values_list("program", "release")
    assert sorted(uses) == [("P4V", "2025.2"), ("jam", ""), ("p4", "2019.1")]
    later = timezone.now() + dt.timedelta(days=1)
    again = ProcessFactory.create(server=server, program="jam", user="bob", host="new")

    record_programs(server, [again], now=later)

    use = ProgramUse.objects.get(program="jam")
    assert (use.host, use.last_seen_at) == ("new", later)
    assert use.first_seen_at < later


def test_a_long_name_does_not_stop_the_others_from_being_noted() -> None:
    """Anybody may choose one, and the server tells it whole."""
    server = PerforceServerFactory.create()
    long = secrets.token_hex(9000)
    seen = [{"program": long}, {"program": "jam", "user": long}, {"program": "p4"}]
    processes = [ProcessFactory.create(server=server, **each) for each in seen]

    record_programs(server, processes, now=timezone.now())

    assert ProgramUse.objects.count() == 3


def test_a_log_names_what_runs_too_briefly_to_be_seen(server: PerforceServer) -> None:
    log = ServerLog.objects.create(server=server, path="/p4/log")
    now = timezone.now()
    with transaction.atomic():
        ensure_days([now.date()])
    seen = ProgramUse.objects.get(program="jam").last_seen_at
    for user, program, command in (
        ("carol", "p4/2021.1/LINUX26X86_64/1", "sync"),
        ("carol", "p4/2021.1/NTX64/1", "edit"),
        ("bob", "jam", "sync"),
        ("svc", "p4d/2024.1", "rmt-Journal"),
        ("cloneyard", "cloneyard [PY3.11.14/P4PY2026.1]", "sync"),
    ):
        LogCommandFactory.create(
            log=log,
            user=user,
            program=program,
            command=command,
            started_at=min(now, seen),
        )

    assert not record_programs_of_log(log)
    assert not record_programs_of_log(log)

    uses = ProgramUse.objects.filter(user="carol").values_list("program", "release")
    assert list(uses) == [("p4", "2021.1")]
    assert ProgramUse.objects.get(program="jam").last_seen_at == seen
    assert not ProgramUse.objects.filter(user__in=("svc", "cloneyard")).exists()


@pytest.mark.django_db(transaction=True)
def test_commands_that_are_stored_late_are_not_missed() -> None:
    """Another log is stored meanwhile, whose commands have higher numbers."""
    slow = ServerLog.objects.create(server=PerforceServerFactory.create(), path="/p4/a")
    fast = ServerLog.objects.create(server=PerforceServerFactory.create(), path="/p4/b")
    now = timezone.now()
    with transaction.atomic():
        ensure_days([now.date()])
    LogCommandFactory.create(log=fast, started_at=now)
    record_programs_of_log(slow)

    with ThreadPoolExecutor(1) as others, transaction.atomic():
        ServerLog.objects.select_for_update().get(pk=slow.pk)
        LogCommandFactory.create(log=slow, program="jam", started_at=now)
        others.submit(_store_and_record, fast, slow, now).result(timeout=30)
    record_programs_of_log(slow)

    assert ProgramUse.objects.filter(server=slow.server, program="jam").exists()


def _store_and_record(fast: ServerLog, slow: ServerLog, now: dt.datetime) -> None:
    try:
        LogCommandFactory.create(log=fast, started_at=now)
        assert not record_programs_of_log(slow)
    finally:
        connection.close()


@pytest.mark.usefixtures("server")
def test_what_would_stop_old_ones_is_proposed_by_name() -> None:
    assert proposals("") == []
    [alone] = proposals("2020.1", server=PerforceServerFactory.create())
    assert "minClient" in alone.command

    [by_age, by_name] = proposals("2020.1", server=ProgramUse.objects.all()[0].server)

    assert by_age.command == "p4 configure set minClient=2020.1"
    assert by_name.command == "p4 configure set 'rejectList=p4,version=2019.1'"


def test_a_name_that_would_end_the_list_is_not_proposed(
    server: PerforceServer,
) -> None:
    odd = ProcessFactory.create(server=server, program="a';id,b/2018.1/X")
    record_programs(server, [odd], now=timezone.now())

    [_, by_name] = proposals("2020.1")

    assert "id" not in by_name.command.removeprefix("p4 configure set 'rejectList")


@pytest.mark.usefixtures("server")
def test_the_page_names_whom_to_ask(as_admin: Client) -> None:
    address = reverse("program-list")
    assert "To stop what is older" not in as_admin.get(address).text

    page = as_admin.get(address, {"older_than": "2020.1"}).text

    assert "minClient=2020.1" in page
    assert "alice" in page
    assert "P4V" not in page
    of_alice = as_admin.get(address, {"user": "alice", "as": "csv"}).getvalue()
    [_, *rows] = of_alice.decode().splitlines()
    assert rows
    assert all(",alice," in row for row in rows)
    wrong = as_admin.get(address, {"older_than": "old"})
    assert "Write a release as 2024.1." in wrong.text


@pytest.mark.usefixtures("server")
def test_scripts_list_programs(api_as_admin: APIClient) -> None:
    address = "/api/v1/perforce-programs"

    found = api_as_admin.get(address, {"older_than": "2020.1"}).json()["results"]

    assert [(each["program"], each["user"]) for each in found] == [("p4", "alice")]
    assert api_as_admin.get(address, {"older_than": "old"}).status_code == 400


def test_releases_are_compared_by_their_numbers_everywhere(
    as_admin: Client, api_as_admin: APIClient
) -> None:
    server = PerforceServerFactory.create()
    seen = [
        ProcessFactory.create(server=server, program=f"p4/{release}/NTX64/1", user=user)
        for user, release in (
            ("new", "2024.10"),
            ("old", "2024.2"),
            ("older", "2023.2"),
        )
    ]
    record_programs(server, seen, now=timezone.now())

    sorted_by = as_admin.get(reverse("program-list"), {"sort": "-release"}).text
    found = api_as_admin.get("/api/v1/perforce-programs", {"older_than": "2024.10"})
    _, by_name = proposals("2024.10")

    places = [sorted_by.index(f">{release}<") for release in ("2024.10", "2024.2")]
    assert places == sorted(places)
    assert {each["user"] for each in found.json()["results"]} == {"old", "older"}
    assert len(proposals("2023.2")) == 1
    assert by_name.command.endswith("'rejectList=p4,version=2023.2,p4,version=2024.2'")
