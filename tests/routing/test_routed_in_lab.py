"""Work that rules send to a build server or replica, in the lab."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.test import Client

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.bisect.actions import bisection_start
from provisioner.bisect.models import Bisection
from provisioner.catalog.actions.templates import template_build
from provisioner.catalog.models import Template
from provisioner.drift.models import Finding
from provisioner.engine.models import Operation
from provisioner.gateways import registry
from provisioner.gateways.errors import Busy
from provisioner.gateways.perforce.errors import ClientOfOtherServer
from provisioner.lab.perforce.state import database_path
from provisioner.routing.actions import routing_rule_add
from provisioner.routing.kinds import Purpose
from provisioner.routing.models import TrafficDay
from provisioner.sites.models import PerforceServer, ServerKind, Site, WhenBehind
from provisioner.workspaces.actions.retiring import workspace_retry
from provisioner.workspaces.models import Workspace
from tests.support.bisections_in_lab import alice, built, changes_of, wait_for
from tests.support.drift_scene import check_drift, long_ago, made_long_ago, resolve
from tests.support.factories import UserFactory
from tests.support.jobs import perform_again, run_jobs_once, settle
from tests.support.lab import DEPOT, Lab
from tests.support.lab_perforce import LabServer
from tests.support.newer_snapshots import Others
from tests.support.replicas import replica_of_lab
from tests.support.requests import workspace_create
from tests.support.retiring import retire
from tests.support.submits import submit

__all__ = ["alice", "built"]

pytestmark = [pytest.mark.integration, pytest.mark.django_db(transaction=True)]

Replica = tuple[LabServer, PerforceServer]


@pytest.fixture
def builder(lab: Lab, lab_site: Site, tmp_path: Path) -> Iterator[Replica]:
    kind = ServerKind.BUILD
    with replica_of_lab(lab, lab_site, tmp_path, kind=kind, name="builder") as both:
        yield both


@pytest.fixture
def ci(db: None) -> User:
    return UserFactory.create(username="ci", uid=20003, gid=20000, p4_user="ci")


def rule(
    admin: User, purpose: str, server: PerforceServer, *, seconds: int = 1, **more: str
) -> None:
    routing_rule_add(
        by=admin, purpose=purpose, server=server, catch_up_seconds=seconds, **more
    )


def servers_of(operation: Operation) -> set[str]:
    """Return the names of the servers that its steps used."""
    used = operation.steps.filter(perforce_server__isnull=False)
    return set(used.values_list("perforce_server__name", flat=True))


def traffic_of(row: Workspace | Template) -> dict[str, tuple[int, int]]:
    """Return the files flushed and synced for a row's owner, by server."""
    days = TrafficDay.objects.filter(account=row.owner, purpose=row.used_for)
    assert all(day.commands for day in days)
    return {d.server.name: (d.flushed_files, d.synced_files) for d in days}


def is_at_its_pin(workspace: Workspace) -> bool:
    perforce = registry.perforce(workspace.perforce_server)
    have = perforce.files.have_list(workspace.client_name)
    pin = workspace.snapshot
    return (have.count, have.digest) == (pin.have_count, pin.have_digest)


def publish(template: Template, lab: Lab) -> None:
    """Submit a change, and build it at the commit server."""
    submit(lab, path=f"//depot/{DEPOT}/src/file0.txt")
    template_build(by=template.owner, template=template)
    settle(template)
    assert template.state == Template.State.READY, template.status_message


