"""How a Perforce server is set up: read, judged, shown."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st
from procrastinate.contrib.django.models import ProcrastinateJob
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.engine.worker_pools import pools_of
from provisioner.gateways.perforce.configuration import is_wide
from provisioner.insight.actions import configurations_read
from provisioner.insight.configuration import read_configuration, read_host
from provisioner.insight.models import ServerConfiguration
from provisioner.insight.queries import servers_to_read
from provisioner.insight.rules import (
    CONFIGURABLES,
    RULES,
    Facts,
    Outcome,
    Place,
    Verdict,
    judged,
)
from provisioner.insight.sweeps import (
    CONFIGURATION_EVERY,
    read_server_configuration,
    sweep_configurations,
)
from provisioner.lib.refusals import NotAllowed
from provisioner.sites.models import PerforceServer, ServerKind
from tests.support.factories import PerforceServerFactory
from tests.support.lab_perforce import LabServer, lab_server, workspace

WELL = Facts(
    today=dt.date(2026, 11, 24),
    version="P4D/LINUX26X86_64/2025.2/2853456 (2025/11/12)",
    settings={
        **{"client.readonly.dir": "ro", "db.peeking": "2", "filesys.bufsize": "64K"},
        **{"monitor": "1", "net.autotune": "1", "net.maxwait": "0", "server": "3"},
        **{"net.parallel.threads": "4"},
        **{"net.parallel.max": "8", "net.tcpsize": "512K", "server.locks.sync": "0"},
        **{"server.maxcommands": "2500", "track": "1"},
    },
    places={
        "P4ROOT": Place(fs_type="xfs", mount_point="/db", percent_used=40),
        "P4JOURNAL": Place(fs_type="xfs", mount_point="/logs", percent_used=20),
        "P4LOG": Place(fs_type="xfs", mount_point="/logs", percent_used=20),
        "TEMP": Place(fs_type="xfs", mount_point="/db", percent_used=40),
        "depot": Place(fs_type="nfs", mount_point="/depots", percent_used=71),
    },
    users=180,
    files=12_000_000,
    protection_lines=84,
    wide_protections=0,
    memory_bytes=64 << 30,
)
EXCLUSIVE_NFS = ("rw", "vers=3", "nocto", "local_lock=all")


def verdict(facts: Facts, code: str) -> Verdict:
    [rule] = [each for each in RULES if each.code == code]
    return rule.judge(facts)


def with_place(name: str, **changes: Any) -> Facts:
    return replace(
        WELL, places={**WELL.places, name: replace(WELL.places[name], **changes)}
    )


def with_setting(**values: str) -> Facts:
    named = {name.replace("__", "."): value for name, value in values.items()}
    return replace(WELL, settings={**WELL.settings, **named})


def test_a_server_that_follows_all_rules_gets_no_advice() -> None:
    outcomes = {rule.code: found.outcome for rule, found in judged(WELL)}
    assert outcomes == dict.fromkeys(outcomes, Outcome.GOOD)
    assert len(outcomes) == len(RULES)


def test_updates_of_a_release_that_end_on_an_unknown_day_are_unknown() -> None:
    facts = replace(WELL, version="P4D/X/2024.2/1 (2024/11/12)")
    found = {rule.code: verdict for rule, verdict in judged(facts)}
    assert found["release"].outcome == Outcome.UNKNOWN
    assert "between 2026-01-01 and 2026-12-31" in found["release"].saw


def test_of_a_server_that_says_nothing_nothing_is_guessed() -> None:
    found = judged(Facts(today=WELL.today))
    assert {each.outcome for _, each in found} == {Outcome.UNKNOWN}
    assert all(each.saw for _, each in found)


@pytest.mark.parametrize(
    ("facts", "code", "says"),
    [
        (replace(WELL, memory_bytes=8 << 30), "memory", "17.2 GiB"),
        (replace(WELL, users=4000), "memory", "250 GiB"),
        (replace(WELL, version="P4D/X/2018.2/1 (2018/11/02)"), "release", "2019.1"),
        (replace(WELL, version="P4D/X/2022.1/1 (2022/05/02)"), "release", "support"),
        (replace(WELL, version="P4D/X/2023.1/1 (2023/05/02)"), "release", "no updates"),
        (with_place("P4JOURNAL", mount_point="/db"), "journal", "another volume"),
        (with_place("depot", mount_point="/db"), "depots", "volumes of their own"),
        (with_place("P4LOG", fs_type="nfs4"), "log_place", "local disk"),
        (with_place("TEMP", percent_used=90), "fullness", "Make room"),
        (with_setting(server="1"), "command_log", "server=3"),
        (with_setting(track="0"), "command_log", "track=1"),
        (with_setting(monitor="0"), "monitor", "monitor=1"),
        (with_setting(db__peeking="1"), "peeking", "restart"),
        (with_setting(server__locks__sync="1"), "sync_locks", "server.locks.sync=0"),
        (with_setting(net__parallel__max="0"), "parallel", "net.parallel.max"),
        (with_setting(filesys__bufsize="4K"), "buffers", "filesys.bufsize=64K"),
        (
            with_setting(net__autotune="0", net__tcpsize="64K"),
            "network_buffers",
            "net.tcpsize=512K",
        ),
        (with_setting(net__parallel__threads="9"), "parallel_threads", "no higher"),
        (with_place("P4ROOT", fs_type="nfs"), "split", "archives alone"),
        (replace(WELL, protection_lines=1000), "protections", "to groups"),
        (
            replace(WELL, wide_protections=1, wide_paths=("//.../*.key",)),
            "protections",
            "Name directories",
        ),
        (with_setting(net__maxwait="60"), "longest_wait", "net.maxwait=0"),
        (with_setting(server__maxcommands="0"), "most_commands", "200 to 500 %"),
        (with_setting(client__readonly__dir=""), "read_only_clients", "Set it"),
    ],
)
def test_advice(facts: Facts, code: str, says: str) -> None:
    found = verdict(facts, code)
    assert (found.outcome, says in found.advice) == (Outcome.ADVICE, True), found


@pytest.mark.parametrize(
    ("path", "wide"),
    [
        ("//depot/...", False),
        ("//depot/main/readme", False),
        ("//depot/main/*", False),
        ("//.../*.key", True),
        ("//depot/*/src/...", True),
        ("//depot/.../src/...", True),
    ],
)
def test_a_wildcard_before_the_end_is_wide(path: str, wide: bool) -> None:
    assert is_wide(path) is wide


@pytest.mark.parametrize(
    ("options", "outcome", "says"),
    [
        (None, Outcome.UNKNOWN, "that one host mounts"),
        (EXCLUSIVE_NFS, Outcome.GOOD, ""),
        (("rw", "vers=3"), Outcome.ADVICE, "nocto and local_lock=all"),
        (("rw", "vers=4.1", "nocto"), Outcome.ADVICE, "local disk"),
    ],
)
def test_tables_over_nfs_are_for_one_host_alone(
    options: tuple[str, ...] | None, outcome: Outcome, says: str
) -> None:
    facts = with_place("P4ROOT", fs_type="nfs", mount_options=options)
    found = verdict(facts, "root")
    assert found.outcome == outcome
    assert says in found.advice


def test_tracking_by_the_number_of_users_is_tracking() -> None:
    assert verdict(with_setting(track="-1"), "command_log").outcome == Outcome.GOOD


@given(
    st.dictionaries(st.sampled_from(CONFIGURABLES), st.text(max_size=12)),
    st.text(max_size=60),
)
def test_whatever_a_server_answers_each_rule_has_something_to_say(
    settings: dict[str, str], version: str
) -> None:
    for _, found in judged(replace(WELL, settings=settings, version=version)):
        assert found.saw
        assert found.advice or found.outcome != Outcome.ADVICE


# --- read from a server


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    directory = tmp_path_factory.mktemp("configuration")
    with lab_server(directory) as running:
        workspace(running, directory, name="ws", depot="//depot").add(
            {"f": "x\n", "g": "y\n"}
        )
        running.connect(client="ws").run("configure", "set", "net.parallel.max=8")
        running.person("bruno")
        yield running


@pytest.fixture
def server(lab: LabServer, settings: Any, db: None) -> PerforceServer:
    settings.SITE_SECRET = lambda name, *, key: {"P4PASSWD": lab.password}[name]
    return PerforceServerFactory.create(name="lab", p4port=f"127.0.0.1:{lab.port}")


def test_a_configuration_is_read_as_it_is(
    lab: LabServer, server: PerforceServer
) -> None:
    read_configuration(server)
    lab.connect(client="ws").run("configure", "set", "net.parallel.max=4")
    read_configuration(server)  # as the day after

    read = ServerConfiguration.objects.get()
    values = {each.name: (each.value, each.source) for each in read.settings.all()}
    assert values["net.parallel.max"] == ("4", "configure")
    assert values["db.peeking"] == ("2", "default")
    assert values.keys() >= {*CONFIGURABLES}
    assert "2024.2" in read.version
    assert (read.users, read.files) == (2, 2)
    assert read.protection_lines
    assert read.wide_protections == 0
    places = {each.name: each for each in read.filesystems.all()}
    assert places.keys() == {"P4ROOT", "P4JOURNAL", "P4LOG", "TEMP", "depot"}
    assert places["P4ROOT"].mount_point
    assert 0 <= places["P4ROOT"].percent_used <= 100


def test_a_worker_on_its_host_adds_memory_and_mounts(server: PerforceServer) -> None:
    read_configuration(server)
    read_host(server)
    read_configuration(server)  # what the host said stays

    read = ServerConfiguration.objects.get()
    assert read.memory_bytes is not None
    assert read.memory_bytes > 1 << 28
    root = read.filesystems.get(name="P4ROOT")
    assert "rw" in root.mount_options.split(",")


def test_a_server_that_refuses_is_said_and_what_was_read_stays(
    lab: LabServer, server: PerforceServer
) -> None:
    read_configuration(server)
    lab.faults({"command": "diskspace", "error": "server is paused", "times": 1})

    read_server_configuration(server.pk)

    read = ServerConfiguration.objects.get()
    assert read.trouble
    assert read.settings.exists()
    assert list(servers_to_read(older_than=CONFIGURATION_EVERY)) == [server]


@pytest.mark.django_db
def test_servers_are_read_daily_and_those_that_pass_on_never() -> None:
    fresh, old, new = PerforceServerFactory.create_batch(3)
    PerforceServerFactory.create(kind=ServerKind.PROXY, upstream=new)
    now = dt.datetime.now(dt.UTC)
    ServerConfiguration.objects.create(server=fresh, read_at=now)
    ServerConfiguration.objects.create(server=old, read_at=now - dt.timedelta(days=2))

    sweep_configurations(0)
    sweep_configurations(0)

    jobs = ProcrastinateJob.objects.filter(task_name="read_server_configuration")
    assert {job.args["server_id"] for job in jobs} == {old.pk, new.pk}
    assert len(jobs) == 2


def test_all_servers_are_read_at_once_when_somebody_asks(
    admin: User, alice: User, admin_client: Client
) -> None:
    fresh, new = PerforceServerFactory.create_batch(2)
    PerforceServerFactory.create(kind=ServerKind.BROKER, upstream=new)
    now = dt.datetime.now(dt.UTC)
    ServerConfiguration.objects.create(server=fresh, read_at=now)

    page = admin_client.get(reverse("configuration-list")).content.decode()
    assert "Read now" in page
    admin_client.post(reverse("configuration-read"))
    api = APIClient()
    api.force_authenticate(admin)
    answer = api.post("/api/v1/perforce-configurations/read")
    assert (answer.status_code, answer.json()) == (202, {"queued": 2})

    jobs = ProcrastinateJob.objects.filter(task_name="read_server_configuration")
    assert sorted(job.args["server_id"] for job in jobs) == [fresh.pk, new.pk]
    assert Event.objects.filter(kind="configurations_requested").count() == 2
    with pytest.raises(NotAllowed):
        configurations_read(by=alice)


def test_only_a_worker_that_is_told_so_runs_on_the_host_of_a_server() -> None:
    def serving(*queues: str) -> bool:
        pools = pools_of(
            list(queues) or None, slots=1, command_slots=1, bisection_slots=1
        )
        return any(pool.serves("p4d.commit") for pool in pools)

    assert serving("p4d.commit")
    assert serving("perforce", "p4d.commit")
    assert not serving()
    assert not serving("host.commit", "p4d.other")


# --- shown


@pytest.fixture
def read(db: None) -> ServerConfiguration:
    server = PerforceServerFactory.create(name="commit")
    now = dt.datetime.now(dt.UTC)
    read = ServerConfiguration.objects.create(server=server, read_at=now, users=3)
    read.settings.create(name="net.parallel.max", value="0", source="default")
    place = {"fs_type": "xfs", "mount_point": "/p4", "percent_used": 96}
    read.filesystems.create(name="P4ROOT", **place)
    return read


def test_the_page_says_what_was_seen_and_what_to_do(
    admin_client: Client, read: ServerConfiguration
) -> None:
    page = admin_client.get(reverse("configuration-list")).content.decode()
    assert "Nearly full: P4ROOT 96 %." in page
    assert "Set net.parallel.max" in page
    assert "No worker runs on the server" in page


def test_the_page_says_why_a_server_was_not_read(
    admin_client: Client, read: ServerConfiguration
) -> None:
    ServerConfiguration.objects.update(trouble="Our account may not do this.")
    page = admin_client.get(reverse("configuration-list")).content.decode()
    assert "The configuration could not be read." in page
    assert "Our account may not do this." in page


def test_the_api_has_the_same(admin: User, read: ServerConfiguration) -> None:
    client = APIClient()
    client.force_authenticate(admin)
    [found] = client.get("/api/v1/perforce-configurations").json()["results"]
    assert found["server"] == "commit"
    outcomes = {each["code"]: each["outcome"] for each in found["judgments"]}
    assert outcomes["fullness"] == outcomes["parallel"] == "advice"
    assert outcomes["memory"] == "unknown"
