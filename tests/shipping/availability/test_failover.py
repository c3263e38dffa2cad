"""The primary is lost in the middle of work, and a web server, and workers."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from provisioner.catalog.models import Template
from provisioner.engine.management.commands.worker import FROZEN
from provisioner.workspaces.models import Workspace
from tests.chaos.people import Person
from tests.shipping.availability.fleet import (
    SETTLED_WITHIN_SECONDS,
    Fleet,
    fleet,
    judged,
    wait_for,
)
from tests.support.forkserver import warm
from tests.support.lab import Lab
from tests.support.replication import Pair, looking_at, replicated

pytestmark = [
    pytest.mark.integration,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(600),
]

EACH = 3
# Jobs that ended are deleted; this keeps which periods were queued and begun.
SEE_PERIODIC_JOBS = """
    CREATE TABLE seen (
        task text, period bigint, what text, at timestamptz DEFAULT clock_timestamp()
    );
    CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO seen VALUES (
            NEW.task_name, (NEW.args->>'timestamp')::bigint, TG_ARGV[0]
        );
        RETURN NULL;
    END $$;
    CREATE TRIGGER queued AFTER INSERT ON procrastinate_jobs FOR EACH ROW
        WHEN (NEW.args ? 'timestamp') EXECUTE FUNCTION see('queued');
    CREATE TRIGGER begun AFTER UPDATE OF status ON procrastinate_jobs FOR EACH ROW
        WHEN (NEW.args ? 'timestamp' AND NEW.status = 'doing')
        EXECUTE FUNCTION see('begun')
"""


@pytest.fixture
def pair(dump: Path) -> Iterator[Pair]:
    """The database of this test, as a primary with a standby."""
    with replicated(dump=dump) as pair:
        pair.primary.ask(SEE_PERIODIC_JOBS)
        yield pair


@pytest.fixture
def installation(
    pair: Pair, environment: dict[str, str], tmp_path: Path
) -> Iterator[tuple[Fleet, int]]:
    """Its processes, and the port of the proxy. The last worker knows one host."""
    environment["DATABASE_URL"] = pair.url
    with warm(environment) as start, fleet(tmp_path / "processes") as made:
        for name in ("web1", "web2"):
            made.start_web(name, start=start)
        for name in ("worker-1", "worker-2"):
            made.start_worker(name, start=start)
        alone = {**environment, "DATABASE_URL": pair.primary.url}
        made.start_worker("worker-3", environment=alone)
        port = made.start_proxy()
        made.wait_until_ready(port)
        wait_for(lambda: len(processes_of_workers(pair)) == 3)
        yield made, port


def processes_of_workers(pair: Pair) -> set[int]:
    found = pair.primary.ask("SELECT DISTINCT process_id FROM engine_workerqueues")
    return {process_id for (process_id,) in found}


class Accepted:
    """What people asked for, and what was accepted."""

    def __init__(self, people: list[Person], template: Template) -> None:
        self._template = template
        self._lock = threading.Lock()
        self.ids: dict[str, int] = {}
        self.broken: list[str] = []
        self.threads = [
            threading.Thread(target=self._ask, args=[person]) for person in people
        ]
        for thread in self.threads:
            thread.start()

    def _ask(self, person: Person) -> None:
        for number in range(EACH):
            name = f"{person.username}-{number}"
            asked = {"template": self._template.name, "name": name}
            answer = person.ask("POST", "/workspaces", asked, key=name)
            with self._lock:
                if answer.status in (201, 202):
                    self.ids[name] = answer.body["id"]
                else:
                    self.broken.append(f"{name}: {answer}")


def test_a_failover_in_the_middle_of_work_loses_nothing_that_was_accepted(
    installation: tuple[Fleet, int],
    pair: Pair,
    people: list[Person],
    lab: Lab,
    built_template: Template,
    tmp_path: Path,
) -> None:
    fleet, port = installation
    for person in people:
        person.speak_to(f"http://127.0.0.1:{port}")
    # Clones take a while, so that many are under way.
    lab.break_ontap({"path": "/api/*", "latency_seconds": 0.2})
    accepted = Accepted(people, built_template)
    wait_for(lambda: len(accepted.ids) >= len(people))
    frozen, step_id, attempt = a_step_of(pair, fleet, ("worker-1", "worker-2"))
    os.kill(frozen.process.pid, signal.SIGSTOP)

    fleet.kill("web1")
    pair.primary.kill()
    time.sleep(1.0)  # as long as somebody needs to notice
    pair.standby.promote()
    promoted_at = time.time()

    for thread in accepted.threads:
        thread.join(SETTLED_WITHIN_SECONDS)
        assert not thread.is_alive(), fleet.last_words()
    assert accepted.broken == []
    assert len(accepted.ids) == len(people) * EACH
    lab.break_ontap()
    with looking_at(pair.url):
        wait_for(
            lambda: not Workspace.objects.exclude(state=Workspace.State.READY).exists(),
            seconds=SETTLED_WITHIN_SECONDS,
        )
        before = list(Workspace.objects.order_by("pk").values())
        os.kill(frozen.process.pid, signal.SIGCONT)
        wait_for(lambda: not frozen.is_running)
        assert frozen.process.returncode == FROZEN
        assert list(Workspace.objects.order_by("pk").values()) == before
        assert {row["name"]: row["id"] for row in before} == accepted.ids
        [(attempts,)] = pair.standby.ask(
            "SELECT attempt FROM engine_step WHERE id = %s", step_id
        )
        assert attempts > attempt  # somebody else did it
        assert judged(lab, built_template, tmp_path) == []
    assert fleet.children["worker-3"].is_running
    assert_each_period_ran_once(pair, promoted_at=promoted_at)


def a_step_of(pair: Pair, fleet: Fleet, names: tuple[str, ...]) -> tuple[Any, int, int]:
    """Return one of these workers that is at a step, and which step and attempt."""
    found: list[tuple[Any, int, int]] = []

    def look() -> bool:
        rows = pair.primary.ask(
            "SELECT queues.process_id, step.id, step.attempt FROM engine_step AS step"
            " JOIN procrastinate_jobs AS job ON job.id = step.job_id"
            " JOIN engine_workerqueues AS queues ON queues.worker_id = job.worker_id"
            " WHERE step.state = 'running' AND job.status = 'doing'"
            " ORDER BY step.started_at DESC"
        )
        for process_id, step_id, attempt in rows:
            for name in names:
                if fleet.children[name].process.pid == process_id:
                    found.append((fleet.children[name], step_id, attempt))
        return bool(found)

    wait_for(look)
    return found[0]


def assert_each_period_ran_once(pair: Pair, *, promoted_at: float) -> None:
    """What was begun before the failover and had not ended may have begun again."""
    queued = pair.standby.ask(
        "SELECT task, period, count(*) FROM seen WHERE what = 'queued' GROUP BY 1, 2"
    )
    assert {period > promoted_at for _, period, _ in queued} == {True, False}
    assert [each for each in queued if each[2] > 1] == []
    twice = pair.standby.ask(
        "SELECT task, period, count(*) FROM seen WHERE what = 'begun' GROUP BY 1, 2"
        " HAVING count(*) > 1 AND min(at) > to_timestamp(%s)",
        promoted_at,
    )
    assert twice == []
    [(begun,)] = pair.standby.ask(
        "SELECT count(*) FROM seen WHERE what = 'begun' AND at > to_timestamp(%s)",
        promoted_at,
    )
    assert begun > 0
