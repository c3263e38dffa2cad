"""Bisections of a small tree in the lab, run by real jobs."""

from __future__ import annotations

import time

import pytest

from provisioner.accounts.models import User
from provisioner.bisect.models import Bisection, BisectionStep
from provisioner.bisect.sweeps import sweep_bisections
from provisioner.catalog.models import Template
from provisioner.engine.models import Operation
from provisioner.gateways import registry
from provisioner.workspaces.models import Workspace
from tests.support.factories import UserFactory
from tests.support.jobs import run_jobs_once
from tests.support.newer_snapshots import Others

# Of many operations one after the other, on a machine that does other things, too.
SETTLED_WITHIN_SECONDS = 180.0


@pytest.fixture
def alice(db: None) -> User:
    return UserFactory.create(username="alice", uid=20001, gid=20000)


@pytest.fixture
def built(lab_template: Template, others: Others, jobs_emptied: None) -> Template:
    """A template of a small tree, with one generation and eight changes after it."""
    others.write("src/a.txt", "a\n")
    others.write("src/old.txt", "old\n")
    Template.objects.filter(pk=lab_template.pk).update(
        view=f"{others.there}/... //any/..."
    )
    lab_template.refresh_from_db()
    others.publish(lab_template)
    for number in range(1, 9):
        others.write(f"src/new{number}.txt", f"{number}\n")
        if number == 6:
            others.delete("src/old.txt")
        others.submit()
    return lab_template


def changes_of(template: Template, others: Others) -> list[int]:
    """Return what was submitted, the built change first."""
    records = others.p4.run("changes", "-r", "-s", "submitted", f"{others.there}/...")
    return [int(record["change"]) for record in records]


def wait_for(bisection: Bisection) -> Bisection:
    """Run jobs until it has ended, or waits for a verdict, and what it left is gone."""
    ends = time.monotonic() + SETTLED_WITHIN_SECONDS
    while True:
        sweep_bisections(0)
        run_jobs_once()
        bisection.refresh_from_db()
        moving = Operation.objects.filter(
            state=Operation.State.RUNNING,
            subject__workspace__bisection_step__bisection=bisection,
        )
        step = bisection.steps.filter(verdict="").first()
        is_waiting = bool(bisection.status_code) or (
            step is not None and step.workspace.state == Workspace.State.READY
        )
        if not moving.exists() and (not bisection.is_running or is_waiting):
            return bisection
        assert time.monotonic() < ends, [
            (bisection.state, bisection.status_message),
            *moving.values_list("kind", "steps__name", "steps__error_message"),
        ]
        time.sleep(0.05)


def is_left_of(step: BisectionStep) -> list[object]:
    """Return what is left of a step's clone on storage and in Perforce."""
    site = step.workspace.site
    volume = registry.ontap(site).find_volume(step.workspace.volume_name)
    clients = step.workspace.stand_ins.find_all(registry.perforce(site.perforce_server))
    return [*([volume] if volume else []), *clients]
