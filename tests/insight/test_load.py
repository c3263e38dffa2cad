"""What others do at a server, and how ours give way to it."""

from __future__ import annotations

import datetime as dt
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from procrastinate.contrib.django.models import ProcrastinateJob

from provisioner.accounts.models import User
from provisioner.catalog.models import Template
from provisioner.engine import loads, slots, states, step_run
from provisioner.engine.loads import Load, OthersCommand
from provisioner.engine.models import ServerLoad, Step
from provisioner.engine.step_run import StepRun
from provisioner.engine.waits import wait_of
from provisioner.gateways.errors import Busy
from provisioner.gateways.perforce.types import FlushPlace, ServerProcess
from provisioner.insight.load import load_of
from provisioner.insight.sweeps import read_server, read_server_load, sweep_loads
from provisioner.lab.perforce.processes import ProcessTable, Running
from provisioner.lib.refusals import StepCutShort
from provisioner.sites.models import PerforceServer
from tests.support.factories import SnapshotFactory, UserFactory
from tests.support.lab_perforce import LabServer, eventually, lab_server, workspace
from tests.support.queued_steps import ask_to_flush

pytestmark = pytest.mark.django_db

BUSY = Load(
    tables=("db.have",),
    commands=(OthersCommand(user="bob", command="sync", seconds=95),),
)
CHECKPOINT = Load(maintenance="admin checkpoint of root, for 2 min")


def process(**fields: Any) -> ServerProcess:
    usual = {
        **{"number": 7, "state": "R", "user": "bob", "program": "p4", "client": "ws"},
        **{"host": "10.0.0.1", "command": "sync", "arguments": "", "seconds": 95},
    }
    return ServerProcess(**{**usual, **fields})


@pytest.fixture
def template() -> Template:
    template: Template = SnapshotFactory.create().template
    return template


@pytest.fixture
def server(template: Template) -> PerforceServer:
    return template.site.perforce_server


@pytest.fixture
def step(template: Template) -> Step:
    """A flush that has its slot."""
    alice = UserFactory.create(username="alice", uid=20001, gid=20000)
    return ask_to_flush(alice, template, key="first")


# --- what a reading says


def test_commands_of_others_wait_while_a_table_stays_locked() -> None:
    processes = [
        process(seconds=3, user="dan"),
        process(),
        process(seconds=1, user="new"),
        process(user="cloneyard", program="cloneyard [PY3.11/P4PY2026.1]"),
        process(command="pull", user="service"),
        process(state="I", command="IDLE"),
    ]

    load = load_of(processes, locked={"db.have"}, our_user="cloneyard")

    assert [each.user for each in load.commands] == ["bob", "dan"]
    assert load.others_wait
    assert not load_of(processes, locked=(), our_user="cloneyard").others_wait
    assert not load_of([], locked={"db.have"}, our_user="cloneyard").others_wait


@pytest.mark.parametrize(
    ("command", "arguments", "said"),
    [
        ("admin", "checkpoint -z", "admin checkpoint of bob, for 1 min 35 s"),
        ("admin", "journal", "admin journal of bob, for 1 min 35 s"),
        ("admin", "resource-monitor", ""),
        ("sync", "checkpoint", ""),
        ("admin", "", ""),
        ("", "", ""),
    ],
)
def test_a_checkpoint_is_maintenance(command: str, arguments: str, said: str) -> None:
    one = process(command=command, arguments=arguments)

    assert load_of([one], locked=(), our_user="cloneyard").maintenance == said


# --- what ours do then


def test_slots_halve_at_each_reading_while_others_wait_and_grow_back(
    step: Step, server: PerforceServer
) -> None:
    def present() -> int:
        server.refresh_from_db()
        budget = getattr(server, "slot_budget", None)
        return slots.present_limit(server, budget, now=timezone.now())

    def let_pass(seconds: float) -> None:
        budget = server.slot_budget
        assert budget.backed_off_at is not None
        budget.backed_off_at -= dt.timedelta(seconds=seconds)
        budget.save()

    slots.observe_others(server.pk, BUSY)
    assert present() == 2
    let_pass(15)
    slots.observe_others(server.pk, BUSY)
    assert present() == 1
    slots.observe_others(server.pk, Load())
    assert present() == 1
    let_pass(61)
    assert present() == 2
    let_pass(600)
    assert present() == server.flush_limit


