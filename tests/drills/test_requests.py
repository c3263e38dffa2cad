"""Plans of drills, what is told of them, what hangs; pages and API."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.dashboard.troubles import of_sandboxes
from provisioner.drills.actions import (
    drill_failed,
    drill_passed,
    drill_plan_save,
    drill_start,
)
from provisioner.drills.models import Drill, DrillPlan
from provisioner.drills.sweeps import give_up, start_due
from provisioner.engine import workflow
from provisioner.engine.starting import start_operation
from provisioner.insight.models import ServerConfiguration
from provisioner.lib import clocks
from provisioner.lib.typed_json import to_json
from provisioner.notify.models import Notification
from provisioner.sandboxes.actions.describing import server_volumes_save
from provisioner.sandboxes.models import (
    P4dVersion,
    Sandbox,
    SandboxHost,
    SandboxOperation,
)
from provisioner.sandboxes.steps.run import Checked
from provisioner.sites.models import PerforceServer
from tests.support.factories import (
    SandboxFactory,
    SandboxHostFactory,
    SiteFactory,
    UserFactory,
)

pytestmark = pytest.mark.django_db

REPLICAS = {"p4": "p4_dr"}
PLACES = "db p4/root\njournal p4/journal\ndepot p4"
FORM = {
    **{"host": "spare", "version": "2024.2", "cron": "0 4 1 * *", "is_on": "on"},
    **{"replicas": "p4 = p4_dr", "oldest_hours": 24},
}


@pytest.fixture
def admin() -> User:
    return UserFactory.create(username="admin", is_staff=True)


@pytest.fixture
def server(admin: User) -> PerforceServer:
    site = SiteFactory.create()
    server: PerforceServer = site.perforce_server
    server_volumes_save(by=admin, server=server, site=site, places=PLACES)
    return server


@pytest.fixture
def host() -> SandboxHost:
    return SandboxHostFactory.create(name="spare")


@pytest.fixture
def version() -> P4dVersion:
    return P4dVersion.objects.create(release="2024.2", path="/opt/p4d")


@pytest.fixture
def plan(
    server: PerforceServer, host: SandboxHost, version: P4dVersion, admin: User
) -> DrillPlan:
    return drill_plan_save(
        by=admin,
        server=server,
        host=host,
        version=version,
        replicas=REPLICAS,
        is_on=True,
    )


def titles() -> list[str]:
    rows = Notification.objects.filter(kind="server_trouble").order_by("pk")
    return [each.data["title"] for each in rows]


def ready(drill: Drill, *, hours_old: int) -> Sandbox:
    """Note what the steps of a drill note before its end."""
    now = clocks.database_now()
    Sandbox.objects.filter(pk=drill.sandbox_id).update(
        taken_at=now, consistency="replicated"
    )
    Drill.objects.filter(pk=drill.pk).update(
        copy_of=drill.requested_at - dt.timedelta(hours=hours_old),
        answered_at=now,
        change=12,
    )
    return Sandbox.objects.get(pk=drill.sandbox_id)


def test_an_administrator_plans_and_begins_drills_on_pages(
    server: PerforceServer,
    host: SandboxHost,
    version: P4dVersion,
    as_admin: Client,
) -> None:
    where = f"/drills/servers/{server.pk}/"
    assert server.volumes is not None
    SandboxHostFactory.create(name="beside", site=server.volumes.site)
    page = as_admin.get(where).text
    assert "p4=" in page  # the volumes of the server are there to be filled in
    assert 'value="spare"' in page
    assert 'value="beside"' not in page
    assert "has no plan of drills" in as_admin.post(f"{where}start/", follow=True).text
    for wrong in (
        {"replicas": "p4"},
        {"replicas": "p4=a\np4=b"},
        {"replicas": "other=p4_dr"},
        {"cron": "monthly"},
        {"oldest_hours": 0},
        {"host": "beside"},
    ):
        assert as_admin.post(where, FORM | wrong).status_code >= 400, wrong
    assert not DrillPlan.objects.exists()
    SandboxHost.objects.exclude(pk=host.pk).delete()

    assert as_admin.post(where, FORM).status_code == 302
    assert "Begun." in as_admin.post(f"{where}start/", follow=True).text

    plan = DrillPlan.objects.get()
    assert plan.replicas == REPLICAS
    [drill] = Drill.objects.all()
    page = as_admin.get("/drills/").text
    assert drill.sandbox.name in page
    assert "Running" in page
    assert "p4=p4_dr" in as_admin.get(where).text


def test_the_api_plans_begins_and_lists(
    server: PerforceServer,
    host: SandboxHost,
    version: P4dVersion,
    api_as_admin: APIClient,
) -> None:
    where = f"/api/v1/drill-plans/{server.pk}"
    body: dict[str, Any] = {"host": "spare", "version": "2024.2"}
    assert api_as_admin.patch(where, body).status_code == 400  # no replicas
    body |= {"replicas": REPLICAS, "is_on": True}
    saved = api_as_admin.patch(where, body, format="json")
    assert saved.status_code == 200, saved.text
    assert saved.json()["replicas"] == REPLICAS
    changed = api_as_admin.patch(where, {"oldest_hours": 30}, format="json")
    assert (changed.json()["oldest_hours"], changed.json()["host"]) == (30, "spare")
    [listed] = api_as_admin.get("/api/v1/drill-plans").json()["results"]
    assert listed["server"] == server.name

    begun = api_as_admin.post("/api/v1/drills", {"server": server.name})

    assert begun.status_code == 202, begun.text
    assert begun.json()["outcome"] == "Running"
    again = api_as_admin.post("/api/v1/drills", {"server": server.name})
    assert (again.status_code, again.json()["code"]) == (409, "plan_running")
    [found] = api_as_admin.get("/api/v1/drills").json()["results"]
    assert (found["id"], found["site"]) == (begun.json()["id"], host.site.name)


def test_a_failure_is_told_and_counted_until_a_drill_passes(
    plan: DrillPlan, admin: User
) -> None:
    server = plan.server
    first = drill_start(by=admin, server=server)
    drill_failed(first.sandbox, message="No copy.")
    drill_failed(first.sandbox, message="Said twice.")
    failed = f"The disaster drill of {server.name} failed"
    assert titles() == [failed]
    assert [each.url for each in of_sandboxes()] == ["/drills/"]
    Sandbox.objects.update(state=Sandbox.State.FAILED, status_code="x")

    second = drill_start(by=admin, server=server, at=first.requested_at - MINUTE)
    drill_passed(ready(second, hours_old=1))

    assert titles() == [failed]
    assert of_sandboxes() == []
    assert Drill.objects.get(pk=second.pk).outcome == "Passed"
    assert "at change 12" in DrillPlan.objects.get().status
    assert Sandbox.objects.get(pk=second.sandbox_id).state == Sandbox.State.RETIRING


MINUTE = dt.timedelta(minutes=1)


def test_an_old_copy_is_told(plan: DrillPlan, admin: User) -> None:
    drill = drill_start(by=admin, server=plan.server)

    drill_passed(ready(drill, hours_old=30))

    assert titles() == [f"The copy of {plan.server.name} is old"]
    drill.refresh_from_db()
    assert drill.outcome == "Old copy"
    assert "may be 24 hours" in drill.finding


def test_a_drill_that_was_not_begun_is_told_after_an_hour(
    plan: DrillPlan, version: P4dVersion
) -> None:
    version.delete()
    DrillPlan.objects.update(changed_at="2026-01-01T00:00Z")
    due = dt.datetime(2026, 11, 1, 4, tzinfo=dt.UTC)

    assert start_due(now=due + MINUTE) == 0
    assert titles() == []
    assert "tried each minute" in DrillPlan.objects.get().status
    for _ in range(2):
        assert start_due(now=due + dt.timedelta(hours=1)) == 0
    assert titles() == [f"The disaster drill of {plan.server.name} failed"]
    assert "could not be begun" in DrillPlan.objects.get().status


def test_a_drill_that_hangs_is_given_up(plan: DrillPlan, admin: User) -> None:
    drill = drill_start(by=admin, server=plan.server)
    begun = drill.requested_at

    assert give_up(now=begun + dt.timedelta(hours=11)) == 0
    assert give_up(now=begun + dt.timedelta(hours=12)) == 1
    assert give_up(now=begun + dt.timedelta(hours=13)) == 0

    drill.refresh_from_db()
    assert drill.outcome == "Failed"
    assert "a worker runs on spare" in drill.trouble
    assert Sandbox.objects.get().state == Sandbox.State.RETIRING
    assert len(titles()) == 1
    assert Event.objects.filter(kind="drill_failed").count() == 1


def test_one_that_was_retired_meanwhile_was_stopped(
    plan: DrillPlan, admin: User
) -> None:
    drill = drill_start(by=admin, server=plan.server)
    Sandbox.objects.update(state=Sandbox.State.RETIRING)

    drill = Drill.objects.select_related("sandbox").get(pk=drill.pk)
    assert (drill.outcome, drill.is_running) == ("Stopped", False)


def recorded(server: PerforceServer, by: User, checked: Checked) -> None:
    """Record what a server said of itself when a sandbox of it was made."""
    sandbox = SandboxFactory.create(perforce_server=server)
    operation = start_operation(SandboxOperation.CREATE, about=sandbox, by=by)
    operation.steps.filter(name=Checked.step).update(result=to_json(checked))


def looked_up(server: PerforceServer, by: User) -> object:
    """Begin a drill, and return what its first step finds."""
    drill = drill_start(by=by, server=server)
    [step] = drill.sandbox.operations.get().steps.filter(name="server")
    return workflow.perform(step)


def test_of_the_original_is_taken_what_is_recorded(
    plan: DrillPlan, admin: User
) -> None:
    server = plan.server
    PerforceServer.objects.filter(pk=server.pk).update(server_id="")
    said = Checked(release="2023.1", server_id="main", is_case_sensitive=False)
    recorded(server, admin, said)
    ServerConfiguration.objects.create(
        server=server, version="P4D/LINUX26X86_64/2024.2/2697822 (2024/12/19)"
    )

    # Its configuration was read after the last sandbox of it was made.
    assert looked_up(server, admin) == replace(said, release="2024.2")


def test_what_nobody_recorded_is_unknown(plan: DrillPlan, admin: User) -> None:
    PerforceServer.objects.filter(pk=plan.server_id).update(server_id="")

    found = looked_up(plan.server, admin)

    assert found == Checked(release="", server_id="", is_case_sensitive=True)
