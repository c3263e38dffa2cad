"""A release beside the one before it, on one database, while workspaces are made.

The release before is checked out from the newest tag `v*` that HEAD comes after. Until
there is one, HEAD is released in a clone, as 0.0.1, and tagged there. The newer one is
this checkout with what `tests.newer_release` adds to it: a migration that changes
tables of the one before, a task and a step. Both have the dependencies that are
installed here.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.db import connection
from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob
from procrastinate.contrib.django.utils import connector_params
from psycopg import sql

from provisioner.catalog.models import Template
from provisioner.demo.processes import Child, Starter
from provisioner.engine.models import Step
from provisioner.engine.workers import alive_workers
from provisioner.workspaces.models import Workspace
from tests.chaos.people import Person
from tests.newer_release import RELEASE, STEP, SWEEP
from tests.shipping.availability.fleet import (
    READY_WITHIN_SECONDS,
    ROOT,
    SETTLED_WITHIN_SECONDS,
    Fleet,
    fleet,
    judged,
    status_of,
    wait_for,
)
from tests.shipping.availability.releases import git, newest_release
from tests.support.forkserver import warm
from tests.support.lab import Lab
from tests.support.replication import looking_at, run

pytestmark = [
    pytest.mark.integration,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(600),
]

MIGRATE = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
VERSION = "provisioner/__init__.py"
ASSIGNED = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)
LACKS = "The database is of an older release: it lacks newer_release.0001_initial."


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The release before, in a clone: what its tag has."""
    clone = tmp_path_factory.mktemp("before")
    git("clone", "--quiet", "--shared", str(ROOT), str(clone), at=ROOT)
    git("checkout", "--quiet", newest_release(clone) or release(clone), at=clone)
    return clone


def release(clone: Path) -> str:
    """Release a clone's HEAD under a number of its own; return the tag."""
    its = clone / VERSION
    its.write_text(ASSIGNED.sub('__version__ = "0.0.1"', its.read_text()))
    who = ("-c", "user.name=Test", "-c", "user.email=test@example.com")
    git(*who, "commit", "--quiet", "--all", "--message", "Release 0.0.1", at=clone)
    git("tag", "v0.0.1", at=clone)
    git("checkout", "--quiet", "HEAD^", at=clone)
    return "v0.0.1"


def version_of(checkout: Path) -> str:
    [version] = ASSIGNED.findall((checkout / VERSION).read_text())
    return str(version)


@pytest.fixture
def url(dump: Path) -> Iterator[str]:
    """A database of its own: tables change in it."""
    parameters = {**connector_params(), "dbname": "postgres"}
    name = sql.Identifier(f"{connection.settings_dict['NAME']}_upgrade")
    drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name)
    with psycopg.connect(**parameters, autocommit=True) as anywhere:
        anywhere.execute(drop)
        anywhere.execute(sql.SQL("CREATE DATABASE {}").format(name))
        host = connection.settings_dict["HOST"]
        url = f"postgresql://postgres@/{name.as_string().strip(chr(34))}?host={host}"
        run("pg_restore", "--no-owner", "-d", url, str(dump), user=None)
        yield url
        anywhere.execute(drop)


class Requests:
    """What was asked of which release."""

    def __init__(self, template: Template, people: list[Person]) -> None:
        self._template = template
        self._people = people
        self.names: dict[str, list[str]] = {"before": [], "newer": []}

    def ask(self, release: str, port: int) -> None:
        number = sum(map(len, self.names.values()))
        person = self._people[number % len(self._people)]
        person.speak_to(f"http://127.0.0.1:{port}")
        asked = {"template": self._template.name, "name": f"{release}-{number}"}
        answer = person.ask("POST", "/workspaces", asked, key=asked["name"])
        assert answer.status in (201, 202), answer
        self.names[release].append(asked["name"])