def test_a_waiting_step_says_for_whom(
    step: Step, server: PerforceServer, template: Template, as_admin: Client
) -> None:
    PerforceServer.objects.update(flush_limit=1)
    slots.observe_others(server.pk, BUSY)
    waiting = ask_to_flush(User.objects.get(username="alice"), template, key="2")

    wait = wait_of(Step.objects.get(pk=waiting.pk))

    assert wait is not None
    who = "db.have is locked, and sync of bob (95 s) cannot go on."
    assert wait.sentence.endswith(who)
    page = as_admin.get(reverse("perforce-server-detail", args=[server.pk])).text
    assert who in page
    assert (
        who
        in as_admin.get(reverse("operation-detail", args=[waiting.operation_id])).text
    )

    # Nobody reads any more: an old reading holds nobody up.
    ServerLoad.objects.update(read_at=timezone.now() - loads.COUNTS_FOR)
    wait = wait_of(Step.objects.get(pk=waiting.pk))
    assert wait is not None
    assert "bob" not in wait.sentence


def test_a_flush_rests_between_commands_until_nobody_waits(
    step: Step, server: PerforceServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    states.start_step(step)
    run = StepRun(Step.objects.select_related("operation__subject").get(pk=step.pk))
    run.progress("flushing", done=0, total=9, unit="files")
    assert not run.rest_for_others(None)
    slots.observe_others(server.pk, BUSY)
    said = []

    def nobody_waits_any_more(seconds: float) -> None:
        said.append(Step.objects.get(pk=step.pk).progress["text"])
        if len(said) == 2:
            slots.observe_others(server.pk, Load())

    monkeypatch.setattr(time, "sleep", nobody_waits_any_more)

    assert run.rest_for_others(None)

    assert len(said) == 2
    assert all("sync of bob (95 s)" in text for text in said)
    assert Step.objects.get(pk=step.pk).progress["text"] == "flushing"


def test_a_flush_that_maintenance_ends_goes_on_with_the_next_directory(
    step: Step, server: PerforceServer
) -> None:
    states.start_step(step)
    rows = Step.objects.select_related("operation__subject")
    watch = StepRun(rows.get(pk=step.pk)).flush_watch()
    assert watch.place is None
    reached = FlushPlace(of="0" * 64, done=3, total=9)

    watch.on_place(reached)
    slots.observe_others(server.pk, CHECKPOINT)
    with pytest.raises(Busy, match="admin checkpoint of root"):
        watch.on_command(None)

    kept = rows.get(pk=step.pk)
    assert kept.progress == {
        "text": "flushing",
        "done": 3,
        "total": 9,
        "unit": "directories",
    }
    assert StepRun(kept).flush_watch().place == reached


def test_a_flush_in_one_command_has_no_place_to_go_on_from(step: Step) -> None:
    states.start_step(step)
    run = StepRun(Step.objects.select_related("operation__subject").get(pk=step.pk))

    run.flush_watch().on_place(FlushPlace(of="0" * 64, done=1, total=1))

    assert Step.objects.get(pk=step.pk).flush_place == {}


def test_an_attempt_that_was_replaced_does_not_say_where_to_go_on(step: Step) -> None:
    states.start_step(step)
    run = StepRun(Step.objects.select_related("operation__subject").get(pk=step.pk))
    Step.objects.update(attempt=2)

    with pytest.raises(StepCutShort):
        run.flush_watch().on_place(FlushPlace(of="0" * 64, done=3, total=9))

    assert Step.objects.get(pk=step.pk).flush_place == {}


def test_a_comparison_of_many_directories_comes_to_its_end_while_others_wait(
    step: Step, server: PerforceServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    states.start_step(step)
    run = StepRun(Step.objects.select_related("operation__subject").get(pk=step.pk))
    slots.observe_others(server.pk, BUSY)
    # Long enough that a busy machine looks up who waits before it is over.
    monkeypatch.setattr(step_run, "RESTS_AT_MOST_SECONDS", 4.0)
    rests = list[float]()

    def rest(seconds: float) -> None:
        rests.append(seconds)
        really_sleep(4.1)

    really_sleep = time.sleep
    monkeypatch.setattr(time, "sleep", rest)

    assert run.rest_for_others(None)
    rested = len(rests)

    assert run.rest_for_others(None)
    assert rested
    assert len(rests) == rested


def test_maintenance_that_begins_while_a_flush_rests_ends_it(
    step: Step, server: PerforceServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    states.start_step(step)
    run = StepRun(Step.objects.select_related("operation__subject").get(pk=step.pk))
    slots.observe_others(server.pk, BUSY)

    def checkpoint_begins(seconds: float) -> None:
        slots.observe_others(server.pk, CHECKPOINT)

    monkeypatch.setattr(time, "sleep", checkpoint_begins)

    with pytest.raises(Busy, match="admin checkpoint of root"):
        run.rest_for_others(None)


@pytest.mark.parametrize("how", ["found", "planned"])
def test_in_maintenance_nothing_with_a_slot_starts_and_what_runs_gives_it_up(
    how: str, step: Step, server: PerforceServer, template: Template
) -> None:
    if how == "found":
        slots.observe_others(server.pk, CHECKPOINT)
    else:
        PerforceServer.objects.update(maintenance_windows="* * * * * 60")
    step = Step.objects.select_related("operation__subject").get(pk=step.pk)

    assert not slots.may_start(step)
    with pytest.raises(Busy, match=r"admin checkpoint of root|in maintenance until"):
        StepRun(step).command_ended(None)
    alice = User.objects.get(username="alice")
    waiting = ask_to_flush(alice, template, key="2")
    wait = wait_of(Step.objects.get(pk=waiting.pk))
    assert wait is not None
    assert wait.maintenance
    assert wait.sentence.endswith("It continues after that.")

    slots.observe_others(server.pk, Load())
    PerforceServer.objects.update(maintenance_windows="")

    assert [each.pk for each in slots.next_in_line(server.pk)] == [waiting.pk]


def test_the_maintenance_that_a_step_waits_for_is_said_once(
    step: Step, server: PerforceServer, template: Template, admin_client: Client
) -> None:
    alice = User.objects.get(username="alice")
    slots.observe_others(server.pk, CHECKPOINT)
    waiting = ask_to_flush(alice, template, key="2")
    before = "The Perforce server is busy with admin checkpoint of root, for 1 min."
    Step.objects.filter(pk=waiting.pk).update(error_message=before)
    address = reverse("operation-detail", args=[waiting.operation_id])

    page = admin_client.get(address).text

    assert "admin checkpoint of root, for 2 min. It continues after that." in page
    assert before not in page
    slots.observe_others(server.pk, Load())
    assert before in admin_client.get(address).text


# --- reading it


def test_one_worker_reads_each_server_that_is_in_use(
    step: Step, server: PerforceServer
) -> None:
    for _ in range(2):
        sweep_loads(timestamp=0)

    jobs = ProcrastinateJob.objects.filter(task_name="read_server_load")
    assert [job.args for job in jobs] == [{"server_id": server.pk}]
    assert jobs.get().lock == f"read_load.{server.pk}"


def test_a_server_that_is_not_in_use_is_left_alone(server: PerforceServer) -> None:
    sweep_loads(timestamp=0)

    assert not ProcrastinateJob.objects.filter(task_name="read_server_load").exists()


def test_a_server_that_does_not_answer_holds_up_nobody(
    server: PerforceServer,
) -> None:
    read_server_load(server.pk)

    assert not ServerLoad.objects.exists()


@pytest.fixture
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    directory = tmp_path_factory.mktemp("load")
    with lab_server(directory) as running:
        workspace(running, directory, name="ws", depot="//depot").add({"f": "x\n"})
        admin = running.connect(client="ws")
        admin.run("configure", "set", "monitor=1")
        yield running


def test_a_checkpoint_is_seen_before_anything_of_ours_runs(
    lab: LabServer, server: PerforceServer, settings: Any
) -> None:
    settings.SITE_SECRET = lambda name, *, key: lab.password
    PerforceServer.objects.update(p4port=f"127.0.0.1:{lab.port}")
    server.refresh_from_db()
    read_server(server.pk)
    assert loads.why_stop(server.pk) == ""
    checkpoint = Running(
        number=7,
        process=os.getpid(),
        user="root",
        client="ws",
        address="127.0.0.1",
        program="p4",
        command="admin",
        arguments="checkpoint -z",
        started=time.time() - 90,
    )

    with ProcessTable(lab.root).listing(checkpoint):
        read_server(server.pk)

    assert "admin checkpoint of root" in loads.why_stop(server.pk)


def test_the_lab_tells_who_waits_for_which_table(
    lab: LabServer, server: PerforceServer, settings: Any
) -> None:
    settings.SITE_SECRET = lambda name, *, key: lab.password
    PerforceServer.objects.update(p4port=f"127.0.0.1:{lab.port}")
    p4 = lab.connect(client="ws")
    faults = lab.root / "faults.json"
    faults.write_text('{"held_locks": {"db.have": 90}}')
    with ThreadPoolExecutor(1) as pool:
        flush = pool.submit(p4.run, "flush", "-f")
        try:

            def is_seen() -> bool:
                read_server_load(server.pk)
                return ServerLoad.objects.get().others_wait_since is not None

            eventually(is_seen, within_seconds=60)
        finally:
            faults.write_text("{}")
        flush.result(timeout=60)
    load = ServerLoad.objects.get()
    assert load.tables == ["db.have"]
    [command] = load.commands
    assert (command["user"], command["command"]) == ("cloneyard", "flush")
    since = load.others_wait_since

    read_server_load(server.pk)

    load = ServerLoad.objects.get()
    assert (load.others_wait_since, load.tables, load.commands) == (None, [], [])
    assert since is not None