def test_a_ci_workspace_is_flushed_at_a_build_server(
    admin: User, ci: User, builder: Replica, published_template: Template
) -> None:
    running, there = builder
    rule(admin, Purpose.CI, there)

    made = settle(workspace_create(by=ci, template=published_template, purpose="ci"))

    assert made.state == Workspace.State.READY, made.status_message
    assert made.routed_to == there
    assert made.routed_because == "Rule 1: CI (read-only client)."
    assert servers_of(made.operations.get()) == {"builder"}
    perforce = registry.perforce(there)
    client = perforce.clients.find(made.client_name)
    assert client is not None
    assert client.server_id == "builder"
    have = perforce.files.have_list(made.client_name)
    assert have.digest == made.snapshot.have_digest
    at_commit = registry.perforce(made.site.perforce_server)
    with pytest.raises(ClientOfOtherServer):
        at_commit.files.have_list(made.client_name)
    assert traffic_of(made) == {
        "builder": (made.snapshot.have_count, 0),
        "lab": (0, 0),
    }
    config = (made.path / ".p4config").read_text()
    assert f"P4PORT={there.p4port}\n" in config

    running.lag(held=True)
    with sqlite3.connect(database_path(running.root)) as database:
        database.execute("DELETE FROM changes WHERE change=?", [made.snapshot.change])
    flush = made.operations.get().steps.get(name="flush")
    with pytest.raises(Busy, match=f"Waiting for change {made.snapshot.change}"):
        perform_again(flush)
    running.lag()
    retired = retire(made)

    assert retired.state == Operation.State.SUCCEEDED, retired.status_message
    assert perforce.clients.find(made.client_name) is None
    assert at_commit.clients.find(made.client_name) is None


def test_a_template_moves_to_a_build_server_and_back(
    admin: User, lab: Lab, builder: Replica, built_template: Template
) -> None:
    running, there = builder
    rule(admin, Purpose.TEMPLATE, there)
    template = built_template
    commit = template.site.perforce_server
    running.lag(held=True)
    submit(lab, path=f"//depot/{DEPOT}/src/file0.txt")
    template_build(by=template.owner, template=template)
    settle(template)
    assert template.status_code == "replica_is_behind", template.status_message
    running.lag()
    for expected in (there, commit):
        build = template_build(by=template.owner, template=template)
        settle(template)

        assert template.state == Template.State.READY, template.status_message
        assert build.parameters["clean"], "its have list is at the other server"
        assert servers_of(build) == {expected.name}
        assert template.perforce_server == expected
        pin = template.snapshots.latest("pk")
        have = registry.perforce(expected).files.have_list(template.client_name)
        assert have.digest == pin.have_digest
        again = template_build(by=template.owner, template=template)
        settle(template)
        assert template.state == Template.State.READY, template.status_message
        assert "clean" not in again.parameters
        there.routing_rules.all().delete()


def test_a_server_that_stays_behind_is_not_used(
    admin: User, ci: User, lab: Lab, builder: Replica, built_template: Template
) -> None:
    running, there = builder
    running.lag(held=True)
    publish(built_template, lab)
    rule(admin, Purpose.CI, there)
    refused = workspace_create(by=ci, template=built_template, purpose="ci")
    settle(refused)

    assert refused.state == Workspace.State.FAILED
    assert refused.status_code == "replica_is_behind"
    begun = refused.operations.get().steps.filter(attempt__gt=0)
    assert [step.name for step in begun] == ["access"], "nothing was made"

    there.routing_rules.update(when_behind=WhenBehind.UPSTREAM)
    made = settle(workspace_create(by=ci, template=built_template, purpose="ci"))

    assert made.state == Workspace.State.READY, made.status_message
    assert made.routed_to is None
    change = made.snapshot.change
    because = f"builder did not have change {change} within 1 s. lab is used instead."
    assert made.routed_because == because
    assert Event.objects.filter(workspace=made, message=because).exists()
    assert is_at_its_pin(made)
    used = made.operations.get().steps.filter(perforce_server__isnull=False)
    assert set(used.exclude(name="access").values_list("perforce_server__name")) == {
        ("lab",)
    }

    there.routing_rules.all().delete()
    workspace_retry(by=ci, workspace=refused)
    settle(refused)

    assert refused.state == Workspace.State.READY, refused.status_message
    assert refused.routed_to is None, "no rule sends it there any more"
    rule(admin, Purpose.CI, there, when_behind=WhenBehind.UPSTREAM)
    running.kill()
    instead = settle(workspace_create(by=ci, template=built_template, purpose="ci"))

    assert instead.state == Workspace.State.READY, instead.status_message
    assert instead.routed_because.startswith("builder did not answer: ")
    assert is_at_its_pin(instead)