def test_two_releases_run_side_by_side_while_workspaces_are_made(
    before: Path,
    url: str,
    environment: dict[str, str],
    people: list[Person],
    built_template: Template,
    lab: Lab,
    tmp_path: Path,
) -> None:
    environment["DATABASE_URL"] = url
    older = {**environment, "DJANGO_SETTINGS_MODULE": "provisioner.settings"}
    newer = {**environment, "DJANGO_SETTINGS_MODULE": "tests.newer_release.settings"}
    requests = Requests(built_template, people)
    with warm(newer) as start, fleet(tmp_path / "processes") as made:
        made.start_web("web-before", checkout=before, environment=older)
        worker_before = made.start_worker(
            "worker-before", checkout=before, environment=older
        )
        wait_for(
            lambda: status_of(made.health_ports["web-before"], "/readyz") == 200,
            seconds=READY_WITHIN_SECONDS,
        )
        requests.ask("before", made.ports["web-before"])

        refused = made.start_worker("worker-too-early", start=start)
        wait_for(lambda: not refused.is_running, seconds=READY_WITHIN_SECONDS)
        assert refused.process.returncode != 0
        assert refused.log_path.read_text().count(LACKS) == 1
        migrate_twice(made, start)

        assert status_of(made.health_ports["web-before"], "/readyz?here") == 200
        requests.ask("before", made.ports["web-before"])
        made.start_web("web-newer", start=start)
        wait_for(
            lambda: status_of(made.health_ports["web-newer"], "/readyz?here") == 200,
            seconds=READY_WITHIN_SECONDS,
        )
        requests.ask("newer", made.ports["web-newer"])
        with looking_at(url):
            task = app.configure_task(SWEEP, queue="sweeps", allow_unknown=True)
            task.defer(timestamp=0)
        wait_for(lambda: has_said(worker_before, "operation_left_to_others"))
        wait_for(lambda: has_said(worker_before, "job_left_to_others"))

        worker_newer = made.start_worker("worker-newer", start=start)
        with looking_at(url):
            wait_for(lambda: releases() == {version_of(before), RELEASE})
        for release in ("before", "newer", "before", "newer"):
            requests.ask(release, made.ports[f"web-{release}"])
        with looking_at(url):
            wait_until_ready()
        for child in (worker_before, made.children["web-before"]):
            child.stop(within_seconds=60)
        requests.ask("newer", made.ports["web-newer"])

        with looking_at(url):
            wait_until_ready()
            found = {row.name for row in Workspace.objects.all()}
            assert found == {*requests.names["before"], *requests.names["newer"]}
            assert not ProcrastinateJob.objects.filter(status="failed").exists()
            assert with_the_newer_step() == set(requests.names["newer"])
            noted = all_noted()
            assert {process_id for _, process_id in noted} == {worker_newer.process.pid}
            done = [what for what, _ in noted].count(STEP)
            assert done == len(requests.names["newer"])
            assert SWEEP in {what for what, _ in noted}
            assert judged(lab, built_template, tmp_path) == []


def migrate_twice(made: Fleet, start: Starter) -> None:
    """Migrate from two hosts at once."""
    hosts = [made.start(f"migrate-{host}", MIGRATE, start=start) for host in ("a", "b")]
    for one in hosts:
        assert one.process.wait(READY_WITHIN_SECONDS) == 0, one.last_lines()


def has_said(child: Child, event: str) -> bool:
    return f'"event": "{event}"' in child.log_path.read_text()


def releases() -> set[str]:
    """Return what workers say of themselves."""
    return {worker.release for worker in alive_workers()}


def wait_until_ready() -> None:
    unready = Workspace.objects.exclude(state=Workspace.State.READY)
    wait_for(lambda: not unready.exists(), seconds=SETTLED_WITHIN_SECONDS)


def with_the_newer_step() -> set[str]:
    """Return the names of workspaces that the newer release made its step for."""
    steps = Step.objects.filter(name=STEP, state=Step.State.DONE)
    return set(steps.values_list("operation__subject__workspace__name", flat=True))


def all_noted() -> list[tuple[str, int]]:
    """Return what only the newer release does, with the process that did it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT what, process_id FROM newer_release_noted")
        return list(cursor.fetchall())