def test_nothing_is_ready_below_its_pin_whatever_the_lag(
    admin: User, ci: User, lab: Lab, builder: Replica, built_template: Template
) -> None:
    running, there = builder
    chance = random.Random(18)
    rule(admin, Purpose.CI, there)
    lags: list[dict[str, object]] = [{"held": True}, {"lag_seconds": 0.7}, {}]
    made: list[Workspace] = []
    for _ in range(4):
        there.routing_rules.update(when_behind=chance.choice(WhenBehind.values))
        running.lag(**chance.choice(lags))
        publish(built_template, lab)
        made.append(workspace_create(by=ci, template=built_template, purpose="ci"))
        running.lag(**chance.choice(lags))
        run_jobs_once()
        ready = Workspace.objects.filter(state=Workspace.State.READY)
        assert all(map(is_at_its_pin, ready))
    running.lag()
    for workspace in made:
        settle(workspace)
        is_ready = workspace.state == Workspace.State.READY
        assert is_ready or workspace.status_code == "replica_is_behind"
        assert not is_ready or is_at_its_pin(workspace)
    assert {workspace.snapshot.change for workspace in made} == set(
        built_template.snapshots.order_by("-pk").values_list("change", flat=True)[:4]
    )


def test_a_build_only_workspace_asks_a_read_only_replica(
    admin: User,
    ci: User,
    lab: Lab,
    lab_site: Site,
    tmp_path: Path,
    published_template: Template,
) -> None:
    kind = ServerKind.REPLICA
    with replica_of_lab(lab, lab_site, tmp_path, kind=kind, name="reader") as (_, row):
        rule(admin, Purpose.BUILD, row)
        asked = workspace_create(by=ci, template=published_template, purpose="build")
        made = settle(asked)

    assert made.state == Workspace.State.READY, made.status_message
    assert made.routed_to == row
    assert traffic_of(made).keys() == {"reader", "lab"}


def test_a_bisection_fetches_files_at_a_build_server(
    admin: User, builder: Replica, built: Template, others: Others, alice: User
) -> None:
    _, there = builder
    rule(admin, Purpose.BISECTION, there)
    good, *_, bad = changes_of(built, others)[5:8]

    bisection = wait_for(
        bisection_start(
            by=alice,
            template=built,
            good=good,
            bad=bad,
            command="! test -e src/new6.txt",
        )
    )

    assert bisection.state == Bisection.State.FOUND, bisection.status_message
    tried = Workspace.objects.filter(bisection_step__bisection=bisection)
    assert {workspace.perforce_server for workspace in tried} == {there}
    for workspace in tried:
        assert traffic_of(workspace)["builder"][1], "files were synced there"


def test_drift_knows_where_a_routed_client_is(
    admin: User,
    ci: User,
    lab_site: Site,
    builder: Replica,
    published_template: Template,
    signed_in: Callable[[User], Client],
) -> None:
    _, there = builder
    rule(admin, Purpose.CI, there)
    made = settle(workspace_create(by=ci, template=published_template, purpose="ci"))
    made_long_ago(made)
    long_ago()

    def found() -> list[Finding]:
        check_drift(lab_site)
        return list(Finding.objects.filter(workspace=made, resolved_at=None))

    assert not found()
    registry.perforce(there).clients.delete(made.client_name)
    [lost] = found()
    resolve(lost, admin)

    assert lost.resolved_at is not None, lost.status_message
    client = registry.perforce(there).clients.find(made.client_name)
    assert client is not None
    assert client.server_id == "builder"
    assert is_at_its_pin(made)
    page = signed_in(ci).get(f"/workspaces/{made.pk}/").text
    assert "builder. Rule 1: CI (read-only client)." in page
    operation = made.operations.last()
    assert operation is not None
    page = signed_in(ci).get(f"/operations/{operation.pk}/").text
    assert "Perforce: builder." in page
